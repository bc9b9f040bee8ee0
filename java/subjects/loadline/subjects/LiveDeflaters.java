package loadline.subjects;

import java.io.IOException;
import java.util.Random;
import java.util.zip.Deflater;

/**
 * Holds COUNT (200) live Deflaters, each of which has deflated 256 KiB of noise: memory that zlib takes from malloc,
 * unknown to Native Memory Tracking. zlib requests (1 << 15 + 2) + (1 << 8 + 9) bytes of tables, for its window of 2^15
 * bytes and memory level 8, in four blocks of 64 KiB, plus about 6 KB of state (zconf.h). The noise makes it write all
 * of them.
 *
 * <p>Arguments: {@code [COUNT]}. Prints {@code BEFORE deflaters=0}, waits for a line, prints {@code AFTER deflaters=200
 * asked_bytes=…}, and keeps running.
 */
// truth: deflaters=200 tables_bytes_each=262144
public final class LiveDeflaters {
    private static final int TABLES_BYTES = (1 << 17) + (1 << 17);

    private LiveDeflaters() {}

    public static void main(String[] args) throws IOException {
        Deflater[] held = new Deflater[args.length > 0 ? Integer.parseInt(args[0]) : 200];
        byte[] noise = new byte[256 << 10];
        new Random(1).nextBytes(noise);
        byte[] out = new byte[8 << 10];
        Deflater rehearsed = used(noise, out);
        Dialogue.sayAndWait("BEFORE deflaters=0");
        for (int i = 0; i < held.length; i++) {
            held[i] = used(noise, out);
        }
        String figures = " asked_bytes=" + (long) held.length * TABLES_BYTES;
        Dialogue.sayAndStay("AFTER deflaters=" + held.length + figures, new Object[] {rehearsed, held});
    }

    private static Deflater used(byte[] noise, byte[] out) {
        Deflater deflater = new Deflater();
        deflater.setInput(noise);
        // Never finished, to represent one in the middle of its work; a finished one would be as large.
        while (!deflater.needsInput()) {
            deflater.deflate(out);
        }
        return deflater;
    }
}
