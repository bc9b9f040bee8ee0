package loadline.subjects;

import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/**
 * Responds to every request with 204 and ignores TERM: its shutdown hook never returns. Only KILL ends it.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: status=204 exit_signal=9
public final class IgnoresTerm {
    private IgnoresTerm() {}

    public static void main(String[] args) throws IOException {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            System.out.println("told to end, and will not");
            while (true) {
                LockSupport.park();
            }
        }));
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4),
                exchange -> Listener.answer(exchange, 204, new byte[0]));
    }
}
