import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads and unloads classes in waves, to see whether a JVM gives the memory of their metadata back.
 *
 * <p>Classes belong to loaders and loaders to clusters: loader i to cluster i mod {@code CLUSTERS}. So neighbours in
 * memory belong to different clusters, and unloading some of them leaves holes everywhere. Every loader defines the
 * same classes, each one again, and links and initialises them.
 *
 * <p>Phases: {@code empty}, before the first cluster; {@code spike}, all loaded; {@code valley}, all but the first
 * let go; {@code again}, what was let go loaded again; {@code end}, all let go. At each it waits for a line on its
 * standard input. Let go means unreachable: it is a full collection that unloads, and Loadline asks for it. With the
 * word {@code collect} the program does so itself, for trials by hand.
 *
 * <p>Arguments: {@code CLUSTERS LOADERS CLASSES FIELDS [collect]}: loaders of a cluster, classes of a loader, fields of
 * each of three types.
 */
public final class ClassChurn {
    private static final long SETTLE_MS = 1000;

    private final int clusters;
    private final int loaders;
    private final List<byte[]> classes = new ArrayList<>();
    /** The loaders of each cluster; a class lives as long as its loader. */
    private final List<List<Loader>> living = new ArrayList<>();
    private final boolean collect;

    private ClassChurn(String[] args) throws IOException {
        clusters = Integer.parseInt(args[0]);
        loaders = Integer.parseInt(args[1]);
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            classes.add(ClassBytes.of("Churned" + i, Integer.parseInt(args[3])));
        }
        collect = args.length > 4 && args[4].equals("collect");
        for (int i = 0; i < clusters; i++) {
            living.add(new ArrayList<>());
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 4) {
            System.err.println("arguments: CLUSTERS LOADERS CLASSES FIELDS [collect]");
            System.exit(2);
        }
        new ClassChurn(args).waves();
    }

    private void waves() throws Exception {
        // What the first class of all brings into the JVM stays: it is no part of the waves.
        new Loader().define(classes.get(0), 0);
        phase("empty");
        load();
        phase("spike");
        living.subList(1, clusters).forEach(List::clear);
        phase("valley");
        load();
        phase("again");
        living.forEach(List::clear);
        phase("end");
    }

    /** Gives every cluster its loaders, in turn, and says how long that took. */
    private void load() throws ClassNotFoundException {
        long begin = System.nanoTime();
        long defined = 0;
        for (int i = 0; i < loaders; i++) {
            for (List<Loader> cluster : living) {
                if (cluster.size() > i) {
                    continue;
                }
                Loader loader = new Loader();
                cluster.add(loader);
                for (int number = 0; number < classes.size(); number++) {
                    loader.define(classes.get(number), number);
                    defined++;
                }
            }
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        System.out.println("loadline: ops=" + defined + " s=" + seconds + " fail=0 name=load");
    }

    /** What is alive now is what the phase is about. */
    private void phase(String name) throws IOException, InterruptedException {
        if (collect) {
            System.gc();
            System.gc();
            Thread.sleep(SETTLE_MS);
        }
        long alive = living.stream().mapToLong(List::size).sum();
        String counters = " loaders=" + alive + " classes=" + alive * classes.size();
        System.out.println("loadline: phase=" + name + " wait=1" + counters);
        System.out.flush();
        while (true) {
            int c = System.in.read();
            if (c < 0 || c == '\n') {
                return;
            }
        }
    }

    /** A loader without a parent but the JVM's own, so that every class is defined again. */
    private static final class Loader extends ClassLoader {
        Loader() {
            super(null);
        }

        void define(byte[] bytes, int number) throws ClassNotFoundException {
            Class.forName(defineClass("Churned" + number, bytes, 0, bytes.length).getName(), true, this);
        }
    }
}
