package loadline.subjects;

import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Responds to each request 20 ms after reading it, however many are waiting. It is never early, and late only by the
 * time that the scheduler takes to wake a thread.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: answer_ms=20 status=200 body_bytes=5
public final class Answers20Ms {
    private static final long DELAY_NS = TimeUnit.MILLISECONDS.toNanos(20);

    private Answers20Ms() {}

    public static void main(String[] args) throws IOException {
        byte[] late = {'l', 'a', 't', 'e', '\n'};
        Listener.http(Integer.parseInt(args[0]), Executors.newCachedThreadPool(), exchange -> {
            Listener.drain(exchange);
            Listener.waitUntil(System.nanoTime() + DELAY_NS);
            Listener.answer(exchange, 200, late);
        });
    }
}
