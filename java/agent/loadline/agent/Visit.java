package loadline.agent;

import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/**
 * Reads what only an event loop's thread may read: its caches of freed buffers, the chunks that an adaptive allocator
 * keeps for it, and its channels, which know their allocators. Runs once, as a task of that loop.
 */
final class Visit implements Runnable {
    /** Maximum number of channels to query, which limits a loop's pause to about a millisecond. */
    private static final int CHANNELS_MAX = 1000;
    private static final String[] SIDES = {"Direct", "Heap"};
    private static final String[] KINDS = {"tinySubPage", "smallSubPage", "normal"};

    /** Freed buffers of one size that a thread keeps for itself. */
    static final class Cached {
        Object allocator;
        Object arena;
        String kind;
        long bufferBytes;
        long count;
        long bytes;
    }

    /** How much of a chunk is in cached buffers: their number and bytes, and the pages they use, by position. */
    static final class Held {
        long count;
        long bytes;
        final Map<Long, Long> runs = new HashMap<>();
    }

    final Object loop;
    final String thread;
    final CountDownLatch done = new CountDownLatch(1);
    final List<Cached> caches = new ArrayList<>();
    final Map<Object, Held> held = new IdentityHashMap<>();
    final Map<Object, String> adaptive = new IdentityHashMap<>();
    final Set<Object> allocators = Collections.newSetFromMap(new IdentityHashMap<Object, Boolean>());
    /** Thread caches by allocator, including empty ones. */
    final List<Object> cachesOf = new ArrayList<>();
    long channels;
    long tookNs;
    volatile boolean givenUp;
    private final Mirror mirror;

    Visit(Object loop, String thread, Mirror mirror) {
        this.loop = loop;
        this.thread = thread;
        this.mirror = mirror;
    }

    @Override
    public void run() {
        long begin = System.nanoTime();
        try {
            if (!givenUp) {
                readThreadLocals();
                readChannels();
            }
        } catch (Throwable cause) {
            mirror.unread("event loop " + thread + ": " + cause);
        }
        tookNs = System.nanoTime() - begin;
        done.countDown();
    }

    /**
     * Reads once, from outside, what the loop will read itself, and discards it. This way, classes are loaded and
     * members looked up on our own thread, which shortens the loop's pause.
     */
    static void rehearse(Object loop, Thread thread, Mirror mirror) {
        try {
            Visit rehearsal = new Visit(loop, thread.getName(), mirror);
            rehearsal.readVariables(mirror.field(thread, "threadLocalMap"));
            rehearsal.tookNs = System.nanoTime();
            rehearsal.done.countDown();
        } catch (Throwable ignored) {
            // The caches changed while we read them; the loop itself will see them at rest.
        }
    }

    private void readThreadLocals() throws ClassNotFoundException {
        Class<?> executor = Mirror.ancestor(loop.getClass(), Survey.EXECUTOR);
        String name = Survey.prefix(executor.getName(), Survey.EXECUTOR) + ".util.internal.InternalThreadLocalMap";
        readVariables(mirror.ask(Class.forName(name, false, executor.getClassLoader()), "getIfSet"));
    }

    private void readVariables(Object map) {
        Object variables = map == null ? null : mirror.field(map, "indexedVariables");
        if (!(variables instanceof Object[])) {
            if (map != null) {
                mirror.unread("thread caches: thread locals of this version of Netty");
            }
            return;
        }
        for (Object variable : (Object[]) variables) {
            if (Mirror.isA(variable, ".buffer.PoolThreadCache")) {
                readCache(variable);
            } else if (variable instanceof Object[]
                    && variable.getClass().getName().endsWith("AdaptivePoolingAllocator$MagazineGroup;")) {
                new Adaptive(mirror, adaptive).walk(variable);
            }
        }
    }

    private void readCache(Object cache) {
        for (String side : SIDES) {
            Object arena = mirror.field(cache, side.equals("Direct") ? "directArena" : "heapArena");
            Object allocator = arena == null ? null : mirror.field(arena, "parent");
            if (allocator == null) {
                continue;
            }
            allocators.add(allocator);
            if (side.equals("Direct")) {
                cachesOf.add(allocator);
            }
            for (String kind : KINDS) {
                Object regions = mirror.field(cache, kind + side + "Caches");
                if (regions instanceof Object[]) {
                    readRegions((Object[]) regions, kind, allocator, arena);
                }
            }
        }
    }

