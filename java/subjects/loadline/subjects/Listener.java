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
 * Shared by the subjects: listens on the loopback address, reads whole requests, and responds. Keeps nothing per
 * request, so a subject's memory is its own.
 */
final class Listener {
    /** Connections queued by the kernel; more than any load opens at the same time. */
    private static final int BACKLOG = 1024;

    private Listener() {}

    /** Serves HTTP/1.1 with keep-alive until the process ends. */
    static void http(int port, ExecutorService workers, HttpHandler handler) throws IOException {
        // Without these, head and body are sent in two packets, the second waits 40 ms for the peer's delayed
        // acknowledgment, and connections beyond 200 are closed after each response. Read when HttpServer loads.
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
                    // The peer is gone; there is nothing to do.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Reads the whole request body and returns its length in bytes. */
    static long drain(HttpExchange exchange) throws IOException {
        InputStream body = exchange.getRequestBody();
        // Most requests have no body: reads one byte before allocating a buffer for it.
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

    /** Reads the rest of the request, responds with status and body, and keeps the connection. */
    static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
        drain(exchange);
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        if (body.length > 0) {
            exchange.getResponseBody().write(body);
        }
        exchange.close();
    }

    /** Parks until the deadline, repeatedly because a park may return early. */
    static void waitUntil(long deadlineNs) {
        for (long left = deadlineNs - System.nanoTime(); left > 0; left = deadlineNs - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private static InetAddress loopback() throws IOException {
        return InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
    }

    /** Handles one connection, which is closed when it returns. */
    interface Talk {
        void with(Socket socket) throws IOException;
    }
}
