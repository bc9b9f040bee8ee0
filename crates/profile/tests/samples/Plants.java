import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.Deflater;

/**
 * Keeps direct buffers, deflaters that are never ended, threads, and class loaders, and frees one large buffer, each on
 * its own line. Arguments: the number of 1 MiB buffers, the number of each other kind, and how long to wait before and
 * after, in ms. Prints READY, and PLANTED once everything is in place.
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

    /** Frees the buffer the way frameworks do. */
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
            for (int i = 0; i < deflaters; i++) sleeper();
            for (int i = 0; i < deflaters; i++) KEPT.add(new Own().define(EMPTY));
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

    static void sleeper() {
        Thread sleeper = new Thread(() -> java.util.concurrent.locks.LockSupport.park(), "sleeper");
        sleeper.setDaemon(true);
        sleeper.start();
    }

    static class Own extends ClassLoader {
        Class<?> define(byte[] file) {
            return defineClass(null, file, 0, file.length);
        }
    }

    /** An empty class P, in Java 8's format. */
    static final byte[] EMPTY = {
        (byte) 0xca, (byte) 0xfe, (byte) 0xba, (byte) 0xbe, 0, 0, 0, 52, 0, 5, 1, 0, 1, 'P', 7, 0, 1, 1, 0, 16,
        'j', 'a', 'v', 'a', '/', 'l', 'a', 'n', 'g', '/', 'O', 'b', 'j', 'e', 'c', 't', 7, 0, 3,
        0, 0x21, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0,
    };
}
