package dev.loadline.maven;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** Runs a program to completion, and checks the binary's version. */
final class Program {
    /** The binary prints its version immediately; a program that does not is something else. */
    private static final int VERSION_WITHIN_S = 10;

    private Program() {}

    /** The version that `loadline --version` prints, such as `0.1.0`; null if it prints something else. */
    static String version(Path executable) {
        try {
            ProcessBuilder builder = new ProcessBuilder(executable.toString(), "--version");
            Process process = builder.redirectErrorStream(true).start();
            process.getOutputStream().close();
            // A separate thread reads, because a descendant of the process can keep the pipe open.
            CompletableFuture<String> reading = new CompletableFuture<>();
            Thread reader = new Thread(() -> reading.complete(beginning(process.getInputStream())));
            reader.setDaemon(true);
            reader.start();
            try {
                String said = reading.get(VERSION_WITHIN_S, TimeUnit.SECONDS);
                boolean ended = process.waitFor(VERSION_WITHIN_S, TimeUnit.SECONDS);
                return ended && said.startsWith("loadline ") ? said.substring("loadline ".length()) : null;
            } finally {
                process.destroyForcibly();
            }
        } catch (ExecutionException | TimeoutException cause) {
            return null;
        } catch (InterruptedException cause) {
            Thread.currentThread().interrupt();
            return null;
        } catch (IOException cause) {
            return null;
        }
    }

    private static String beginning(InputStream output) {
        try (output) {
            return new String(output.readNBytes(1000), StandardCharsets.UTF_8).trim();
        } catch (IOException cause) {
            return "";
        }
    }

    /**
     * The first program with this name on the PATH; null if there is none. Skips an empty entry, which would mean the
     * project's directory.
     */
    static Path onPath(String name) {
        String path = System.getenv("PATH");
        for (String folder : path == null ? new String[0] : path.split(File.pathSeparator)) {
            Path file = Path.of(folder, name);
            if (!folder.isEmpty() && Files.isRegularFile(file) && Files.isExecutable(file)) {
                return file.toAbsolutePath();
            }
        }
        return null;
    }

    /** An executable form of the file: the file itself, or a copy in this folder if it cannot be changed. */
    static Path runnable(File file, Path folder) throws IOException {
        if (file.canExecute() || file.setExecutable(true, false)) {
            return file.toPath();
        }
        Files.createDirectories(folder);
        Path copy = Files.copy(file.toPath(), folder.resolve("loadline"), StandardCopyOption.REPLACE_EXISTING);
        if (!copy.toFile().setExecutable(true, false)) {
            throw new IOException(copy + " cannot be made executable");
        }
        return copy;
    }

    /** Runs the program and passes on each line immediately. It ends when Maven does, even if Maven is killed. */
    static int run(ProcessBuilder builder, Consumer<String> output, Consumer<String> errors)
            throws IOException, InterruptedException {
        Process process = builder.start();
        Thread end = new Thread(process::destroy);
        Runtime.getRuntime().addShutdownHook(end);
        try {
            process.getOutputStream().close();
            Thread reader = new Thread(() -> lines(process.getErrorStream(), errors));
            reader.start();
            if (builder.redirectOutput() == ProcessBuilder.Redirect.PIPE) {
                lines(process.getInputStream(), output);
            }
            reader.join();
            return process.waitFor();
        } finally {
            process.destroy();
            try {
                Runtime.getRuntime().removeShutdownHook(end);
            } catch (IllegalStateException cause) {
                // Maven is shutting down, and the hook is running.
            }
        }
    }

    /** Loadline's error and hint from its last lines, or all of these lines if they include no error. */
    static String error(List<String> lines) {
        int from = lines.size();
        while (from > 0 && !lines.get(from - 1).startsWith("error: ")) {
            from--;
        }
        return String.join("\n", lines.subList(Math.max(from - 1, 0), lines.size())).trim();
    }

    private static void lines(InputStream stream, Consumer<String> sink) {
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                sink.accept(line);
            }
        } catch (IOException cause) {
            sink.accept("cannot read Loadline's output: " + cause.getMessage());
        }
    }
}
