package loadline.subjects;

import java.io.IOException;
import java.util.function.IntUnaryOperator;

/**
 * Fills the code cache: 2,000 generated classes, each with one method that is called until it is compiled. It is done
 * when the pools have not grown for a second. The figures are those of the code cache's pools. Their used size includes
 * buffers not yet written, so committed memory is resident only with {@code -XX:+AlwaysPreTouch}. {@code
 * -XX:TieredStopAtLevel=1} prevents recompilation by C2.
 *
 * <p>Prints {@code BEFORE methods=0 code_used=… code_committed=…}, waits for a line, prints {@code AFTER} with the same
 * figures, and keeps running.
 */
// truth: methods=2000 code_bytes_min=8388608
public final class CodeFiller {
    private static final int COUNT = 2000;
    /** A method of 3.6 KB, below the limit of 8,000 bytes for compilation. */
    private static final int ROUNDS = 400;
    /** Above the compilers' thresholds for a method without loops, at level 1 and level 3. */
    private static final int CALLS = 2500;
    private static final int SETTLED_MS = 1000;

    private CodeFiller() {}

    public static void main(String[] args) throws IOException, ReflectiveOperationException, InterruptedException {
        IntUnaryOperator[] held = new IntUnaryOperator[COUNT];
        ClassFiles files = new ClassFiles(ROUNDS);
        for (int i = 0; i < COUNT; i++) {
            held[i] = files.make("Made" + i);
        }
        int sum = call(files.make("Rehearsal"));
        settle();
        Dialogue.sayAndWait("BEFORE " + figures(0));
        for (IntUnaryOperator each : held) {
            sum += call(each);
        }
        settle();
        Dialogue.sayAndStay("AFTER " + figures(COUNT) + " sum=" + Math.abs((long) sum), held);
    }

    private static int call(IntUnaryOperator method) {
        int sum = 0;
        for (int i = 0; i < CALLS; i++) {
            sum += method.applyAsInt(i);
        }
        return sum;
    }

    /** Waits for compilation, which continues in the background. */
    private static void settle() throws InterruptedException {
        long before = -1;
        for (long used = Pools.used("Code"); used != before; used = Pools.used("Code")) {
            before = used;
            Thread.sleep(SETTLED_MS);
        }
    }

    private static String figures(int methods) {
        return "methods=" + methods + " code_used=" + Pools.used("Code")
                + " code_committed=" + Pools.committed("Code");
    }
}
