package loadline.subjects;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import sun.misc.Unsafe;

/**
 * A server with a problem whose fix is known; responds to every request with 204.
 *
 * <p>{@code arenas=MIB}: eight threads take turns: each allocates an eighth of it with malloc, writes every page, and
 * frees it below a chunk that stays in use. With an arena per thread, all of it is retained. With a single arena, each
 * thread reuses what the previous one freed, so only an eighth is retained.
 *
 * <p>{@code -Dhurts=MIB}: uses this much direct memory. {@code -Dbreaks=MS}: delays every response by this long. {@code
 * -Dhelps=true}: does without the {@code direct=MIB} of direct memory that it would otherwise use.
 *
 * <p>Arguments: {@code PORT [KEY=NUMBER ...]}.
 */
// truth: threads=8 status=204
public final class Curable {
    private static final int MIB = 1 << 20;
    private static final int THREADS = 8;
    /** Below glibc's threshold for a separate mapping. */
    private static final int BLOCK = 60 << 10;
    private static final int PIN = 2 << 10;
    private static Object[] held = new Object[2];

    private Curable() {}

    public static void main(String[] args) throws IOException, ReflectiveOperationException, InterruptedException {
        held[0] = direct(Integer.getInteger("hurts", 0));
        held[1] = direct(Boolean.getBoolean("helps") ? 0 : number(args, "direct"));
        retain(number(args, "arenas"));
        long late = Integer.getInteger("breaks", 0) * 1_000_000L;
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4), exchange -> {
            Listener.waitUntil(System.nanoTime() + late);
            Listener.answer(exchange, 204, new byte[0]);
        });
    }

    private static ByteBuffer direct(int mib) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(mib * MIB);
        for (int at = 0; at < buffer.capacity(); at += 4096) {
            buffer.put(at, (byte) 1);
        }
        return buffer;
    }

    /** All threads live until the process ends; they take turns. */
    @SuppressWarnings("removal")
    private static void retain(int mib) throws ReflectiveOperationException, InterruptedException {
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Unsafe unsafe = (Unsafe) field.get(null);
        CountDownLatch[] turns = new CountDownLatch[THREADS + 1];
        for (int i = 0; i <= THREADS; i++) {
            turns[i] = new CountDownLatch(1);
        }
        for (int i = 0; i < THREADS; i++) {
            CountDownLatch own = turns[i];
            CountDownLatch next = turns[i + 1];
            Thread thread = new Thread(() -> {
                try {
                    own.await();
                } catch (InterruptedException never) {
                    return;
                }
                takeAndFree(unsafe, mib * (MIB / THREADS) / BLOCK);
                next.countDown();
                while (true) {
                    LockSupport.park();
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        turns[0].countDown();
        turns[THREADS].await();
    }

    @SuppressWarnings("removal")
    private static void takeAndFree(Unsafe unsafe, int count) {
        long[] blocks = new long[count];
        for (int i = 0; i < count; i++) {
            blocks[i] = unsafe.allocateMemory(BLOCK);
            unsafe.setMemory(blocks[i], BLOCK, (byte) 1);
        }
        // Memory below a chunk that is in use stays resident until a trim.
        unsafe.setMemory(unsafe.allocateMemory(PIN), PIN, (byte) 1);
        for (long block : blocks) {
            unsafe.freeMemory(block);
        }
    }

    private static int number(String[] args, String key) {
        for (String arg : args) {
            if (arg.startsWith(key + "=")) {
                return Integer.parseInt(arg.substring(key.length() + 1));
            }
        }
        return 0;
    }
}
