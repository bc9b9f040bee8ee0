package loadline.agent;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;

/**
 * Reports the buffer pools of every Netty in this JVM. An agent loaded into a running JVM receives {@code out=FILE} and
 * writes one report there. An agent started with the JVM ({@code -javaagent:JAR=ask=FIFO}) reads file names from that
 * FIFO, one per line, and writes a report to each.
 *
 * <p>The agent prints nothing, changes nothing, and throws nothing: the report names what could not be read. The code
 * avoids lambdas and string concatenation, whose first use loads dozens of classes into the JVM.
 */
public final class Agent {
    /** Written into the report; increases when its content changes. */
    static final int VERSION = 1;
    private static final String OUT = "out=";
    private static final String ASK = "ask=";
    /** Recursion depth is limited, so there is no need to reserve the default of 1 MiB. */
    private static final long STACK_BYTES = 256 << 10;

    private Agent() {}

    /** At JVM startup, before the main class. */
    public static void premain(String options, Instrumentation jvm) {
        begin(options, jvm);
    }

    /** In a running JVM; returns when the report is written. */
    public static void agentmain(String options, Instrumentation jvm) {
        begin(options, jvm);
    }

    private static void begin(String options, Instrumentation jvm) {
        try {
            if (options != null && options.startsWith(OUT)) {
                report(new File(options.substring(OUT.length())), jvm);
            } else if (options != null && options.startsWith(ASK)) {
                Thread thread = new Thread(null, new Waiter(options.substring(ASK.length()), jvm), "loadline-agent",
                        STACK_BYTES);
                thread.setDaemon(true);
                thread.start();
            }
        } catch (Throwable ignored) {
            // The subject must never see the agent's errors; Loadline will notice the missing report.
        }
    }

    /** Writes to another file first, so that a report is complete as soon as it exists. */
    static void report(File file, Instrumentation jvm) throws IOException {
        byte[] text = new Survey(jvm).take().getBytes(StandardCharsets.UTF_8);
        File part = new File(file.getPath() + ".part");
        try (FileOutputStream out = new FileOutputStream(part)) {
            out.write(text);
        }
        if (!part.renameTo(file)) {
            part.delete();
        }
    }

    /** Writes a report for each line of the FIFO. */
    private static final class Waiter implements Runnable {
        private final String fifo;
        private final Instrumentation jvm;

        Waiter(String fifo, Instrumentation jvm) {
            this.fifo = fifo;
            this.jvm = jvm;
        }

        @Override
        public void run() {
            // Opened for reading and writing, so that it neither waits for a writer nor ends when the writer does.
            try (RandomAccessFile questions = new RandomAccessFile(fifo, "rw")) {
                String line;
                while ((line = questions.readLine()) != null) {
                    try {
                        report(new File(line), jvm);
                    } catch (Throwable ignored) {
                        // The next request may succeed.
                    }
                }
            } catch (Throwable ignored) {
                // The FIFO is gone, so no more requests can come.
            }
        }
    }
}
