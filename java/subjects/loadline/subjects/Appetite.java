package loadline.subjects;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/**
 * Uses as much memory as its arguments say, and responds to every request with 204: {@code live=MIB} of reachable heap,
 * {@code direct=MIB} of direct memory with every page written, {@code threads=N} parked threads that have each used 64
 * KiB of their stacks, and {@code churn=KIB} of garbage per request.
 *
 * <p>Arguments: {@code PORT [KEY=NUMBER ...]}.
 */
// truth: live_bytes_per_mib=1048576 direct_bytes_per_mib=1048576 status=204
public final class Appetite {
    private static final int KIB = 1 << 10;
    private static final int MIB = 1 << 20;
    /** Too small to be humongous in any collector. */
    private static final int PIECE = 64 * KIB;
    private static final List<Object> held = new ArrayList<>();
    /** The result of a request, stored so that no compiler eliminates it. */
    private static volatile byte[] last;

    private Appetite() {}

    public static void main(String[] args) throws IOException, InterruptedException {
        for (int left = number(args, "live") * (MIB / PIECE); left > 0; left--) {
            held.add(new byte[PIECE]);
        }
        for (int left = number(args, "direct"); left > 0; left--) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(MIB);
            for (int at = 0; at < MIB; at += 4096) {
                buffer.put(at, (byte) 1);
            }
            held.add(buffer);
        }
        park(number(args, "threads"));
        int churn = number(args, "churn");
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4), exchange -> {
            for (int left = churn; left > 0; left--) {
                last = new byte[KIB];
            }
            Listener.answer(exchange, 204, new byte[0]);
        });
    }

    /** Starts threads that use their stacks and then stay parked; returns once all of them have used theirs. */
    private static void park(int threads) throws InterruptedException {
        CountDownLatch running = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> {
                descend(64 * KIB / 64);
                running.countDown();
                while (true) {
                    LockSupport.park();
                }
            }, "parked-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        running.await();
    }

    /** A frame takes 64 bytes or more, interpreted or compiled. */
    private static int descend(int depth) {
        return depth == 0 ? 0 : 1 + descend(depth - 1);
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
