package stateful;

import java.io.IOException;

/** The moments at which Loadline measures. */
final class Phase {
    private Phase() {}

    /** Begins a phase and waits until Loadline has measured; if you run this by hand, press Enter. */
    static void begin(String name) throws IOException {
        begin(name, "");
    }

    /** Begins a phase, with {@code key=value} pairs for its mark. */
    static void begin(String name, String values) throws IOException {
        System.out.println(("loadline: phase=" + name + " wait=1 " + values).trim());
        System.out.flush();
        int read;
        do {
            read = System.in.read();
        } while (read >= 0 && read != '\n');
    }
}
