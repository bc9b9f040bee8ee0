package stateful;

import java.util.Locale;

/** The number of operations sent, the seconds until the last response, and the number of failures. */
final class Count {
    private final long operations;
    private final double seconds;
    private final long failed;

    Count(long operations, double seconds, long failed) {
        this.operations = operations;
        this.seconds = seconds;
        this.failed = failed;
    }

    /** Returns itself unless something failed, because measurements must match the requested work. */
    Count whole() {
        if (failed > 0) {
            throw new IllegalStateException(failed + " of " + operations + " operations failed");
        }
        return this;
    }

    /** Prints it for Loadline, which adds it to the current phase. */
    void say(String name) {
        System.out.println(String.format(
                Locale.ROOT, "loadline: ops=%d s=%.3f fail=%d name=%s", operations, seconds, failed, name));
    }
}
