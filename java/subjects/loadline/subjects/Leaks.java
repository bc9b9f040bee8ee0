package loadline.subjects;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.Deflater;

/**
 * Uses more and more of one kind of memory, at a steady rate, until something arrives on its standard input.
 *
 * <p>Twenty times a second it takes its share of {@code rate=KIB} per second: {@code heap} arrays, {@code direct}
 * buffers, {@code metaspace} classes in their own loaders, {@code threads} that sleep, or deflaters that use {@code
 * malloc}. {@code cache} fills up to {@code most=MIB} of arrays and then replaces the oldest; {@code idle} takes
 * nothing. It requests a full collection twice a second, which makes the live set known.
 *
 * <p>Arguments: {@code WHAT rate=KIB [most=MIB]}.
 */
// truth: full_collections_per_second=2
public final class Leaks {
    private static final int TURNS = 20;
    private static final int KIB = 1024;
    /** The approximate memory of each. */
    private static final int CLASS_BYTES = 8 * KIB;
    private static final int THREAD_BYTES = 128 * KIB;
    private static final int DEFLATER_BYTES = 270 * KIB;
    private static final byte[] INPUT = new byte[64 * KIB];
    private static final byte[] OUTPUT = new byte[64 * KIB];
    private static final List<Object> HELD = new ArrayList<>();

    private Leaks() {}

    public static void main(String[] args) throws IOException, InterruptedException, ReflectiveOperationException {
        long rate = number(args, "rate") * KIB;
        long most = number(args, "most") * KIB * KIB;
        System.out.println("READY");
        long owed = 0;
        for (int turn = 0; System.in.available() == 0; turn++) {
            owed += rate / TURNS;
            owed -= take(args[0], owed, most);
            if (turn % (TURNS / 2) == 0) {
                System.gc();
            }
            LockSupport.parkNanos(1_000_000_000L / TURNS);
        }
        System.exit(0);
    }

    /** Takes as many whole pieces as are due; returns their bytes. */
    private static long take(String what, long owed, long most) throws IOException, ReflectiveOperationException {
        switch (what) {
            case "heap":
                HELD.add(new byte[(int) owed]);
                return owed;
            case "cache":
                HELD.add(new byte[(int) owed]);
                while ((long) HELD.size() * owed > most) {
                    HELD.remove(0);
                }
                return owed;
            case "direct":
                ByteBuffer buffer = ByteBuffer.allocateDirect((int) owed);
                for (int at = 0; at < buffer.capacity(); at += 4096) {
                    buffer.put(at, (byte) 1);
                }
                HELD.add(buffer);
                return owed;
            case "metaspace":
                for (long left = owed; left >= CLASS_BYTES; left -= CLASS_BYTES) {
                    HELD.add(new ClassFiles(200).make("Made"));
                }
                return owed / CLASS_BYTES * CLASS_BYTES;
            case "threads":
                for (long left = owed; left >= THREAD_BYTES; left -= THREAD_BYTES) {
                    Thread thread = new Thread(LockSupport::park);
                    thread.setDaemon(true);
                    thread.start();
                }
                return owed / THREAD_BYTES * THREAD_BYTES;
            case "malloc":
                for (long left = owed; left >= DEFLATER_BYTES; left -= DEFLATER_BYTES) {
                    Deflater deflater = new Deflater();
                    deflater.setInput(INPUT);
                    deflater.deflate(OUTPUT, 0, OUTPUT.length, Deflater.FULL_FLUSH);
                    HELD.add(deflater);
                }
                return owed / DEFLATER_BYTES * DEFLATER_BYTES;
            default:
                return owed;
        }
    }

    private static long number(String[] args, String key) {
        for (String argument : args) {
            if (argument.startsWith(key + "=")) {
                return Long.parseLong(argument.substring(key.length() + 1));
            }
        }
        return 0;
    }
}
