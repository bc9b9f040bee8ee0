import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A toy file server that sends a file in one of several ways: {@code GET /NAME} returns that file from the root folder.
 * One thread per connection, blocking channels, and just enough HTTP/1.1 for a load generator.
 *
 * <p>Arguments: {@code PORT ROOT FORM}. The forms:
 * <ul>
 *   <li>{@code whole}: the whole file in an array, then one write. The JDK copies the array into a direct buffer of
 *       the same size, which it keeps for the thread; see {@code jdk.nio.maxCachedBufferSize}.
 *   <li>a size in bytes, such as {@code 8192}: through a buffer of that size.
 *   <li>{@code transfer}: {@code FileChannel.transferTo}; the bytes never enter the process.
 * </ul>
 *
 * <p>A failed request, even for lack of memory, is logged to stderr and closes only its own connection.
 */
public final class FileServer {
    private static final int HEAD_BYTES_MAX = 8192;
    private static final int BACKLOG = 1024;

    private FileServer() {}

    /** A way to send a file. */
    private interface Form {
        void send(Path file, SocketChannel to) throws IOException;
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(args[0]);
        Path root = Paths.get(args[1]).toRealPath();
        Form form = form(args[2]);
        ExecutorService threads = Executors.newCachedThreadPool();
        try (ServerSocketChannel server = ServerSocketChannel.open()) {
            server.bind(new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), port), BACKLOG);
            while (true) {
                SocketChannel client = server.accept();
                threads.execute(() -> serve(client, root, form));
            }
        }
    }

    private static Form form(String word) {
        if (word.equals("whole")) {
            return FileServer::whole;
        }
        if (word.equals("transfer")) {
            return FileServer::transfer;
        }
        int bytes = Integer.parseInt(word);
        return (file, to) -> buffered(file, to, bytes);
    }

    private static void whole(Path file, SocketChannel to) throws IOException {
        write(to, ByteBuffer.wrap(Files.readAllBytes(file)));
    }

    private static void buffered(Path file, SocketChannel to, int bytes) throws IOException {
        byte[] buffer = new byte[bytes];
        try (InputStream in = Files.newInputStream(file)) {
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                write(to, ByteBuffer.wrap(buffer, 0, read));
            }
        }
    }

    private static void transfer(Path file, SocketChannel to) throws IOException {
        try (FileChannel from = FileChannel.open(file)) {
            long at = 0;
            while (at < from.size()) {
                at += from.transferTo(at, from.size() - at, to);
            }
        }
    }

    private static void write(SocketChannel to, ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            to.write(bytes);
        }
    }

    private static void serve(SocketChannel client, Path root, Form form) {
        try (client) {
            client.setOption(StandardSocketOptions.TCP_NODELAY, true);
            ByteBuffer head = ByteBuffer.allocate(HEAD_BYTES_MAX);
            for (String request = next(client, head); request != null; request = next(client, head)) {
                answer(client, request, root, form);
            }
        } catch (IOException gone) {
            // The client, or what it sent, ended this connection; no other is affected.
        } catch (OutOfMemoryError none) {
            // As in a server that catches Throwable around each request: this line is the only trace of the failure.
            System.err.println("request failed: " + none);
        }
    }

    private static void answer(SocketChannel client, String request, Path root, Form form) throws IOException {
        String[] words = request.split(" ", 3);
        boolean asked = words.length == 3 && words[0].equals("GET");
        Path file = asked ? root.resolve("." + words[1]).normalize() : root;
        boolean found = asked && file.startsWith(root) && Files.isRegularFile(file);
        String status = found ? "200 OK" : asked ? "404 Not Found" : "405 Method Not Allowed";
        String head = "HTTP/1.1 " + status + "\r\nContent-Length: " + (found ? Files.size(file) : 0) + "\r\n\r\n";
        write(client, ByteBuffer.wrap(head.getBytes(StandardCharsets.ISO_8859_1)));
        if (found) {
            form.send(file, client);
        }
    }

    /** Reads a request's head; null at the end of the connection. Bodies are not supported. */
    private static String next(SocketChannel client, ByteBuffer head) throws IOException {
        head.clear();
        while (client.read(head) >= 0) {
            String text = new String(head.array(), 0, head.position(), StandardCharsets.ISO_8859_1);
            if (text.endsWith("\r\n\r\n")) {
                return text;
            }
            if (!head.hasRemaining()) {
                throw new EOFException("the request head is too long");
            }
        }
        return null;
    }
}
