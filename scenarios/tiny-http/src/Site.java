import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/**
 * Shared by these servers, so that they differ only in how they handle HTTP: files from one folder, which are read
 * again for each request, and a loopback address.
 */
final class Site {
    static final byte[] NOTHING = {};
    /** Length of the accept queue. */
    static final int BACKLOG = 1024;

    private final Path root;

    /** Arguments of a server: {@code PORT [ROOT]}, by default {@code www}. */
    Site(String[] args) throws IOException {
        root = Paths.get(args.length > 1 ? args[1] : "www").toRealPath();
    }

    /** The file at this URL path; null if there is none below the root. */
    byte[] file(String path) throws IOException {
        Path file = root.resolve("." + path).normalize();
        return file.startsWith(root) && Files.isRegularFile(file) ? Files.readAllBytes(file) : null;
    }

    /** 127.0.0.1: not reachable from other machines. */
    static InetAddress loopback() throws UnknownHostException {
        return InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
    }

    /** Reads a request's body before the response is sent, because unread bytes can break the connection. */
    static void drain(InputStream body) throws IOException {
        if (body != null && body.read() >= 0) {
            byte[] part = new byte[8192];
            while (body.read(part) >= 0) {
                // Read and discarded.
            }
        }
    }
}
