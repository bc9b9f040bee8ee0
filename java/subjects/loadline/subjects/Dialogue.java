package loadline.subjects;

import java.io.IOException;

/**
 * How a subject without a port talks: one line of exact figures on standard output, one line awaited on standard input.
 * Holds no reader and no buffer of its own.
 */
final class Dialogue {
    private Dialogue() {}

    /** Prints one line, {@code WORD name=integer …}. */
    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** Prints the line and waits for the go-ahead, one line; ends the process where nobody is left to give it. */
    static void sayAndWait(String line) throws IOException {
        say(line);
        int read = System.in.read();
        while (read >= 0 && read != '\n') {
            read = System.in.read();
        }
        if (read < 0) {
            System.exit(0);
        }
    }

    /** Prints the line and keeps everything as it is until standard input closes or the process is ended. */
    static void sayAndStay(String line, Object held) throws IOException {
        sayAndWait(line);
        while (System.in.read() >= 0) {
            // Whoever listens may still be talking.
        }
        // Named here, so that nothing of it is garbage any sooner.
        if (held == null) {
            throw new IllegalStateException("nothing was held");
        }
        System.exit(0);
    }
}
