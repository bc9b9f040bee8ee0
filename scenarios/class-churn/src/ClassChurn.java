import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads and unloads classes in waves, to see whether a JVM returns the memory used by their metadata.
 *
 * <p>Loader i belongs to cluster i mod {@code CLUSTERS}, so that neighbors in memory belong to different clusters and
 * unloading some leaves holes everywhere. Every loader defines, links and initializes its own copies of the same
 * classes.
 *
 * <p>Phases: {@code empty}, before the first cluster; {@code spike}, all loaded; {@code valley}, all but the first
 * dropped; {@code again}, the dropped ones reloaded; {@code end}, all dropped. Each waits for a line on stdin. Dropped
 * means unreachable: unloading takes a full collection, which Loadline requests. With {@code collect}, the program
 * requests it itself, for manual trials.
 *
 * <p>Arguments: {@code CLUSTERS LOADERS CLASSES FIELDS [collect]}: loaders per cluster, classes per loader, fields per
 * class of each of three types.
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
        // The very first class causes one-time costs in the JVM, which are not part of the waves.
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

    /** Loads every cluster, in turn, and prints how long it took. */
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

    /** Has only the JVM's boot loader as its parent, so that every class is defined again. */
    private static final class Loader extends ClassLoader {
        Loader() {
            super(null);
        }

        void define(byte[] bytes, int number) throws ClassNotFoundException {
            Class.forName(defineClass("Churned" + number, bytes, 0, bytes.length).getName(), true, this);
        }
    }
}
