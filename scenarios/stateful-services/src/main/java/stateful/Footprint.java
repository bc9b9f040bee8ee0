package stateful;

import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.Locale;
import stateful.DocumentService.Keeping;

/**
 * How many bytes does a service instance use? Starts instances in steps, updates each once, and stores nothing for them
 * itself.
 *
 * <p>Arguments: {@code PORT WORK memory|durable COUNT…}, counts ascending.
 *
 * <p>Phases, each of which should begin with a collection: {@code warmup} with half of the first count, which absorbs
 * one-time costs such as those of the first collection and measurement; then {@code nCOUNT} for each count, with {@code
 * instances=COUNT}.
 */
public final class Footprint {
    /** Longer than the 5 s between commits of the index, whose writer holds documents in the heap until then. */
    private static final long COMMITTED_MS = 6_000;

    private Footprint() {}

    public static void main(String[] arguments) throws Throwable {
        int port = Integer.parseInt(arguments[0]);
        Path work = Paths.get(arguments[1]);
        Keeping keeping = Keeping.valueOf(arguments[2].toUpperCase(Locale.ROOT));
        try {
            Node node = new Node(port, work.resolve("node-0"), "node-0");
            node.serve(keeping);
            Node.awaitFactory(List.of(node));
            node.keepStill(keeping);
            Client client = new Client(node, Client.Way.INSIDE);
            int instances = Integer.parseInt(arguments[3]) / 2;
            grow(client, keeping, 0, instances);
            Phase.begin("warmup");
            for (int index = 3; index < arguments.length; index++) {
                int count = Integer.parseInt(arguments[index]);
                grow(client, keeping, instances, count);
                instances = count;
                Phase.begin("n" + count, "instances=" + count);
            }
        } catch (Throwable failure) {
            // Xenon's threads would keep a failed process alive.
            failure.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    /** Any failure aborts the run, because it would be missing from the result. */
    private static void grow(Client client, Keeping keeping, int from, int to) throws Exception {
        Document state = Document.small();
        client.create(from, to - from, state).whole();
        client.put(from, to - from, to - from, state).whole();
        if (keeping != Keeping.MEMORY) {
            Thread.sleep(COMMITTED_MS);
        }
    }
}
