package loadline.agent;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** Writes the contents of one Netty's allocators: arenas, chunks, caches, and totals. */
final class Pools {
    /** With more chunks, the report would be too large to be useful. */
    private static final int CHUNKS_MAX = 50_000;
    private static final String[] LISTS = {"qInit", "q000", "q025", "q050", "q075", "q100"};

    private final Survey.Library library;
    private final Mirror mirror;
    private final Json json;
    private final Map<Object, Visit.Held> held = new IdentityHashMap<>();
    private int chunks;

    Pools(Survey.Library library, Mirror mirror, Json json) {
        this.library = library;
        this.mirror = mirror;
        this.json = json;
    }

    void write(String version) {
        long channels = 0;
        for (Visit visit : library.visits) {
            channels += visit.channels;
            for (Map.Entry<Object, Visit.Held> entry : visit.held.entrySet()) {
                Visit.Held all = held.get(entry.getKey());
                if (all == null) {
                    all = new Visit.Held();
                    held.put(entry.getKey(), all);
                }
                all.count += entry.getValue().count;
                all.bytes += entry.getValue().bytes;
                all.runs.putAll(entry.getValue().runs);
            }
        }
        json.open('{').field("package", library.prefix).field("version", version);
        json.field("event_loops", Long.valueOf(library.loops));
        json.field("event_loops_read", Long.valueOf(library.visits.size())).field("channels", Long.valueOf(channels));
        writeCounters();
        json.name("allocators").open('[');
        for (Object allocator : library.order) {
            try {
                writeAllocator(allocator);
            } catch (RuntimeException cause) {
                mirror.unread("allocator " + allocator.getClass().getName() + ": " + cause);
            }
        }
        json.close(']').close('}');
    }

    /** Netty's own counters of direct memory; if it has none, it leaves the counting to the JDK. */
    private void writeCounters() {
        Class<?> of = library.counters;
        boolean usable = of != null && (!library.order.isEmpty() || mirror.isInitialised(of));
        Object used = usable ? mirror.ask(of, "usedDirectMemory") : null;
        Long bytes = used != null ? Mirror.asNumber(used) : usable ? mirror.counter(of, "DIRECT_MEMORY_COUNTER") : null;
        if (used == null && bytes == null) {
            mirror.unread("Netty's counter of direct memory: " + library.prefix + " has none");
        }
        json.field("direct_used_bytes", bytes);
        json.field("direct_max_bytes", usable ? mirror.number(of, "maxDirectMemory") : null);
    }

    private void writeAllocator(Object allocator) {
        boolean pooled = Mirror.isA(allocator, ".buffer.PooledByteBufAllocator");
        boolean adaptive = Mirror.isA(allocator, ".buffer.AdaptiveByteBufAllocator");
        boolean unpooled = Mirror.isA(allocator, ".buffer.UnpooledByteBufAllocator");
        Object metric = mirror.ask(allocator, "metric");
        json.open('{').field("class", allocator.getClass().getName());
        json.field("id", Long.toHexString(System.identityHashCode(allocator)));
        json.field("kind", pooled ? "pooled" : adaptive ? "adaptive" : unpooled ? "unpooled" : "other");
        json.name("found_by").open('[');
        for (String how : library.allocators.get(allocator)) {
            json.value(how);
        }
        json.close(']');
        json.field("used_direct_bytes", metric == null ? null : mirror.number(metric, "usedDirectMemory"));
        json.field("used_heap_bytes", metric == null ? null : mirror.number(metric, "usedHeapMemory"));
        if (pooled) {
            writePooled(allocator);
        } else if (adaptive) {
            writeAdaptive(allocator);
        }
        json.close('}');
    }

    private void writePooled(Object allocator) {
        boolean tracked = tracksPinned(allocator);
        json.field("pinned_direct_bytes", tracked ? mirror.number(allocator, "pinnedDirectMemory") : null);
        json.field("pinned_heap_bytes", tracked ? mirror.number(allocator, "pinnedHeapMemory") : null);
        Long chunkBytes = mirror.number(allocator, "chunkSize");
        long caches = 0;
        for (Visit visit : library.visits) {
            for (Object of : visit.cachesOf) {
                caches += of == allocator ? 1 : 0;
            }
        }
        json.field("thread_caches", mirror.number(allocator, "numThreadLocalCaches"));
        json.field("thread_caches_read", Long.valueOf(caches));
        List<Object> arenas = new ArrayList<>();
        json.name("arenas").open('[');
        for (String memory : new String[] {"direct", "heap"}) {
            Object all = mirror.field(allocator, memory + "Arenas");
            if (all instanceof Object[]) {
                for (int index = 0; index < ((Object[]) all).length; index++) {
                    Object arena = ((Object[]) all)[index];
                    arenas.add(arena);
                    chunkBytes = chunkBytes != null ? chunkBytes : Mirror.asNumber(mirror.field(arena, "chunkSize"));
                    writeArena(arena, memory, index, tracked);
                }
            }
        }
        json.close(']').field("chunk_bytes", chunkBytes);
        writeCaches(allocator, arenas);
    }

    /** Whether this Netty counts the bytes handed out: newer versions do, and the newest can disable it. */
    private boolean tracksPinned(Object allocator) {
        Class<?> pooled = Mirror.ancestor(allocator.getClass(), ".buffer.PooledByteBufAllocator");
        if (mirror.ask(allocator, "pinnedDirectMemory") == null) {
            mirror.unread("bytes handed out (pinned): this version of Netty does not count them");
            return false;
        }
        try {
            String name = library.prefix + ".buffer.PoolChunk";
            Class<?> chunk = Class.forName(name, false, pooled.getClassLoader());
            Object tracked = mirror.isInitialised(chunk) ? mirror.field(chunk, "trackPinnedMemory") : null;
            if (Boolean.FALSE.equals(tracked)) {
                mirror.unread("bytes handed out (pinned): counting is off (io.netty.trackPinnedMemory)");
                return false;
            }
        } catch (ClassNotFoundException cause) {
            return false;
        }
        return true;
    }

