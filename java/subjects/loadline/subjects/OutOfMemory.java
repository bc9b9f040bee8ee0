package loadline.subjects;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Responds to N requests; at the next one, a thread named {@code hungry} fills the heap until it dies with an {@code
 * OutOfMemoryError}. The JVM prints the error; the thread's memory becomes garbage and the server continues, unless
 * {@code -XX:+ExitOnOutOfMemoryError} (exit code 3) or {@code -XX:+CrashOnOutOfMemoryError} ends it.
 *
 * <p>Arguments: {@code PORT N}.
 */
// truth: status=204 exit_code_if_told_to=3
public final class OutOfMemory {
    private OutOfMemory() {}

    public static void main(String[] args) throws IOException {
        long quiet = Long.parseLong(args[1]);
        AtomicLong requests = new AtomicLong();
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4), exchange -> {
            if (requests.getAndIncrement() == quiet) {
                new Thread(OutOfMemory::fill, "hungry").start();
            }
            Listener.answer(exchange, 204, new byte[0]);
        });
    }

    private static void fill() {
        List<byte[]> eaten = new ArrayList<>();
        while (true) {
            eaten.add(new byte[100_000]);
        }
    }
}
