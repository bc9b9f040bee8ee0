package loadline.subjects;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Always busy: one thread produces garbage, one takes direct buffers up to 64 MiB and drops them, one starts threads
 * that end immediately. For measuring a process that changes during the measurement.
 *
 * <p>Prints {@code READY} and keeps running.
 */
public final class NeverStill {
    private static final int BUFFERS = 256;
    private static final int BUFFER_BYTES = 256 << 10;
    private static volatile Object newest;

    private NeverStill() {}

    public static void main(String[] args) throws IOException {
        begin(() -> newest = new byte[64 << 10]);
        ByteBuffer[] held = new ByteBuffer[BUFFERS];
        int[] next = new int[1];
        begin(() -> {
            held[next[0]] = ByteBuffer.allocateDirect(BUFFER_BYTES);
            next[0] = (next[0] + 1) % BUFFERS;
            pause();
        });
        begin(() -> {
            Thread brief = new Thread(NeverStill::pause, "brief");
            brief.start();
            pause();
        });
        Dialogue.sayAndStay("READY", held);
    }

    private static void begin(Runnable step) {
        Thread thread = new Thread(() -> {
            while (true) {
                step.run();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void pause() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException asked) {
            Thread.currentThread().interrupt();
        }
    }
}
