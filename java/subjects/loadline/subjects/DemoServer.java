package loadline.subjects;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/**
 * The server behind {@code loadline demo}: responds to {@code GET /hello} with 13 bytes, and to anything else with 404.
 * Designed for a 6 MiB heap: four workers, no lambdas (which would load the machinery of invokedynamic), and hardly any
 * garbage.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: body_bytes=13 status=200
public final class DemoServer implements HttpHandler {
    private static final byte[] HELLO = "Hello, world\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NOTHING = {};

    private DemoServer() {}

    public static void main(String[] args) throws IOException {
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4), new DemoServer());
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        boolean hello = exchange.getRequestMethod().equals("GET")
                && exchange.getRequestURI().getPath().equals("/hello");
        Listener.answer(exchange, hello ? 200 : 404, hello ? HELLO : NOTHING);
    }
}
