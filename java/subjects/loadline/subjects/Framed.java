package loadline.subjects;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/**
 * A framework-style server: its port is {@code --server.port=PORT}, the property {@code quarkus.http.port}, or
 * its only argument; {@code /actuator/health} responds with 503 for its first 400 ms and then 200, {@code /hello}
 * responds immediately, anything else is a 404.
 *
 * <p>Arguments: {@code PORT} or {@code --server.port=PORT}.
 */
// truth: body_bytes=13 status=200 not_yet_ms=400
public final class Framed implements HttpHandler {
    private static final byte[] HELLO = "Hello, world\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NOTHING = {};
    private static final String OPTION = "--server.port=";
    private static final long NOT_YET_NS = 400_000_000L;

    private final long startedNs = System.nanoTime();

    private Framed() {}

    public static void main(String[] args) throws IOException {
        String port = System.getProperty("quarkus.http.port");
        for (String arg : args) {
            port = arg.startsWith(OPTION) ? arg.substring(OPTION.length()) : arg;
        }
        Listener.http(Integer.parseInt(port), Executors.newFixedThreadPool(4), new Framed());
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        boolean well = System.nanoTime() - startedNs > NOT_YET_NS;
        if (path.equals("/hello")) {
            Listener.answer(exchange, 200, HELLO);
        } else if (path.equals("/actuator/health")) {
            Listener.answer(exchange, well ? 200 : 503, NOTHING);
        } else {
            Listener.answer(exchange, 404, NOTHING);
        }
    }
}
