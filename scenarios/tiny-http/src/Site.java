import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/**
 * What the servers of this folder have in common, so that they differ in nothing but HTTP: the files below one folder,
 * each read again for every request, and an address that only this machine reaches.
 */
final class Site {
    static final byte[] NOTHING = {};
    /** Connections that may wait to be accepted. */
    static final int BACKLOG = 1024;

    private final Path root;

    /** Arguments of a server: {@code PORT [ROOT]}, {@code www} unless given. */
    Site(String[] args) throws IOException {
        root = Paths.get(args.length > 1 ? args[1] : "www").toRealPath();
    }

    /** The file at this path of a URL; null where there is none below the root. */
    byte[] file(String path) throws IOException {
        Path file = root.resolve("." + path).normalize();
        return file.startsWith(root) && Files.isRegularFile(file) ? Files.readAllBytes(file) : null;
    }

    /** 127.0.0.1: what is weighed here is nobody else's business. */
    static InetAddress loopback() throws UnknownHostException {
        return InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
    }

    /** Reads the body of a request to its end before it is answered: what is left unread can cost the connection. */
    static void drain(InputStream body) throws IOException {
        if (body != null && body.read() >= 0) {
            byte[] part = new byte[8192];
            while (body.read(part) >= 0) {
                // Read and forgotten.
            }
        }
    }
}
