package stateful;

import com.vmware.xenon.common.Operation;
import com.vmware.xenon.common.ServiceHost;
import com.vmware.xenon.common.UriUtils;
import java.net.URI;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Sends operations to a node's documents from inside its process, {@link #UNDER_WAY} at a time, and counts the
 * responses: a closed loop. Only operations that complete with an error count as failures, not those that Xenon logs.
 *
 * <p>Stores nothing per document; a URI for each would have added two thirds to an instance's size.
 */
final class Client {
    /** Enough to keep all cores busy; more would only wait. */
    private static final int UNDER_WAY = 1024;
    /** Far longer than any response has taken. */
    private static final long STALLED_S = 60;

    enum Way {
        /** Passed directly. */
        INSIDE,
        /** Out of the process over HTTP and back: client and server share a JVM. */
        SOCKETS
    }

    private final ServiceHost host;
    private final Way way;

    Client(Node node, Way way) {
        this.host = node.host();
        this.way = way;
    }

    /** Creates documents numbered from {@code first}. */
    Count create(int first, int documents, Document state) throws Exception {
        URI factory = UriUtils.buildUri(host, Node.DOCUMENTS);
        return run(documents, number -> {
            Document initial = new Document();
            state.copyTo(initial);
            initial.documentSelfLink = path(first + number);
            return Operation.createPost(factory).setBody(initial);
        });
    }

    /** Replaces the state of documents from {@code first} on, in turn. */
    Count put(int first, int documents, int operations, Document state) throws Exception {
        return run(operations, number -> Operation.createPut(document(first + number % documents)).setBody(state));
    }

    /** Reads documents from {@code first} on, in turn. */
    Count get(int first, int documents, int operations) throws Exception {
        return run(operations, number -> Operation.createGet(document(first + number % documents)));
    }

    private URI document(int number) {
        return UriUtils.buildUri(host, path(number));
    }

    private static String path(int number) {
        return Node.DOCUMENTS + '/' + number;
    }

    private interface Plan {
        Operation operation(int number);
    }

    private Count run(int operations, Plan plan) throws Exception {
        Semaphore free = new Semaphore(UNDER_WAY);
        AtomicLong failed = new AtomicLong();
        AtomicReference<Throwable> firstFailure = new AtomicReference<>();
        URI referer = host.getUri();
        long start = System.nanoTime();
        for (int number = 0; number < operations; number++) {
            take(free, 1);
            Operation operation = plan.operation(number).setReferer(referer).setCompletion((done, failure) -> {
                if (failure != null) {
                    failed.incrementAndGet();
                    firstFailure.compareAndSet(null, failure);
                }
                free.release();
            });
            host.sendRequest(way == Way.SOCKETS ? operation.forceRemote() : operation);
        }
        take(free, UNDER_WAY);
        double seconds = (System.nanoTime() - start) / 1e9;
        if (firstFailure.get() != null) {
            System.err.println("the first of " + failed + " failures: " + firstFailure.get());
        }
        return new Count(operations, seconds, failed.get());
    }

    private static void take(Semaphore free, int permits) throws InterruptedException, TimeoutException {
        if (!free.tryAcquire(permits, STALLED_S, TimeUnit.SECONDS)) {
            throw new TimeoutException("no response within " + STALLED_S + " s");
        }
    }
}
