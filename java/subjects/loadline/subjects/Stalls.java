package loadline.subjects;

import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Responds immediately, except for one stall: from request number AFTER + 1 on, no request gets a response for 500 ms.
 * Requests that arrive during the stall get their responses when it ends. For a client that keeps to its schedule, the
 * longest response time is 500 ms; one that waits for responses sees only one slow response per connection.
 *
 * <p>Arguments: {@code PORT [AFTER]}, 1000 by default; readiness checks count too.
 */
// truth: stall_ms=500 stalls=1 status=204
public final class Stalls {
    private static final long STALL_NS = 500_000_000L;
    /** When responses may be sent again; in the past outside the stall. */
    private static volatile long silentUntilNs = System.nanoTime();

    private Stalls() {}

    public static void main(String[] args) throws IOException {
        long after = args.length > 1 ? Long.parseLong(args[1]) : 1000;
        AtomicLong requests = new AtomicLong();
        Listener.http(Integer.parseInt(args[0]), Executors.newCachedThreadPool(), exchange -> {
            if (requests.getAndIncrement() == after) {
                silentUntilNs = System.nanoTime() + STALL_NS;
            }
            Listener.waitUntil(silentUntilNs);
            Listener.answer(exchange, 204, new byte[0]);
        });
    }
}
