import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.Reference;
import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import javax.management.ObjectName;

/**
 * Keeps known amounts in known places, and dumps its own heap: live objects to the first argument, all objects to the
 * second. Prints the class histogram in between.
 */
// truth: spool_arrays=1000 spool_bytes=8000 threads=40 buffer_bytes=50000 local_bytes=30000 items=2000 item_bytes=500
// truth: soft_bytes=3000000 joint_bytes=2000000 garbage_bytes=4000000
public final class Planted {
    static final List<byte[]> SPOOL = new ArrayList<>();
    static final ThreadLocal<byte[]> BUFFER = new ThreadLocal<>();
    static final Pool POOL = new Pool();
    static final SoftReference<byte[]> SOFT = new SoftReference<>(new byte[3_000_000]);
    static final byte[][] LEFT = {new byte[2_000_000]};
    static Object garbage = new byte[4_000_000];

    static final class Item {
        final int number;
        final byte[] content = new byte[500];

        Item(int number) {
            this.number = number;
        }
    }

    static final class Pool {
        final Map<Integer, Item> idle = new HashMap<>();
    }

    static final class Other {
        static final byte[][] RIGHT = {LEFT[0]};
    }

    static void work(CountDownLatch up) {
        BUFFER.set(new byte[50_000]);
        byte[] local = new byte[30_000];
        up.countDown();
        try {
            Thread.sleep(600_000);
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
        Reference.reachabilityFence(local);
    }

    public static void main(String[] files) throws Exception {
        for (int i = 0; i < 1_000; i++) {
            SPOOL.add(new byte[8_000]);
        }
        for (int i = 0; i < 2_000; i++) {
            POOL.idle.put(i, new Item(i));
        }
        if (Other.RIGHT[0] != LEFT[0]) {
            throw new AssertionError();
        }
        CountDownLatch up = new CountDownLatch(40);
        for (int i = 0; i < 40; i++) {
            Thread thread = new Thread(() -> work(up), "planted-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        up.await();
        ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
        String[] signature = {String[].class.getName()};
        Object[] none = {new String[0]};
        Object histogram =
                ManagementFactory.getPlatformMBeanServer().invoke(commands, "gcClassHistogram", none, signature);
        HotSpotDiagnosticMXBean dumps = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        dumps.dumpHeap(files[0], true);
        garbage = null;
        dumps.dumpHeap(files[1], false);
        System.out.println(histogram);
    }
}
