package loadline.subjects;

/**
 * Does not listen: prints a line every 100 ms and is never ready. Only TERM ends it.
 *
 * <p>Arguments: any, ignored.
 */
// truth: line_every_ms=100
public final class NeverReady {
    private NeverReady() {}

    public static void main(String[] args) throws InterruptedException {
        for (long n = 1; ; n++) {
            System.out.println("still starting, step " + n);
            Thread.sleep(100);
        }
    }
}
