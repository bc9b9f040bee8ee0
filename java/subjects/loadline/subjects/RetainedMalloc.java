package loadline.subjects;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import sun.misc.Unsafe;

/**
 * Takes 40 MiB from malloc in blocks of 60 KiB, writes every page, and frees them, except for an extra one after each
 * 64. glibc merges them into free chunks below a chunk in use, so it keeps their pages until a trim. A single thread
 * does all of it, and so uses one arena. The remaining blocks are as large as the others, because a small one would
 * fill a gap elsewhere in the arena and pin nothing.
 *
 * <p>Prints {@code BEFORE freed=0}, waits for a line, prints {@code AFTER freed=41963520}, and keeps running.
 */
// truth: blocks=683 block_bytes=61440 freed_bytes=41963520
public final class RetainedMalloc {
    private static final int BLOCKS = 683;
    private static final int BLOCK_BYTES = 60 << 10;
    private static final int STAYS_EACH = 64;

    private RetainedMalloc() {}

    @SuppressWarnings("removal")
    public static void main(String[] args) throws IOException, ReflectiveOperationException {
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Unsafe unsafe = (Unsafe) field.get(null);
        // JDK 24 and newer warn at the first call, which takes memory too.
        unsafe.freeMemory(written(unsafe));
        long[] blocks = new long[BLOCKS];
        Dialogue.sayAndWait("BEFORE freed=0");
        List<Long> stay = new ArrayList<>();
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = written(unsafe);
            if ((BLOCKS - 1 - i) % STAYS_EACH == 0) {
                stay.add(written(unsafe));
            }
        }
        long freed = 0;
        for (long block : blocks) {
            unsafe.freeMemory(block);
            freed += BLOCK_BYTES;
        }
        Dialogue.sayAndStay("AFTER freed=" + freed, stay);
    }

    @SuppressWarnings("removal")
    private static long written(Unsafe unsafe) {
        long block = unsafe.allocateMemory(BLOCK_BYTES);
        unsafe.setMemory(block, BLOCK_BYTES, (byte) 1);
        return block;
    }
}
