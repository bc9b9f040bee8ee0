import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.concurrent.Executors;

/**
 * A small file server on the JDK's own HTTP server: {@code GET /hello} is answered with the file {@code hello} below
 * the root folder, a file that is not there with 404, another method with 405.
 *
 * <p>Arguments: {@code PORT [ROOT]}, {@code www} unless given.
 *
 * <p>Without {@code sun.net.httpserver.nodelay} the head and the body of an answer leave in two packets; on Linux the
 * second waits for the client's delayed acknowledgement, and every answer takes 40 ms. The property is read when the
 * server's classes load, so it is set first; {@code -Dsun.net.httpserver.nodelay=false} brings the plateau back.
 */
public final class JdkHttpServer {
    private static final byte[] NOTHING = {};

    private JdkHttpServer() {}

    public static void main(String[] args) throws IOException {
        if (System.getProperty("sun.net.httpserver.nodelay") == null) {
            System.setProperty("sun.net.httpserver.nodelay", "true");
        }
        int port = Integer.parseInt(args[0]);
        Path root = Paths.get(args.length > 1 ? args[1] : "www").toRealPath();
        InetAddress loopback = InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
        HttpServer server = HttpServer.create(new InetSocketAddress(loopback, port), 1024);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> serve(exchange, root));
        server.start();
    }

    private static void serve(HttpExchange exchange, Path root) throws IOException {
        drain(exchange.getRequestBody());
        Path file = root.resolve("." + exchange.getRequestURI().getPath()).normalize();
        if (!exchange.getRequestMethod().equals("GET")) {
            answer(exchange, 405, NOTHING);
        } else if (!file.startsWith(root) || !Files.isRegularFile(file)) {
            answer(exchange, 404, NOTHING);
        } else {
            answer(exchange, 200, Files.readAllBytes(file));
        }
    }

    /** Reads the request to its end before it is answered: what is left unread can cost the connection. */
    private static void drain(InputStream body) throws IOException {
        if (body.read() >= 0) {
            byte[] part = new byte[8192];
            while (body.read(part) >= 0) {
                // Read and forgotten.
            }
        }
    }

    private static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        if (body.length > 0) {
            exchange.getResponseBody().write(body);
        }
        exchange.close();
    }
}
