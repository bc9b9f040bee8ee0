package loadline.subjects;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Maps a file of 32 MiB and reads its first 8 MiB, page by page, so that this part is resident. The file, {@code
 * mapped.bin}, is created in the given directory and deleted when the process exits normally.
 *
 * <p>Arguments: {@code FOLDER}. Prints {@code READY file_bytes=33554432 touched=8388608} and keeps running.
 */
// truth: file_bytes=33554432 touched_bytes=8388608
public final class MappedFile {
    private static final int FILE_BYTES = 32 << 20;
    private static final int TOUCHED_BYTES = 8 << 20;

    private MappedFile() {}

    public static void main(String[] args) throws IOException {
        Path file = Path.of(args[0], "mapped.bin");
        file.toFile().deleteOnExit();
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            ByteBuffer part = ByteBuffer.allocate(1 << 20);
            while (channel.position() < FILE_BYTES) {
                part.clear();
                channel.write(part);
            }
            MappedByteBuffer mapped = channel.map(MapMode.READ_ONLY, 0, FILE_BYTES);
            long sum = 0;
            for (int at = 0; at < TOUCHED_BYTES; at += 4096) {
                sum += mapped.get(at);
            }
            String figures = "READY file_bytes=" + FILE_BYTES + " touched=" + TOUCHED_BYTES + " sum=" + sum;
            Dialogue.sayAndStay(figures, mapped);
        }
    }
}
