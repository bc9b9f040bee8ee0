import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.Deflater;

/**
 * Keeps direct buffers and deflaters that nobody ends, and frees one large buffer: each at a line of its own.
 * Arguments: how many buffers of 1 MiB, how many deflaters, how long to wait before and after, in ms.
 * Prints READY, and PLANTED when all are there.
 */
public class Plants {
    static final List<Object> KEPT = new ArrayList<>();
    static final int BUFFER = 1 << 20;

    static void freed() throws Exception {
        ByteBuffer large = ByteBuffer.allocateDirect(64 * BUFFER);
        Thread.sleep(100);
        free(large);
    }

    static Object buffer() {
        return ByteBuffer.allocateDirect(BUFFER);
    }

    static Object deflater() {
        return new Deflater();
    }

    /** As frameworks do it. */
    static void free(ByteBuffer buffer) throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        java.lang.reflect.Field field = unsafe.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        unsafe.getMethod("invokeCleaner", ByteBuffer.class).invoke(field.get(null), buffer);
    }

    static void plant(int buffers, int deflaters, int wait) {
        try {
            Thread.sleep(wait);
            freed();
            for (int i = 0; i < buffers; i++) KEPT.add(buffer());
            for (int i = 0; i < deflaters; i++) KEPT.add(deflater());
            System.out.println("PLANTED");
            Thread.sleep(wait);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        int[] n = new int[3];
        for (int i = 0; i < 3; i++) n[i] = Integer.parseInt(args[i]);
        System.out.println("READY");
        Thread planter = new Thread(() -> plant(n[0], n[1], n[2]), "planter");
        planter.start();
        planter.join();
    }
}
