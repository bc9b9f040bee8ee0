package stateful;

import java.net.URI;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import stateful.DocumentService.Keeping;

/**
 * Serves documents to external clients: one node, or a group of them, each in its own JVM.
 *
 * <p>Arguments: {@code PORT WORK memory|durable|replicated [NODES]}. The first process starts the others with its own
 * command line plus the node's number; they listen on the ports after PORT, use directories below WORK, and exit
 * when the first one does.
 *
 * <p>{@code POST /documents} creates an instance; {@code PUT} and {@code GET /documents/NAME} use it.
 */
public final class Server {
    private Server() {}

    public static void main(String[] arguments) throws Throwable {
        int port = Integer.parseInt(arguments[0]);
        Path work = Paths.get(arguments[1]);
        Keeping keeping = Keeping.valueOf(arguments[2].toUpperCase(Locale.ROOT));
        int nodes = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 1;
        int index = arguments.length > 4 ? Integer.parseInt(arguments[4]) : 0;
        try {
            if (index > 0) {
                ProcessHandle.current().parent().ifPresent(first -> first.onExit().thenRun(() -> System.exit(0)));
            }
            for (int other = 1; index == 0 && other < nodes; other++) {
                startNode(other);
            }
            Node node = new Node(port + index, work.resolve("node-" + index), "node-" + index);
            node.join(loopback(port, nodes));
            node.awaitGroup(nodes);
            node.serve(keeping);
        } catch (Throwable failure) {
            // Xenon's threads would keep a failed process alive.
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static List<URI> loopback(int port, int nodes) {
        List<URI> all = new ArrayList<>();
        for (int index = 0; index < nodes; index++) {
            all.add(URI.create("http://127.0.0.1:" + (port + index)));
        }
        return all;
    }

    /** Runs this process's command line for another node; when that ends, so does this one. */
    private static void startNode(int index) throws Exception {
        ProcessHandle.Info self = ProcessHandle.current().info();
        List<String> command = new ArrayList<>();
        command.add(self.command().orElseThrow());
        command.addAll(List.of(self.arguments().orElseThrow()));
        command.add(Integer.toString(index));
        Process other = new ProcessBuilder(command).inheritIO().start();
        other.onExit().thenRun(() -> {
            System.err.println("node " + index + " ended with exit code " + other.exitValue());
            System.exit(1);
        });
    }
}
