package loadline.subjects;

import java.io.IOException;

/**
 * Works on its own in three steps and waits at each marker for permission to continue: {@code empty} (nothing held),
 * {@code full} (32 MiB of heap held), {@code gone} (nothing held, and as much garbage). Between the first two, it
 * reports 300 operations, 3 of them failed, in two lines; between the last two, none.
 *
 * <p>Arguments: {@code [WAY]}, one of {@code right}, {@code unread} (says that it waits but does not), {@code closed}
 * (with standard input closed), {@code late} (does not announce waiting), {@code swapped}, {@code unknown}, {@code
 * twice}, {@code silent} (no second marker), {@code dies} (while working after the first marker), {@code ends} (after
 * the last marker), {@code failing} (every operation fails), {@code own} (markers of another form, without waiting).
 */
// truth: phases=3 full_heap_bytes=33554432 ops=300 fail=3 instances=512
public final class OwnPhases {
    private static final int BLOCK_BYTES = 64 << 10;
    private static final int HEADER_BYTES = 16;
    private static byte[][] held;

    private OwnPhases() {}

    public static void main(String[] args) throws IOException, InterruptedException {
        String way = args.length > 0 ? args[0] : "right";
        if (way.equals("closed")) {
            System.in.close();
        }
        phase(way, "empty", " instances=0");
        work(way);
        if (way.equals("silent")) {
            Thread.sleep(60_000);
        }
        if (way.equals("dies")) {
            System.exit(7);
        }
        phase(way, name(way), " instances=" + held.length + " mode=heap");
        held = null;
        phase(way, "gone", " instances=0");
        if (!way.equals("ends")) {
            Thread.sleep(60_000);
        }
    }

    /** The word used instead of {@code full}. */
    private static String name(String way) {
        switch (way) {
            case "swapped":
                return "gone";
            case "unknown":
                return "fulll";
            case "twice":
                return "empty";
            default:
                return "full";
        }
    }

    private static void work(String way) {
        long start = System.nanoTime();
        held = new byte[512][];
        for (int i = 0; i < held.length; i++) {
            held[i] = new byte[BLOCK_BYTES - HEADER_BYTES];
        }
        int failed = way.equals("failing") ? 200 : 3;
        double seconds = (System.nanoTime() - start) / 1e9 / 300;
        System.out.println("loadline: ops=200 s=" + 200 * seconds + " fail=" + failed + " name=put");
        String none = way.equals("failing") ? " fail=100" : "";
        System.out.println("loadline: ops=100 s=" + 100 * seconds + none + " name=get");
    }

    private static void phase(String way, String name, String more) throws IOException, InterruptedException {
        boolean waits = !way.equals("late") && !way.equals("own");
        System.out.println((way.equals("own") ? "12:00 INFO == " + name + " ==" : "loadline: phase=" + name)
            + (waits ? " wait=1" : "") + more);
        System.out.flush();
        if (way.equals("unread") || !waits) {
            // Long enough to be measured, even though the program does not wait.
            Thread.sleep(1500);
            return;
        }
        while (true) {
            int c;
            try {
                c = System.in.read();
            } catch (IOException closed) {
                return;
            }
            if (c < 0 || c == '\n') {
                return;
            }
        }
    }
}
