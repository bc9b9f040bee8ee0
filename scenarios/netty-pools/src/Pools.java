import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.PoolArenaMetric;
import io.netty.buffer.PoolChunkListMetric;
import io.netty.buffer.PoolChunkMetric;
import io.netty.buffer.PooledByteBufAllocator;

/**
 * The pool's own view: a line for each direct arena, then one for each of its chunks, with the chunk's list.
 *
 * <p>For checking Loadline's pool reports by hand; reads without the arenas' locks, so the server must be idle.
 */
final class Pools {
    private Pools() {}

    static String text() {
        ByteBufAllocator allocator = ByteBufAllocator.DEFAULT;
        StringBuilder text = new StringBuilder(allocator.getClass().getName()).append('\n');
        if (allocator instanceof PooledByteBufAllocator) {
            int number = 0;
            for (PoolArenaMetric arena : ((PooledByteBufAllocator) allocator).directArenas()) {
                text.append("direct arena ").append(number++).append('\n');
                for (PoolChunkListMetric list : arena.chunkLists()) {
                    for (PoolChunkMetric chunk : list) {
                        text.append("  chunk in ").append(list.minUsage()).append('-').append(list.maxUsage())
                                .append(" %: usage ").append(chunk.usage()).append(" %, ")
                                .append(chunk.chunkSize() - chunk.freeBytes()).append(" of ")
                                .append(chunk.chunkSize()).append(" bytes\n");
                    }
                }
            }
        }
        return text.toString();
    }
}
