package loadline.subjects;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/**
 * Answers with the length in bytes of the body it was sent, as decimal digits and a newline.
 * Paths that end in {@code /chunked} are answered with {@code Transfer-Encoding: chunked}, all others with
 * {@code Content-Length}. Any method; a request without a body has length 0.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: status=200
public final class Echo {
    private Echo() {}

    public static void main(String[] args) throws IOException {
        Listener.http(Integer.parseInt(args[0]), Executors.newCachedThreadPool(), exchange -> {
            byte[] reply = (Listener.drain(exchange) + "\n").getBytes(StandardCharsets.US_ASCII);
            if (!exchange.getRequestURI().getPath().endsWith("/chunked")) {
                Listener.answer(exchange, 200, reply);
                return;
            }
            // Length 0 is how HttpServer is asked for chunks.
            exchange.sendResponseHeaders(200, 0);
            exchange.getResponseBody().write(reply);
            exchange.close();
        });
    }
}
