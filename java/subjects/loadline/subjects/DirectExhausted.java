package loadline.subjects;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.Executors;

/**
 * Takes 16 MiB of direct memory at startup and needs 4 MiB more per response. Under {@code
 * -XX:MaxDirectMemorySize=18m}, every response is a 503, and the error is printed.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: buffers=4 direct_bytes=16777216
public final class DirectExhausted {
    private static final int BUFFER_BYTES = 4 << 20;
    private static final ByteBuffer[] HELD = new ByteBuffer[4];

    private DirectExhausted() {}

    public static void main(String[] args) throws IOException {
        for (int i = 0; i < HELD.length; i++) {
            HELD[i] = written();
        }
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(2), exchange -> {
            int status = 200;
            try {
                written();
            } catch (OutOfMemoryError e) {
                System.err.println(e);
                status = 503;
            }
            Listener.answer(exchange, status, new byte[] {'\n'});
        });
    }

    private static ByteBuffer written() {
        ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);
        for (int at = 0; at < BUFFER_BYTES; at += 4096) {
            buffer.put(at, (byte) 1);
        }
        return buffer;
    }
}
