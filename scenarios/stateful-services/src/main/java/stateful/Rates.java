package stateful;

import java.net.URI;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import stateful.DocumentService.Keeping;

/**
 * How many updates and reads per second? The client is in the process, as in the source.
 *
 * <p>Arguments: {@code PORT WORK memory|durable|replicated inside|sockets OPERATIONS [NODES]}. The first node listens
 * on the port, the others on free ones; all live in this JVM, each with a folder below WORK.
 *
 * <p>Phases: {@code warmup} does the work of the next two once, {@code get} reads, {@code put} updates, {@code done}.
 */
public final class Rates {
    /** Only a few, so that operations dominate, not state. */
    private static final int DOCUMENTS = 64;

    private Rates() {}

    public static void main(String[] arguments) throws Throwable {
        int port = Integer.parseInt(arguments[0]);
        Path work = Paths.get(arguments[1]);
        Keeping keeping = Keeping.valueOf(arguments[2].toUpperCase(Locale.ROOT));
        Client.Way way = Client.Way.valueOf(arguments[3].toUpperCase(Locale.ROOT));
        int operations = Integer.parseInt(arguments[4]);
        int nodes = arguments.length > 5 ? Integer.parseInt(arguments[5]) : 1;
        try {
            Document state = Document.update(Paths.get("state.json"));
            Client client = new Client(start(port, work, keeping, nodes), way);
            client.create(0, DOCUMENTS, state).whole();
            Phase.begin("warmup");
            client.put(0, DOCUMENTS, operations, state).say("put");
            client.get(0, DOCUMENTS, operations).say("get");
            Phase.begin("get");
            client.get(0, DOCUMENTS, operations).say("get");
            Phase.begin("put");
            client.put(0, DOCUMENTS, operations, state).say("put");
            Phase.begin("done");
        } catch (Throwable failure) {
            // Xenon's threads would keep a failed process alive.
            failure.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    /** The first of a group of connected nodes that serve documents. */
    private static Node start(int port, Path work, Keeping keeping, int count) throws Throwable {
        List<Node> nodes = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            String name = "node-" + index;
            nodes.add(new Node(index == 0 ? port : 0, work.resolve(name), name));
        }
        List<URI> all = nodes.stream().map(Node::uri).collect(Collectors.toList());
        for (Node node : nodes) {
            node.join(all);
        }
        for (Node node : nodes) {
            node.awaitGroup(count);
            node.serve(keeping);
        }
        Node.awaitFactory(nodes);
        return nodes.get(0);
    }
}
