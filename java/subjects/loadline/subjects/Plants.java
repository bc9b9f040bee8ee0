package loadline.subjects;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.Deflater;

/**
 * Plants one exact cause of memory use, then responds to every request with 204.
 *
 * <p>Arguments: {@code PORT CAUSE}, where the cause is one of
 *
 * <ul>
 *   <li>{@code children}: three processes that each keep 24 MiB of their input
 *   <li>{@code files}: 32 files of 1 MiB in /dev/shm, written, deleted, and still open
 *   <li>{@code humongous}: 64 arrays of 1 MiB plus a 16-byte header
 *   <li>{@code channels}: 16 threads, each of which has read 2 MiB of a file into an array
 *   <li>{@code buffers}: 48 direct buffers of 1 MiB that a static field refers to
 *   <li>{@code garbage}: 200 unreferenced Deflaters that were never ended
 *   <li>{@code locals}: 16 threads, each with 3 MiB behind a {@code ThreadLocal}
 *   <li>{@code carts}: a map of 600 arrays of 100 KiB that a static field refers to
 *   <li>{@code field}: the same map, referenced only by a field of an object
 *   <li>{@code statics}: a map of 300,000 entries that a static field refers to
 * </ul>
 */
// truth: children=3 child_bytes=25165824 files=32 file_bytes=33554432 humongous=64 humongous_bytes=67109888
// truth: channel_threads=16 channel_bytes=33554432 buffer_bytes=50331648 deflaters=200 entries=300000 status=204
// truth: local_threads=16 local_bytes=50331648 carts=600 cart_bytes=61440000
public final class Plants {
    private static final int MIB = 1 << 20;
    private static final List<Object> held = new ArrayList<>();
    private static final Map<Integer, long[]> sessions = new HashMap<>();

    private static final Map<Integer, byte[]> carts = new HashMap<>();
    private static final ThreadLocal<byte[]> scratch = new ThreadLocal<>();
    private static Shop shop;

    private Plants() {}

    private static final class Shop {
        final Map<Integer, byte[]> open = new HashMap<>();
    }

    private static void fill(Map<Integer, byte[]> map) {
        for (int i = 0; i < 600; i++) {
            map.put(i, new byte[100 << 10]);
        }
    }

    private static void locals() throws InterruptedException {
        CountDownLatch set = new CountDownLatch(16);
        for (int i = 0; i < 16; i++) {
            Thread thread = new Thread(() -> {
                scratch.set(new byte[3 * MIB]);
                set.countDown();
                LockSupport.park();
            }, "report-renderer-of-pages-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        set.await();
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        plant(args[1]);
        Listener.http(
                Integer.parseInt(args[0]),
                Executors.newFixedThreadPool(2),
                exchange -> Listener.answer(exchange, 204, new byte[0]));
    }

    private static void plant(String cause) throws IOException, InterruptedException {
        switch (cause) {
            case "children":
                children();
                break;
            case "files":
                files();
                break;
            case "humongous":
                for (int i = 0; i < 64; i++) {
                    held.add(new byte[MIB]);
                }
                break;
            case "channels":
                channels();
                break;
            case "buffers":
                for (int i = 0; i < 48; i++) {
                    held.add(written(ByteBuffer.allocateDirect(MIB)));
                }
                break;
            case "garbage":
                garbage();
                break;
            case "locals":
                locals();
                break;
            case "carts":
                fill(carts);
                break;
            case "field":
                shop = new Shop();
                fill(shop.open);
                break;
            case "statics":
                for (int i = 0; i < 300_000; i++) {
                    sessions.put(i, new long[4]);
                }
                break;
            default:
                throw new IllegalArgumentException(cause);
        }
    }

    private static void garbage() {
        byte[] in = new byte[64 << 10];
        byte[] out = new byte[64 << 10];
        for (int i = 0; i < 200; i++) {
            Deflater deflater = new Deflater();
            deflater.setInput(in);
            deflater.finish();
            deflater.deflate(out);
        }
    }

    /** The processes end with this one, because their input does. */
    private static void children() throws IOException {
        byte[] fed = new byte[MIB];
        for (int i = 0; i < 3; i++) {
            Process child = new ProcessBuilder("tail", "-c", String.valueOf(24 * MIB)).start();
            OutputStream to = child.getOutputStream();
            for (int mib = 0; mib < 24; mib++) {
                to.write(fed);
            }
            to.flush();
            held.add(child);
        }
    }

    private static void files() throws IOException {
        Path folder = Files.createTempDirectory(Path.of("/dev/shm"), "loadline-test-");
        for (int i = 0; i < 32; i++) {
            Path path = folder.resolve("part-" + i);
            FileChannel file = FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
            file.write(written(ByteBuffer.allocate(MIB)).rewind());
            Files.delete(path);
            held.add(file);
        }
        Files.delete(folder);
    }

    private static void channels() throws IOException, InterruptedException {
        File file = File.createTempFile("loadline-test-", ".bin");
        Files.write(file.toPath(), new byte[2 * MIB]);
        CountDownLatch read = new CountDownLatch(16);
        for (int i = 0; i < 16; i++) {
            Thread thread = new Thread(() -> {
                try (FileChannel channel = FileChannel.open(file.toPath())) {
                    channel.read(ByteBuffer.allocate(2 * MIB));
                } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
                read.countDown();
                LockSupport.park();
            }, "reader-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        read.await();
        Files.delete(file.toPath());
    }

    private static ByteBuffer written(ByteBuffer buffer) {
        for (int at = 0; at < buffer.capacity(); at += 4096) {
            buffer.put(at, (byte) 1);
        }
        return buffer;
    }
}
