import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The JDK's own HTTP server: {@code java JdkPeer.java PORT}.
 *
 * <p>Paths: {@code /fixed} (12 bytes), {@code /chunked} (100,000 bytes), {@code /last} (closes), {@code /length} (the
 * length of the body), {@code /counted} (requests and connections so far, except its own); all others are 404.
 */
final class JdkPeer {
    private static final AtomicLong REQUESTS = new AtomicLong();
    private static final Set<Integer> LIVE = ConcurrentHashMap.newKeySet();
    private static final AtomicLong CONNECTIONS = new AtomicLong();

    public static void main(String[] args) throws IOException {
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0]));
        HttpServer server = HttpServer.create(address, 256);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", JdkPeer::answer);
        server.start();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        if (path.equals("/counted")) {
            byte[] text = ("counted " + REQUESTS + " " + CONNECTIONS + "\n").getBytes(StandardCharsets.US_ASCII);
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
            return;
        }
        REQUESTS.incrementAndGet();
        boolean closes = path.equals("/last") || "close".equals(exchange.getRequestHeaders().getFirst("Connection"));
        int port = exchange.getRemoteAddress().getPort();
        if (LIVE.add(port)) {
            CONNECTIONS.incrementAndGet();
        }
        if (closes) {
            LIVE.remove(port);
        }
        long length = exchange.getRequestBody().transferTo(java.io.OutputStream.nullOutputStream());
        switch (path) {
            case "/fixed" -> say(exchange, "hello world\n", false);
            case "/last" -> {
                exchange.getResponseHeaders().set("Connection", "close");
                say(exchange, "hello world\n", false);
            }
            case "/chunked" -> say(exchange, "0123456789".repeat(10_000), true);
            case "/length" -> say(exchange, "got " + length + "\n", false);
            default -> {
                exchange.sendResponseHeaders(404, -1);
                exchange.close();
            }
        }
    }

    private static void say(HttpExchange exchange, String text, boolean chunked) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        boolean head = exchange.getRequestMethod().equals("HEAD");
        exchange.sendResponseHeaders(200, head ? -1 : chunked ? 0 : bytes.length);
        if (!head) {
            for (int from = 0; from < bytes.length; from += 7777) {
                exchange.getResponseBody().write(bytes, from, Math.min(7777, bytes.length - from));
                exchange.getResponseBody().flush();
            }
        }
        exchange.close();
    }
}
