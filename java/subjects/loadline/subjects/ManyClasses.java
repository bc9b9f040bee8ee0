package loadline.subjects;

import java.io.IOException;

/**
 * Uses metaspace and class space: one loader loads, links, and initializes 8,000 generated classes. The figures are
 * those of the JVM's pools, in bytes; its Metaspace pool includes the class space.
 *
 * <p>Prints {@code BEFORE classes=0} with {@code metaspace_committed=… metaspace_used=… class_space_committed=…
 * class_space_used=…}, waits for a line, prints {@code AFTER} with the same figures, and keeps running.
 */
// truth: classes=8000
public final class ManyClasses {
    private static final int COUNT = 8000;
    /** Enough for several KiB per class, which is typical. */
    private static final int ROUNDS = 200;

    private ManyClasses() {}

    public static void main(String[] args) throws IOException, ReflectiveOperationException {
        Object[] held = new Object[COUNT];
        ClassFiles files = new ClassFiles(ROUNDS);
        Object rehearsed = files.make("Rehearsal");
        figures(0);
        Dialogue.sayAndWait("BEFORE " + figures(0));
        for (int i = 0; i < COUNT; i++) {
            held[i] = files.make("Made" + i);
        }
        Dialogue.sayAndStay("AFTER " + figures(COUNT), new Object[] {rehearsed, held});
    }

    private static String figures(int classes) {
        return "classes=" + classes
                + " metaspace_committed=" + Pools.committed("Metaspace")
                + " metaspace_used=" + Pools.used("Metaspace")
                + " class_space_committed=" + Pools.committed("Compressed Class Space")
                + " class_space_used=" + Pools.used("Compressed Class Space");
    }
}
