package stateful;

import java.util.Locale;

/** Operations sent, the seconds until the last was answered, and how many of them failed. */
final class Count {
    private final long operations;
    private final double seconds;
    private final long failed;

    Count(long operations, double seconds, long failed) {
        this.operations = operations;
        this.seconds = seconds;
        this.failed = failed;
    }

    /** Passes it on where nothing failed: what is weighed must be what was asked for. */
    Count whole() {
        if (failed > 0) {
            throw new IllegalStateException(failed + " of " + operations + " operations failed");
        }
        return this;
    }

    /** As Loadline reads it: it belongs to the phase that has begun last. */
    void say(String name) {
        System.out.println(String.format(
                Locale.ROOT, "loadline: ops=%d s=%.3f fail=%d name=%s", operations, seconds, failed, name));
    }
}
