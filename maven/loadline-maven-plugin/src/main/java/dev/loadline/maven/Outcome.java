package dev.loadline.maven;

import java.io.IOException;
import java.io.Reader;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** The outcome of a run, written by the goal `weigh` and read by the goal `verify`. */
final class Outcome {
    /** Loadline did not start, so it has no exit code. */
    static final int NOT_STARTED = -1;

    /** Loadline's exit code. */
    final int exit;
    /** The error message of Loadline or of the plugin. */
    final String words;
    /** Why the run was skipped; null if it was not. */
    final String skipped;

    private Outcome(int exit, String words, String skipped) {
        this.exit = exit;
        this.words = words;
        this.skipped = skipped;
    }

    static Outcome of(int exit, String words) {
        return new Outcome(exit, words, null);
    }

    static Outcome skipped(String why) {
        return new Outcome(0, "", why);
    }

    void write(Path file) throws IOException {
        Properties properties = new Properties();
        properties.setProperty("exit", Integer.toString(exit));
        properties.setProperty("words", words);
        if (skipped != null) {
            properties.setProperty("skipped", skipped);
        }
        Files.createDirectories(file.getParent());
        try (Writer writer = Files.newBufferedWriter(file)) {
            properties.store(writer, "how `loadline:weigh` went");
        }
    }

    static Outcome read(Path file) throws IOException {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(file)) {
            properties.load(reader);
        }
        try {
            int exit = Integer.parseInt(properties.getProperty("exit", ""));
            return new Outcome(exit, properties.getProperty("words", ""), properties.getProperty("skipped"));
        } catch (IllegalArgumentException cause) {
            throw new IOException("this is not the output of `loadline:weigh`", cause);
        }
    }
}
