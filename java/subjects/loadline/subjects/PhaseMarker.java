package loadline.subjects;

/**
 * Works on its own, without HTTP. Prints a marker at each step and then waits to be measured: {@code ready}, {@code
 * full} (16 MiB of heap held, with the work's counters), {@code empty} (nothing held). Exits with 0 after the last
 * wait.
 *
 * <p>Arguments: {@code [WAIT_MS]}, 500 by default.
 */
// truth: phases=3 full_heap_bytes=16777216 ops=256 fail=0 exit_code=0
public final class PhaseMarker {
    private static final int BLOCK_BYTES = 64 << 10;
    private static final int HEADER_BYTES = 16;
    private static byte[][] held;

    private PhaseMarker() {}

    public static void main(String[] args) throws InterruptedException {
        long waitMs = args.length > 0 ? Long.parseLong(args[0]) : 500;
        reached("ready", waitMs);
        long start = System.nanoTime();
        held = new byte[256][];
        for (int i = 0; i < held.length; i++) {
            held[i] = new byte[BLOCK_BYTES - HEADER_BYTES];
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        // Not String.format: the decimal point must not depend on the locale.
        reached("full ops=" + held.length + " s=" + seconds + " fail=0", waitMs);
        held = null;
        System.gc();
        reached("empty", waitMs);
    }

    private static void reached(String phase, long waitMs) throws InterruptedException {
        System.out.println("loadline: phase=" + phase);
        Thread.sleep(waitMs);
    }
}
