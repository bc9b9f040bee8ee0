package loadline.subjects;

import java.io.IOException;

/**
 * The protocol of a subject without a port: prints lines of exact figures to standard output, and waits for lines on
 * standard input. Uses no reader and no buffer.
 */
final class Dialogue {
    private Dialogue() {}

    /** Prints one line, {@code WORD name=integer …}. */
    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** Prints the line and waits for a line that lets it continue; exits at the end of the input. */
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

    /** Prints the line and keeps everything unchanged until standard input closes or the process is killed. */
    static void sayAndStay(String line, Object held) throws IOException {
        sayAndWait(line);
        while (System.in.read() >= 0) {
            // Ignores further lines from the other side.
        }
        // Using it here keeps it from becoming garbage earlier.
        if (held == null) {
            throw new IllegalStateException("nothing was held");
        }
        System.exit(0);
    }
}
