import java.util.concurrent.CountDownLatch;

/**
 * Threads that allocate a little and then wait: {@code IdleThreads COUNT}. Run from source, it also loads the
 * compiler's 3,000 or so classes.
 */
public final class IdleThreads {
    private static byte[] last;

    private IdleThreads() {}

    public static void main(String[] args) throws InterruptedException {
        int count = Integer.parseInt(args[0]);
        CountDownLatch never = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(() -> {
                last = new byte[10_000];
                begun.countDown();
                try {
                    never.await();
                } catch (InterruptedException ignored) {
                    // Ends.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        begun.await();
        System.out.println("ready");
        never.await();
    }
}
