import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The same file server without a library: a thread per connection, blocking sockets, and just enough HTTP/1.1 for a
 * client that does not pipeline.
 *
 * <p>The threads are virtual if the JVM has them (21 and newer), else from a pool; the only line of output says which.
 * {@code -Dthreads=platform} always uses the pool, to compare the two on one JVM.
 *
 * <p>Arguments: see {@link Site}. Heads over 8 KiB, bodies of unknown length, and invalid HTTP end the connection.
 */
public final class OwnServer {
    private static final int HEAD_BYTES_MAX = 8192;
    /** Idle time after which a connection is closed. */
    private static final int SILENCE_MS_MAX = 60_000;

    private OwnServer() {}

    public static void main(String[] args) throws IOException {
        Site site = new Site(args);
        ExecutorService threads = threads();
        try (ServerSocket server = new ServerSocket(Integer.parseInt(args[0]), Site.BACKLOG, Site.loopback())) {
            while (true) {
                Socket socket = server.accept();
                threads.execute(() -> serve(socket, site));
            }
        }
    }

    /** By reflection, so that one class file runs on JVMs without virtual threads. */
    private static ExecutorService threads() {
        if (!"platform".equals(System.getProperty("threads"))) {
            try {
                Object made = Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
                System.out.println("one virtual thread per connection");
                return (ExecutorService) made;
            } catch (ReflectiveOperationException none) {
                // The JVM is older than 21, or virtual threads are a preview that is not enabled.
            }
        }
        System.out.println("one platform thread per connection");
        return Executors.newCachedThreadPool();
    }

    private static void serve(Socket socket, Site site) {
        try (socket) {
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(SILENCE_MS_MAX);
            InputStream in = new BufferedInputStream(socket.getInputStream());
            boolean more = true;
            while (more) {
                String head = head(in);
                if (head.isEmpty()) {
                    return;
                }
                more = !"close".equals(header(head, "connection"));
                skip(in, length(head));
                socket.getOutputStream().write(answer(head.split(" ", 3), site, more));
            }
        } catch (IOException gone) {
            // The client, or what it sent, ended this connection; no other is affected.
        }
    }

    /** The request line and the headers; empty at the end of the stream. */
    private static String head(InputStream in) throws IOException {
        ByteArrayOutputStream head = new ByteArrayOutputStream(512);
        int newlines = 0;
        while (newlines < 2) {
            int next = in.read();
            if (next < 0 && head.size() == 0) {
                return "";
            }
            if (next < 0 || head.size() == HEAD_BYTES_MAX) {
                throw new EOFException("incomplete request head");
            }
            head.write(next);
            newlines = next == '\n' ? newlines + 1 : next == '\r' ? newlines : 0;
        }
        return head.toString(StandardCharsets.ISO_8859_1);
    }

    /** The value of a header in lower case; null if missing. */
    private static String header(String head, String name) {
        for (String line : head.split("\r\n")) {
            int colon = line.indexOf(':');
            if (colon > 0 && line.substring(0, colon).equalsIgnoreCase(name)) {
                return line.substring(colon + 1).trim().toLowerCase(Locale.ROOT);
            }
        }
        return null;
    }

    private static long length(String head) throws IOException {
        String length = header(head, "content-length");
        if (header(head, "transfer-encoding") != null || length != null && !length.matches("[0-9]{1,18}")) {
            throw new IOException("the body has an unknown length");
        }
        return length == null ? 0 : Long.parseLong(length);
    }

    private static void skip(InputStream in, long bytes) throws IOException {
        for (long left = bytes; left > 0; ) {
            long skipped = in.skip(left);
            if (skipped == 0 && in.read() < 0) {
                throw new EOFException("the body ended early");
            }
            left -= Math.max(skipped, 1);
        }
    }

    /** Head and body as one array, so that they are sent in one packet. */
    private static byte[] answer(String[] request, Site site, boolean more) throws IOException {
        if (request.length < 3 || !request[2].startsWith("HTTP/1.1\r\n") || !request[1].startsWith("/")) {
            throw new IOException("not an HTTP/1.1 request");
        }
        boolean get = request[0].equals("GET");
        byte[] file = get ? site.file(request[1].replaceFirst("\\?.*", "")) : null;
        String status = file != null ? "200 OK" : get ? "404 Not Found" : "405 Method Not Allowed";
        byte[] body = file != null ? file : Site.NOTHING;
        String head = "HTTP/1.1 " + status + "\r\nContent-Length: " + body.length
                + (more ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n");
        byte[] answer = new byte[head.length() + body.length];
        System.arraycopy(head.getBytes(StandardCharsets.ISO_8859_1), 0, answer, 0, head.length());
        System.arraycopy(body, 0, answer, head.length(), body.length);
        return answer;
    }
}
