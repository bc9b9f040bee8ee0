package loadline.subjects;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/**
 * Keeps 64 extra threads, named {@code parked-0} to {@code parked-63}, parked forever; responds to every request with
 * 204. All 64 have run, and thus have a stack, before the first response.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: threads_extra=64 status=204
public final class Threads64 {
    private static final int COUNT = 64;

    private Threads64() {}

    public static void main(String[] args) throws IOException, InterruptedException {
        CountDownLatch running = new CountDownLatch(COUNT);
        for (int i = 0; i < COUNT; i++) {
            Thread thread = new Thread(() -> {
                running.countDown();
                while (true) {
                    LockSupport.park();
                }
            }, "parked-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        running.await();
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4),
                exchange -> Listener.answer(exchange, 204, new byte[0]));
    }
}
