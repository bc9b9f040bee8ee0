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

/** A program that is run to its end, and what is asked of the binary before. */
final class Program {
    /** The binary tells its version at once; what does not is another program. */
    private static final int VERSION_WITHIN_S = 10;

    private Program() {}

    /** What `loadline --version` says, such as `0.1.0`; null where it says nothing of the kind. */
    static String version(Path executable) {
        try {
            ProcessBuilder builder = new ProcessBuilder(executable.toString(), "--version");
            Process process = builder.redirectErrorStream(true).start();
            process.getOutputStream().close();
            // A thread of its own reads: it may wait for as long as a process has the other end, a child's child even.
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
     * The first program of this name on the PATH; null where there is none. An empty part would be the folder of the
     * project, whose files are not programs of this machine.
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

    /** The file as one that can be run: itself, or a copy in this folder where it must not be changed. */
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

    /** Runs it, with each line handed on as it comes; the program ends with Maven, however that ends. */
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
                // Maven is ending, and the hook is at work.
            }
        }
    }

    /** Loadline's error among its last lines, with the hint; all of them where it has no such words. */
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
            sink.accept("what Loadline says cannot be read: " + cause.getMessage());
        }
    }
}
