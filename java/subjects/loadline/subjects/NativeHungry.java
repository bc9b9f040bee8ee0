package loadline.subjects;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.Executors;

/**
 * Holds MIB direct buffers of 1 MiB each, every page written, and responds to every request with 204. Direct memory is
 * limited by {@code -XX:MaxDirectMemorySize}, by default the maximum heap size.
 *
 * <p>Arguments: {@code PORT MIB}.
 */
// truth: direct_bytes_per_mib=1048576 status=204
public final class NativeHungry {
    private static final int MIB = 1 << 20;
    private static ByteBuffer[] held;

    private NativeHungry() {}

    public static void main(String[] args) throws IOException {
        held = new ByteBuffer[Integer.parseInt(args[1])];
        for (int i = 0; i < held.length; i++) {
            held[i] = ByteBuffer.allocateDirect(MIB);
            for (int at = 0; at < MIB; at += 4096) {
                held[i].put(at, (byte) 1);
            }
        }
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4),
                exchange -> Listener.answer(exchange, 204, new byte[0]));
    }
}