    private void writeArena(Object arena, String memory, int index, boolean tracked) {
        json.open('{').field("memory", memory).field("index", Long.valueOf(index));
        json.field("thread_caches", mirror.number(arena, "numThreadCaches"));
        json.field("active_bytes", mirror.number(arena, "numActiveBytes"));
        json.field("huge_bytes", mirror.counter(arena, "activeBytesHuge"));
        writeAllocations(arena);
        json.name("chunks").open('[');
        Object lists = mirror.ask(arena, "chunkLists");
        if (lists instanceof Iterable) {
            for (Object list : (Iterable<?>) lists) {
                for (Object chunk : (Iterable<?>) list) {
                    writeChunk(chunk, listName(arena, list), tracked);
                }
            }
        } else {
            mirror.unread("chunks of " + arena.getClass().getName());
        }
        json.close(']').close('}');
    }

    private void writeAllocations(Object arena) {
        Long tiny = mirror.number(arena, "numTinyAllocations");
        Long tinyActive = mirror.number(arena, "numActiveTinyAllocations");
        json.name("allocations").open('{');
        for (String size : new String[] {"Small", "Normal", "Huge"}) {
            boolean small = size.equals("Small");
            Long made = mirror.number(arena, "num" + size + "Allocations");
            Long active = mirror.number(arena, "numActive" + size + "Allocations");
            json.name(size.toLowerCase(java.util.Locale.ROOT)).open('{');
            // Until 4.1.52, the smallest of the small buffers were counted separately, as tiny ones.
            json.field("made", made == null ? null : Long.valueOf(made + (small && tiny != null ? tiny : 0)));
            json.field("active", active == null ? null
                    : Long.valueOf(active + (small && tinyActive != null ? tinyActive : 0)));
            json.close('}');
        }
        json.close('}');
    }

    private String listName(Object arena, Object list) {
        for (String name : LISTS) {
            if (mirror.field(arena, name) == list) {
                return name;
            }
        }
        return mirror.number(list, "minUsage") + "-" + mirror.number(list, "maxUsage");
    }

    private void writeChunk(Object chunk, String list, boolean tracked) {
        if (++chunks > CHUNKS_MAX) {
            mirror.unread("chunks beyond the first " + CHUNKS_MAX);
            return;
        }
        json.open('{').field("list", list).field("usage_percent", mirror.number(chunk, "usage"));
        json.field("bytes", mirror.number(chunk, "chunkSize")).field("free_bytes", mirror.number(chunk, "freeBytes"));
        json.field("pinned_bytes", tracked ? mirror.number(chunk, "pinnedBytes") : null);
        Visit.Held of = held.get(chunk);
        long kept = 0;
        if (of != null) {
            for (Long bytes : of.runs.values()) {
                kept += bytes;
            }
        }
        json.field("cached_buffers", Long.valueOf(of == null ? 0 : of.count));
        json.field("cached_bytes", Long.valueOf(of == null ? 0 : of.bytes));
        json.field("kept_bytes", Long.valueOf(kept)).close('}');
    }

    private void writeCaches(Object allocator, List<Object> arenas) {
        json.name("caches").open('[');
        for (Visit visit : library.visits) {
            for (Visit.Cached cached : visit.caches) {
                int arena = arenas.indexOf(cached.arena);
                if (cached.allocator != allocator || arena < 0) {
                    continue;
                }
                json.open('{').field("thread", visit.thread).field("arena", Long.valueOf(arena));
                json.field("kind", cached.kind).field("buffer_bytes", Long.valueOf(cached.bufferBytes));
                json.field("buffers", Long.valueOf(cached.count)).field("bytes", Long.valueOf(cached.bytes)).close('}');
            }
        }
        json.close(']');
    }

    private void writeAdaptive(Object allocator) {
        json.name("arenas").open('[');
        for (String memory : new String[] {"direct", "heap"}) {
            Object pool = mirror.field(allocator, memory);
            if (pool == null) {
                mirror.unread("chunks of " + allocator.getClass().getName() + ": " + memory);
                continue;
            }
            Map<Object, String> found = new IdentityHashMap<>();
            for (Visit visit : library.visits) {
                for (Map.Entry<Object, String> entry : visit.adaptive.entrySet()) {
                    if (mirror.field(entry.getKey(), "allocator") == pool) {
                        found.put(entry.getKey(), entry.getValue());
                    }
                }
            }
            new Adaptive(mirror, found).walk(pool);
            Long used = mirror.number(pool, "usedMemory");
            json.open('{').field("memory", memory).field("index", Long.valueOf(0)).field("active_bytes", used);
            json.name("chunks").open('[');
            long reached = 0;
            for (Map.Entry<Object, String> entry : found.entrySet()) {
                Long bytes = Mirror.asNumber(mirror.field(entry.getKey(), "capacity"));
                if (bytes != null && bytes > 0 && ++chunks <= CHUNKS_MAX) {
                    reached += bytes;
                    json.open('{').field("list", entry.getValue()).field("bytes", bytes);
                    json.field("free_bytes", Adaptive.freeBytes(mirror, entry.getKey(), bytes)).close('}');
                }
            }
            // A chunk without a free byte is reachable only from its buffers.
            json.close(']').field("unreached_bytes", used == null ? null : Long.valueOf(Math.max(0, used - reached)));
            json.close('}');
        }
        json.close(']');
    }
}
