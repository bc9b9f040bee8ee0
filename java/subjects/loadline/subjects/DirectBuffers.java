package loadline.subjects;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Holds 64 direct buffers of 1 MiB, every page written: 64 MiB of malloc. Each buffer has its own mapping while glibc's
 * threshold is lower (it grows when a larger mapping is freed; {@code MALLOC_MMAP_THRESHOLD_} fixes it). One more
 * buffer is allocated before the first line, so that the lines differ only in the number of buffers.
 *
 * <p>Prints {@code BEFORE held=0}, waits for a line, prints {@code AFTER held=67108864}, and keeps running.
 */
// truth: buffers=64 buffer_bytes=1048576 direct_bytes=67108864
public final class DirectBuffers {
    private static final int BUFFER_BYTES = 1 << 20;

    private DirectBuffers() {}

    public static void main(String[] args) throws IOException {
        ByteBuffer rehearsed = written();
        ByteBuffer[] held = new ByteBuffer[64];
        Dialogue.sayAndWait("BEFORE held=0");
        long bytes = 0;
        for (int i = 0; i < held.length; i++) {
            held[i] = written();
            bytes += held[i].capacity();
        }
        Dialogue.sayAndStay("AFTER held=" + bytes, new Object[] {rehearsed, held});
    }

    private static ByteBuffer written() {
        ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);
        for (int at = 0; at < BUFFER_BYTES; at += 4096) {
            buffer.put(at, (byte) 1);
        }
        return buffer;
    }
}
