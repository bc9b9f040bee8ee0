package loadline.subjects;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;

/** Sums over the JVM's own memory pools whose names begin with a word. */
final class Pools {
    private Pools() {}

    /** In use, in bytes. */
    static long used(String... beginnings) {
        return sum(true, beginnings);
    }

    /** Committed, in bytes. */
    static long committed(String... beginnings) {
        return sum(false, beginnings);
    }

    private static long sum(boolean used, String... beginnings) {
        long sum = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            for (String beginning : beginnings) {
                if (pool.getName().startsWith(beginning)) {
                    sum += used ? pool.getUsage().getUsed() : pool.getUsage().getCommitted();
                }
            }
        }
        return sum;
    }
}
