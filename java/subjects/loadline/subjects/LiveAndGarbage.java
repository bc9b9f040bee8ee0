package loadline.subjects;

import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.Executors;

/**
 * Holds 48 MiB of live heap and 80 MiB of garbage, in pieces of 16 KiB including the header, well mixed. The garbage
 * stays until the first collection: with Serial, {@code -Xmx320m -Xmn240m} has room for both in eden.
 *
 * <p>Arguments: {@code [PORT]}. With a port, responds to every request with 204; without, prints {@code READY
 * live=50331648 garbage=83886080} and keeps running.
 */
// truth: live_bytes=50331648 garbage_bytes=83886080 status=204
public final class LiveAndGarbage {
    private static final int PIECE_BYTES = 16 << 10;
    /** Array header on 64-bit HotSpot with compressed class pointers. */
    private static final int HEADER_BYTES = 16;
    private static final int LIVE = 3072;
    private static final int GARBAGE = 5120;
    private static final byte[][] HELD = new byte[LIVE][];
    private static byte[] dropped;

    private LiveAndGarbage() {}

    public static void main(String[] args) throws IOException {
        long garbage = 0;
        for (int i = 0; i < LIVE; i++) {
            HELD[i] = piece(i);
            for (; garbage * LIVE < (long) GARBAGE * (i + 1); garbage++) {
                dropped = piece(i);
            }
        }
        dropped = null;
        if (args.length > 0) {
            Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4),
                    exchange -> Listener.answer(exchange, 204, new byte[0]));
            return;
        }
        String figures = "READY live=" + (long) LIVE * PIECE_BYTES + " garbage=" + garbage * PIECE_BYTES;
        Dialogue.sayAndStay(figures, HELD);
    }

    /** Every byte is written, so every page is resident. */
    private static byte[] piece(int i) {
        byte[] piece = new byte[PIECE_BYTES - HEADER_BYTES];
        Arrays.fill(piece, (byte) (i | 1));
        return piece;
    }
}
