package stateful;

import com.vmware.xenon.common.Operation;
import com.vmware.xenon.common.ServiceHost;
import com.vmware.xenon.common.UriUtils;
import com.vmware.xenon.services.common.NodeGroupService.NodeGroupState;
import com.vmware.xenon.services.common.NodeState;
import com.vmware.xenon.services.common.ServiceUriPaths;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.logging.Level;
import java.util.logging.Logger;
import stateful.DocumentService.Keeping;

/** A Xenon host on the loopback interface, with its own folder, its factory at {@link #DOCUMENTS}, and its peers. */
final class Node {
    /** The factory; its instances are {@code /documents/0} and so on. */
    static final String DOCUMENTS = "/documents";
    /** Five nodes in separate processes took up to a minute to find each other on two very busy cores. */
    private static final long WITHIN_MS = 120_000;
    /** After this long, an unanswered question is repeated. */
    private static final long ANSWER_MS = 5_000;
    private static final long PAUSE_MS = 100;

    static {
        // Xenon's warnings don't help: they are 404s for things that don't exist yet, and requests rejected until then.
        // The client counts its own failures.
        Logger.getLogger("").setLevel(Level.SEVERE);
    }

    private final ServiceHost host = new ServiceHost() {};

    /** Starts the node; port 0 means any free port. */
    Node(int port, Path sandbox, String name) throws Throwable {
        ServiceHost.Arguments arguments = new ServiceHost.Arguments();
        arguments.port = port;
        arguments.bindAddress = "127.0.0.1";
        arguments.sandbox = sandbox;
        arguments.id = name;
        host.initialize(arguments);
        host.start();
        host.startDefaultCoreServicesSynchronously();
    }

    ServiceHost host() {
        return host;
    }

    URI uri() {
        return host.getUri();
    }

    /** Joins a group with these nodes, except itself. */
    void join(List<URI> peers) throws Exception {
        for (URI peer : peers) {
            if (!peer.equals(uri())) {
                // Another process's node may not be up yet, and a node that joins no other stays alone.
                URI group = UriUtils.extendUri(peer, ServiceUriPaths.DEFAULT_NODE_GROUP);
                await("answer from " + peer, () -> ask(group) != null);
                host.joinPeers(List.of(peer), ServiceUriPaths.DEFAULT_NODE_GROUP);
            }
        }
    }

    /** Waits until this node knows that many available nodes, including itself. */
    void awaitGroup(int nodes) throws Exception {
        await("group of " + nodes + " nodes around " + uri(), () -> available() == nodes);
    }

    /** Starts the factory; in a group, only after {@link #awaitGroup}: a lone node owns whatever it is asked for. */
    void serve(Keeping keeping) {
        host.startFactory(() -> DocumentService.factory(keeping), DOCUMENTS);
    }

    /**
     * Makes instances measurable. Xenon would stop a durable one after it has been idle for a minute. It also maintains
     * all of them every second, which creates garbage in proportion; without a disk, that can wait.
     */
    void keepStill(Keeping keeping) {
        host.setServiceCacheClearDelayMicros(TimeUnit.HOURS.toMicros(1));
        if (keeping == Keeping.MEMORY) {
            host.setMaintenanceIntervalMicros(TimeUnit.HOURS.toMicros(1));
        }
    }

    /** Waits until a node reports its factory as available: in a group, only the owner does. */
    static void awaitFactory(List<Node> nodes) throws Exception {
        await("available " + DOCUMENTS, () -> {
            for (Node node : nodes) {
                URI available = UriUtils.buildUri(node.host, DOCUMENTS, ServiceHost.SERVICE_URI_SUFFIX_AVAILABLE);
                if (node.ask(available) != null) {
                    return true;
                }
            }
            return false;
        });
    }

    /** Number of nodes in the group that this one knows to be available. */
    private long available() throws InterruptedException {
        Operation answer = ask(UriUtils.buildUri(host, ServiceUriPaths.DEFAULT_NODE_GROUP));
        return answer == null ? 0 : answer.getBody(NodeGroupState.class).nodes.values().stream()
                .filter(node -> node.status == NodeState.NodeStatus.AVAILABLE).count();
    }

    /** The answer to a GET, or null if there is none or it failed. */
    private Operation ask(URI uri) throws InterruptedException {
        CompletableFuture<Operation> answer = new CompletableFuture<>();
        host.sendRequest(Operation.createGet(uri).setReferer(uri())
                .setCompletion((done, failure) -> answer.complete(failure == null ? done : null)));
        try {
            return answer.get(ANSWER_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException | ExecutionException silent) {
            return null;
        }
    }

    /** A question that can be asked again. */
    private interface Question {
        boolean holds() throws InterruptedException;
    }

    private static void await(String what, Question question) throws InterruptedException, TimeoutException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WITHIN_MS);
        while (!question.holds()) {
            if (System.nanoTime() > end) {
                throw new TimeoutException("no " + what + " within " + WITHIN_MS / 1000 + " s");
            }
            Thread.sleep(PAUSE_MS);
        }
    }
}
