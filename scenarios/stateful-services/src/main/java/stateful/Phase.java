package stateful;

import java.io.IOException;

/** The moments at which Loadline weighs. */
final class Phase {
    private Phase() {}

    /** Begins a phase: says so and waits until the state now is weighed. By hand, press Enter. */
    static void begin(String name) throws IOException {
        begin(name, "");
    }

    /** Begins a phase, with {@code key=value} pairs that are kept with its mark. */
    static void begin(String name, String values) throws IOException {
        System.out.println(("loadline: phase=" + name + " wait=1 " + values).trim());
        System.out.flush();
        int read;
        do {
            read = System.in.read();
        } while (read >= 0 && read != '\n');
    }
}
