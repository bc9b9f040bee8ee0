package loadline.subjects;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.locks.LockSupport;

/**
 * What the subjects share: listening on the loopback address, reading a request to its end, answering it.
 * Holds nothing per request, so that a subject's appetite is its own.
 */
final class Listener {
    /** Connections the kernel keeps waiting; more than any load opens at once. */
    private static final int BACKLOG = 1024;

    private Listener() {}

    /** Serves HTTP/1.1 with keep-alive until the process ends. */
    static void http(int port, ExecutorService workers, HttpHandler handler) throws IOException {
        // Without these, head and body leave in two packets and the second waits 40 ms for the peer's delayed
        // acknowledgement, and connections beyond 200 are closed after each answer. Read when HttpServer loads.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        System.setProperty("sun.net.httpserver.maxIdleConnections", "16384");
        HttpServer server = HttpServer.create(new InetSocketAddress(loopback(), port), BACKLOG);
        server.setExecutor(workers);
        server.createContext("/", handler);
        server.start();
    }

    /** Accepts connections until the process ends, and gives each its own thread. */
    static void tcp(int port, Talk talk) throws IOException {
        ServerSocket listener = new ServerSocket(port, BACKLOG, loopback());
        while (true) {
            Socket peer = listener.accept();
            Thread thread = new Thread(() -> {
                try (Socket socket = peer) {
                    talk.with(socket);
                } catch (IOException gone) {
                    // The peer went away: nothing to do and nobody to tell.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Reads the request's body to its end and returns its length in bytes. */
    static long drain(HttpExchange exchange) throws IOException {
        InputStream body = exchange.getRequestBody();
        // Most requests have no body: ask for one byte before spending a buffer on it.
        if (body.read() < 0) {
            return 0;
        }
        byte[] part = new byte[8192];
        long length = 1;
        for (int n = body.read(part); n >= 0; n = body.read(part)) {
            length += n;
        }
        return length;
    }

    /** Reads what is left of the request, answers with status and body, and keeps the connection. */
    static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
        drain(exchange);
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        if (body.length > 0) {
            exchange.getResponseBody().write(body);
        }
        exchange.close();
    }

    /** Parks until the deadline: a park may return early, so it is repeated. */
    static void waitUntil(long deadlineNs) {
        for (long left = deadlineNs - System.nanoTime(); left > 0; left = deadlineNs - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private static InetAddress loopback() throws IOException {
        return InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
    }

    /** What to say on one connection; the connection is closed when it returns. */
    interface Talk {
        void with(Socket socket) throws IOException;
    }
}
