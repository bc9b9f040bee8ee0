package loadline.subjects;

import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.util.Random;

/**
 * Responds to each request with the same 256 bytes, which are not HTTP, and closes the connection.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: answer_bytes=256
public final class SpeaksGarbage {
    private SpeaksGarbage() {}

    public static void main(String[] args) throws IOException {
        byte[] garbage = new byte[256];
        new Random(1).nextBytes(garbage);
        Listener.tcp(Integer.parseInt(args[0]), socket -> {
            readHead(socket);
            socket.getOutputStream().write(garbage);
        });
    }

    /** Reads up to the empty line after a request's head; unread bytes would turn the close into a reset. */
    private static void readHead(Socket socket) throws IOException {
        InputStream in = socket.getInputStream();
        int lineEnds = 0;
        while (lineEnds < 2) {
            int c = in.read();
            if (c < 0) {
                return;
            } else if (c == '\n') {
                lineEnds++;
            } else if (c != '\r') {
                lineEnds = 0;
            }
        }
    }
}
