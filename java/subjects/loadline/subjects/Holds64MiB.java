package loadline.subjects;

import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.Executors;

/**
 * Holds 64 MiB of live heap and responds to every request with 204. The blocks are 64 KiB including the object header,
 * because blocks of 1 MiB would be humongous in G1 and, with their headers, fill two regions each. Every byte is
 * written, so every page is resident.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: heap_bytes=67108864 status=204
public final class Holds64MiB {
    private static final int BLOCK_BYTES = 64 << 10;
    /** Array header on 64-bit HotSpot with compressed class pointers. */
    private static final int HEADER_BYTES = 16;
    private static final byte[][] HELD = new byte[1024][];

    private Holds64MiB() {}

    public static void main(String[] args) throws IOException {
        for (int i = 0; i < HELD.length; i++) {
            HELD[i] = new byte[BLOCK_BYTES - HEADER_BYTES];
            Arrays.fill(HELD[i], (byte) (i | 1));
        }
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4),
                exchange -> Listener.answer(exchange, 204, new byte[0]));
    }
}
