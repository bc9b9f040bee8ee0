import java.util.ArrayList;
import java.util.List;

/** Fills some of the heap, collects once, prints READY, then allocates a little more and waits. */
public class Sample {
    static final List<byte[]> held = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 200; i++) {
            held.add(new byte[20_000]);
            byte[] garbage = new byte[100_000];
            garbage[0] = 1;
        }
        System.gc();
        System.out.println("READY");
        for (int i = 0; i < 600; i++) {
            held.add(new byte[1_000]);
            Thread.sleep(1_000);
        }
    }
}
