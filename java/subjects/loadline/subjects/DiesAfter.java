package loadline.subjects;

import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Responds to N requests, then dies in the middle of the next response, after its head and half of its body. Exits
 * without hooks, with the given exit code.
 *
 * <p>Arguments: {@code PORT N CODE}.
 */
// truth: status=200 body_bytes=1000 last_body_bytes=500
public final class DiesAfter {
    private static final int BODY_BYTES = 1000;

    private DiesAfter() {}

    public static void main(String[] args) throws IOException {
        long lives = Long.parseLong(args[1]);
        int code = Integer.parseInt(args[2]);
        AtomicLong answered = new AtomicLong();
        // One worker: all N responses are complete before the last request is read.
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(1), exchange -> {
            if (answered.getAndIncrement() < lives) {
                Listener.answer(exchange, 200, new byte[BODY_BYTES]);
                return;
            }
            Listener.drain(exchange);
            exchange.sendResponseHeaders(200, BODY_BYTES);
            exchange.getResponseBody().write(new byte[BODY_BYTES / 2]);
            exchange.getResponseBody().flush();
            System.out.println("dying with code " + code);
            Runtime.getRuntime().halt(code);
        });
    }
}
