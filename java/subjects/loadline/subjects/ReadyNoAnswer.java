package loadline.subjects;

import java.io.IOException;
import java.io.InputStream;

/**
 * Accepts connections and reads everything, but never sends a byte.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: answer_bytes=0
public final class ReadyNoAnswer {
    private ReadyNoAnswer() {}

    public static void main(String[] args) throws IOException {
        Listener.tcp(Integer.parseInt(args[0]), socket -> {
            InputStream in = socket.getInputStream();
            byte[] part = new byte[8192];
            while (in.read(part) >= 0) {
                // Read and discarded.
            }
        });
    }
}