    private void readRegions(Object[] regions, String kind, Object allocator, Object arena) {
        for (int index = 0; index < regions.length; index++) {
            Object queue = regions[index] == null ? null : mirror.field(regions[index], "queue");
            if (!(queue instanceof Collection)) {
                if (regions[index] != null) {
                    mirror.unread("thread caches: " + kind + " of this version of Netty");
                }
                continue;
            }
            Cached cached = new Cached();
            cached.allocator = allocator;
            cached.arena = arena;
            cached.kind = kind.replace("SubPage", "");
            cached.bufferBytes = bufferBytes(arena, kind, index);
            cached.count = ((Collection<?>) queue).size();
            if (cached.count > 0) {
                readEntries((Collection<?>) queue, cached);
                cached.bytes = cached.bufferBytes * cached.count;
                caches.add(cached);
            }
        }
    }

    /** Each buffer in a cache, with its chunk. Only this thread takes from the queue. */
    private void readEntries(Collection<?> queue, Cached cached) {
        try {
            for (Object entry : queue) {
                Object chunk = entry == null ? null : mirror.field(entry, "chunk");
                Long handle = chunk == null ? null : Mirror.asNumber(mirror.field(entry, "handle"));
                if (handle == null) {
                    continue;
                }
                Long capacity = Mirror.asNumber(mirror.field(entry, "normCapacity"));
                if (capacity != null && capacity > 0) {
                    cached.bufferBytes = capacity;
                }
                Held of = held.get(chunk);
                if (of == null) {
                    of = new Held();
                    held.put(chunk, of);
                }
                of.count++;
                of.bytes += cached.bufferBytes;
                readRun(chunk, handle, of);
            }
        } catch (UnsupportedOperationException cause) {
            mirror.unread("cached bytes of each chunk: the caches of this version of Netty cannot be listed");
        }
    }

    /** The pages that a buffer keeps in use: its own, or those shared with other small ones. */
    private void readRun(Object chunk, Long handle, Held of) {
        Object pageShifts = mirror.field(chunk, "pageShifts");
        // Since 4.1.52, a handle has the run's position and size; before that, a node of the chunk's tree.
        Long bytes = Mirror.asNumber(mirror.ask(chunk, "runSize", pageShifts, handle));
        Object run = bytes == null ? (Object) handle.intValue() : handle;
        Long place = Mirror.asNumber(mirror.ask(chunk, "runOffset", run));
        if (bytes == null) {
            bytes = Mirror.asNumber(mirror.ask(chunk, "runLength", handle.intValue()));
        }
        if (bytes == null || place == null) {
            mirror.unread("pages kept by cached buffers: chunks of this version of Netty");
        } else {
            of.runs.put(place, bytes);
        }
    }

    /** The buffer size of a cache; size classes are numbered differently in each version. */
    private long bufferBytes(Object arena, String kind, int index) {
        boolean old = mirror.hasField(arena, "tinySubpagePools");
        Object classes = mirror.hasField(arena, "sizeClass") ? mirror.field(arena, "sizeClass") : arena;
        Long bytes = null;
        if (kind.startsWith("tiny")) {
            bytes = Long.valueOf((long) index << 4);
        } else if (old && kind.startsWith("small")) {
            bytes = Long.valueOf(512L << index);
        } else if (old) {
            Long page = Mirror.asNumber(mirror.field(arena, "pageSize"));
            bytes = page == null ? null : Long.valueOf(page << index);
        } else {
            boolean normal = kind.startsWith("normal");
            Long small = normal ? Mirror.asNumber(mirror.field(classes, "nSubpages")) : Long.valueOf(0);
            Object at = small == null ? null : Integer.valueOf((int) (small + index));
            bytes = at == null ? null : Mirror.asNumber(mirror.ask(classes, "sizeIdx2size", at));
        }
        if (bytes == null) {
            mirror.unread("sizes of cached buffers: size classes of this version of Netty");
        }
        return bytes == null ? 0 : bytes;
    }

    private void readChannels() {
        Iterator<?> all = channelsOf(loop);
        while (all != null && all.hasNext()) {
            Object channel = all.next();
            if (++channels > CHANNELS_MAX || channel == null) {
                continue;
            }
            Object config = mirror.ask(channel, "config");
            Object allocator = config == null ? null : mirror.ask(config, "getAllocator");
            if (allocator != null) {
                allocators.add(allocator);
            }
        }
    }

    private Iterator<?> channelsOf(Object loop) {
        Object iterator = mirror.ask(loop, "registeredChannelsIterator");
        if (iterator instanceof Iterator) {
            return (Iterator<?>) iterator;
        }
        Object selector = mirror.field(loop, "selector");
        if (selector instanceof Selector) {
            List<Object> found = new ArrayList<>();
            for (SelectionKey key : ((Selector) selector).keys()) {
                found.add(key.attachment());
            }
            return found.iterator();
        }
        Object byDescriptor = mirror.field(loop, "channels");
        if (byDescriptor instanceof Map) {
            return ((Map<?, ?>) byDescriptor).values().iterator();
        }
        if (Mirror.isA(loop, ".channel.SingleThreadEventLoop")) {
            mirror.unread("channels of " + loop.getClass().getName());
        }
        return null;
    }
}
