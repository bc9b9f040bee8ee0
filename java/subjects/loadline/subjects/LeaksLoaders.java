package loadline.subjects;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;

/**
 * Creates a class loader with one class per request and never releases it, like a server that recompiles a script for
 * each run. A request for {@code /calm} creates none.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: loaders_per_request=1 classes_per_request=1
public final class LeaksLoaders {
    private static final int ROUNDS = 200;
    private static final List<Object> HELD = new CopyOnWriteArrayList<>();

    private LeaksLoaders() {}

    public static void main(String[] args) throws IOException {
        byte[] done = {'d', 'o', 'n', 'e', '\n'};
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(2), exchange -> {
            Listener.drain(exchange);
            if (!exchange.getRequestURI().getPath().equals("/calm")) {
                HELD.add(made());
            }
            Listener.answer(exchange, 200, done);
        });
    }

    private static Object made() throws IOException {
        try {
            return new ClassFiles(ROUNDS).make("Made");
        } catch (ReflectiveOperationException cause) {
            throw new IOException(cause);
        }
    }
}
