import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/**
 * A small file server on the JDK's own HTTP server: {@code GET /hello} returns the file {@code hello} below the root
 * folder; missing files give 404, other methods 405.
 *
 * <p>Arguments: see {@link Site}.
 *
 * <p>Without {@code sun.net.httpserver.nodelay}, a response's head and body are sent in two packets. On Linux, the
 * second waits for the client's delayed ACK, so every response takes 40 ms. The property is read when the server's
 * classes load, so it is set first; {@code -Dsun.net.httpserver.nodelay=false} brings the plateau back.
 */
public final class JdkHttpServer {
    private JdkHttpServer() {}

    public static void main(String[] args) throws IOException {
        if (System.getProperty("sun.net.httpserver.nodelay") == null) {
            System.setProperty("sun.net.httpserver.nodelay", "true");
        }
        Site site = new Site(args);
        InetSocketAddress address = new InetSocketAddress(Site.loopback(), Integer.parseInt(args[0]));
        HttpServer server = HttpServer.create(address, Site.BACKLOG);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> serve(exchange, site));
        server.start();
    }

    private static void serve(HttpExchange exchange, Site site) throws IOException {
        Site.drain(exchange.getRequestBody());
        if (!exchange.getRequestMethod().equals("GET")) {
            answer(exchange, 405, Site.NOTHING);
            return;
        }
        byte[] file = site.file(exchange.getRequestURI().getPath());
        answer(exchange, file == null ? 404 : 200, file == null ? Site.NOTHING : file);
    }

    private static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        if (body.length > 0) {
            exchange.getResponseBody().write(body);
        }
        exchange.close();
    }
}
