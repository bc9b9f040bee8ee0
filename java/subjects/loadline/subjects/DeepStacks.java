package loadline.subjects;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Keeps 64 threads, {@code deep-0} to {@code deep-63}, each of which has once filled its stack by recursion and is
 * parked near the top of it. Frame sizes differ between interpreter and compilers, so a depth says nothing about bytes;
 * but if a stack of known size has overflowed, all of it except its guard zones was written. The resident size is what
 * the kernel reports for the mappings that the threads' stack pointers are in.
 *
 * <p>Prints {@code BEFORE threads=0}, waits for a line, prints {@code AFTER threads=64 stack_bytes=… depth_min=…
 * depth_max=…}, and keeps running.
 */
// truth: threads=64 stack_bytes=655360 touched_bytes_min=524288
public final class DeepStacks {
    private static final int COUNT = 64;
    private static final long STACK_BYTES = 640 << 10;

    private DeepStacks() {}

    public static void main(String[] args) throws IOException, InterruptedException {
        start("rehearsal", new long[1]).await();
        Dialogue.sayAndWait("BEFORE threads=0");
        long min = Long.MAX_VALUE;
        long max = 0;
        for (int i = 0; i < COUNT; i++) {
            long[] depth = new long[1];
            // One at a time, because 64 simultaneous overflows would all take the interpreter's slowest path.
            start("deep-" + i, depth).await();
            min = Math.min(min, depth[0]);
            max = Math.max(max, depth[0]);
        }
        String figures = " stack_bytes=" + STACK_BYTES + " depth_min=" + min + " depth_max=" + max;
        Dialogue.sayAndStay("AFTER threads=" + COUNT + figures, args);
    }

    /** A thread whose recursion has finished when the latch opens. */
    private static CountDownLatch start(String name, long[] depth) {
        CountDownLatch filled = new CountDownLatch(1);
        Thread thread = new Thread(null, () -> {
            try {
                descend(depth);
            } catch (StackOverflowError full) {
                filled.countDown();
            }
            while (true) {
                LockSupport.park();
            }
        }, name, STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
        return filled;
    }

    private static void descend(long[] depth) {
        depth[0]++;
        descend(depth);
    }
}
