import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/** Fills its heap with maps, lists, strings, byte arrays, and the objects of 32 threads, then dumps it to a file. */
public final class HeapOfAll {
    static final Map<String, List<String>> ORDERS = new HashMap<>();
    static final List<byte[]> PAGES = new ArrayList<>();
    static final Map<Integer, Integer> NUMBERS = new HashMap<>();

    private HeapOfAll() {}

    /** Arguments: the file to write, and the rough size of the live set in MiB. */
    public static void main(String[] args) throws Exception {
        int mib = Integer.parseInt(args[1]);
        for (int i = 0; i < mib * 400; i++) {
            List<String> lines = new ArrayList<>(8);
            for (int j = 0; j < 8; j++) {
                lines.add("line " + i + " of " + j);
            }
            ORDERS.put("order " + i, lines);
        }
        for (int i = 0; i < mib * 2200; i++) {
            NUMBERS.put(i, i ^ 0x5555_5555);
        }
        for (int i = 0; i < mib * 4; i++) {
            PAGES.add(new byte[60_000]);
        }
        CountDownLatch filled = new CountDownLatch(32);
        for (int t = 0; t < 32; t++) {
            Thread thread = new Thread(() -> {
                List<long[]> own = new ArrayList<>();
                for (int i = 0; i < mib; i++) {
                    own.add(new long[64]);
                }
                filled.countDown();
                try {
                    Thread.sleep(600_000L + own.size());
                } catch (InterruptedException ended) {
                    Thread.currentThread().interrupt();
                }
            }, "worker-" + t);
            thread.setDaemon(true);
            thread.start();
        }
        filled.await();
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).dumpHeap(args[0], true);
    }
}
