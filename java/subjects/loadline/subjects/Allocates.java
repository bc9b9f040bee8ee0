package loadline.subjects;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Allocates known amounts in the Java heap, one kind at a time. After each, it prints what it planted and the JVM's own
 * count for all threads (-1 before 17.0.15). Then it allocates direct and mapped buffers.
 *
 * <p>Prints {@code STARTED …} and {@code READY …}. Then, for each of {@code MAIN THREADS ENDED HUGE VIRTUAL}, waits for
 * a line, allocates, and prints {@code KIND planted=… total=…}. Finally, prints {@code DIRECT reserved=… buffers=…
 * mapped=… mapped_buffers=…} from the JVM's own beans, and keeps running. {@code VIRTUAL planted=0} means that there
 * are no virtual threads.
 */
// truth: array_bytes=10016 huge_bytes=8388624 mib=1048576
public final class Allocates {
    /** Including the 16-byte header. */
    private static final int ARRAY_BYTES = 10_016;
    private static final int HUGE_BYTES = 8 * 1024 * 1024 + 16;
    private static volatile Object sink;
    private static Method total;

    private Allocates() {}

    public static void main(String[] args) throws Exception {
        try {
            total = Class.forName("com.sun.management.ThreadMXBean").getMethod("getTotalThreadAllocatedBytes");
        } catch (NoSuchMethodException older) {
            total = null;
        }
        // The first line has one-time costs, which must be over before the first figure.
        Dialogue.sayAndWait(line("STARTED", 0));
        Dialogue.sayAndWait(line("READY", 0));
        Dialogue.sayAndWait(line("MAIN", fill(256L << 20)));
        CountDownLatch hold = new CountDownLatch(1);
        long planted = inThreads(4, 64L << 20, hold);
        Dialogue.sayAndWait(line("THREADS", planted));
        hold.countDown();
        planted = inThreads(8, 128L << 20, null);
        awaitEnd();
        Dialogue.sayAndWait(line("ENDED", planted));
        planted = 0;
        while (planted < 1L << 30) {
            sink = new byte[HUGE_BYTES - 16];
            planted += HUGE_BYTES;
        }
        Dialogue.sayAndWait(line("HUGE", planted));
        planted = inVirtualThreads(64, 4L << 20);
        Dialogue.sayAndWait(line("VIRTUAL", planted));
        buffers(args[0]);
    }

    /** Direct buffers of two sizes, and a file that is mapped twice. */
    private static void buffers(String file) throws IOException {
        List<Object> held = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            held.add(ByteBuffer.allocateDirect(1 << 20));
        }
        for (int i = 0; i < 1000; i++) {
            held.add(ByteBuffer.allocateDirect(100));
        }
        try (RandomAccessFile opened = new RandomAccessFile(file, "rw")) {
            opened.setLength(3 << 20);
            held.add(opened.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, 3 << 20));
            held.add(opened.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, 1 << 20));
        }
        StringBuilder line = new StringBuilder("DIRECT");
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            if (pool.getName().equals("direct")) {
                line.append(" reserved=").append(pool.getMemoryUsed()).append(" buffers=").append(pool.getCount());
            }
            if (pool.getName().equals("mapped")) {
                line.append(" mapped=").append(pool.getTotalCapacity());
                line.append(" mapped_buffers=").append(pool.getCount());
            }
        }
        Dialogue.sayAndStay(line.toString(), held);
    }

    private static long fill(long bytes) {
        long planted = 0;
        while (planted < bytes) {
            sink = new byte[ARRAY_BYTES - 16];
            planted += ARRAY_BYTES;
        }
        return planted;
    }

    /** Starts threads that each allocate this much, and then wait for the latch or, without one, end immediately. */
    private static long inThreads(int count, long bytes, CountDownLatch hold) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(count);
        long[] planted = new long[count];
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            int own = i;
            threads[i] = new Thread(() -> {
                planted[own] = fill(bytes);
                done.countDown();
                try {
                    if (hold != null) {
                        hold.await();
                    }
                } catch (InterruptedException ended) {
                    Thread.currentThread().interrupt();
                }
            });
            threads[i].setDaemon(true);
            threads[i].start();
        }
        done.await();
        for (Thread thread : threads) {
            if (hold == null) {
                thread.join();
            }
        }
        long sum = 0;
        for (long one : planted) {
            sum += one;
        }
        return sum;
    }

    /**
     * Waits, without asking the JVM anything, until the kernel has none of these threads left either. A thread can be
     * joined before the JVM has counted its allocations. While the thread ends, the JVM may count its last buffer
     * twice, and it never corrects that (see a comment in thread.inline.hpp).
     */
    private static void awaitEnd() throws IOException, InterruptedException {
        for (int i = 0; i < 2000; i++) {
            boolean lives = false;
            for (File task : new File("/proc/self/task").listFiles()) {
                try {
                    lives |= Files.readString(task.toPath().resolve("comm")).startsWith("Thread-");
                } catch (IOException gone) {
                    // It ended between listing and reading.
                }
            }
            if (!lives) {
                return;
            }
            Thread.sleep(5);
        }
        throw new IllegalStateException("threads that were joined are still there after 10 s");
    }

    private static long inVirtualThreads(int count, long bytes) throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException older) {
            return 0;
        }
        CountDownLatch done = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            start.invoke(null, (Runnable) () -> {
                fill(bytes);
                done.countDown();
            });
        }
        done.await();
        return count * ((bytes + ARRAY_BYTES - 1) / ARRAY_BYTES) * ARRAY_BYTES;
    }

    private static String line(String kind, long planted) throws ReflectiveOperationException {
        return kind + " planted=" + planted + " total=" + total();
    }

    private static long total() throws ReflectiveOperationException {
        return total == null ? -1 : (long) total.invoke(ManagementFactory.getThreadMXBean());
    }
}
