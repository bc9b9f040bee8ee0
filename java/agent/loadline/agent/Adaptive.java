package loadline.agent;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;

/**
 * Finds the chunks that an adaptive allocator (in newer 4.1 versions, and the default in 4.2) still has. The fields
 * that refer to them differ between versions, so every field of Netty's own classes is followed. A fully allocated
 * chunk cannot be reached from here, because only its buffers refer to it.
 */
final class Adaptive {
    private static final String ALLOCATOR = ".buffer.AdaptivePoolingAllocator";
    private static final int DEPTH_MAX = 8;
    private static final int OBJECTS_MAX = 100_000;

    private final Mirror mirror;
    /** Each chunk with the place where it was found: {@code current}, {@code next}, or {@code reuse}. */
    private final Map<Object, String> chunks;
    private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<Object, Boolean>());

    Adaptive(Mirror mirror, Map<Object, String> chunks) {
        this.mirror = mirror;
        this.chunks = chunks;
    }

    void walk(Object root) {
        walk(root, "reuse", 0);
    }

    private void walk(Object at, String role, int depth) {
        if (at == null || depth > DEPTH_MAX || seen.size() > OBJECTS_MAX || !seen.add(at)) {
            return;
        }
        String name = at.getClass().getName();
        if (Mirror.isA(at, ALLOCATOR + "$Chunk")) {
            chunks.putIfAbsent(at, role);
        } else if (at instanceof Object[]) {
            for (Object element : (Object[]) at) {
                walk(element, role, depth + 1);
            }
        } else if (name.endsWith("$IntEntry")) {
            Object value = mirror.ask(at, "getValue");
            walk(value == null ? mirror.field(at, "value") : value, role, depth + 1);
        } else if (at instanceof Iterable) {
            walkAll((Iterable<?>) at, role, depth);
        } else if (name.contains(ALLOCATOR) && !name.endsWith("ChunkController")) {
            walkFields(at, depth);
        }
    }

    private void walkAll(Iterable<?> elements, String role, int depth) {
        try {
            for (Object element : elements) {
                walk(element, role, depth + 1);
            }
        } catch (RuntimeException cause) {
            mirror.unread("chunks for reuse of an adaptive allocator: " + cause);
        }
    }

    private void walkFields(Object at, int depth) {
        for (Class<?> type = at.getClass(); type != null && type != Object.class; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                String name = field.getName();
                boolean upwards = name.equals("allocator") || name.equals("group");
                if (upwards || Modifier.isStatic(field.getModifiers()) || field.getType().isPrimitive()) {
                    continue;
                }
                boolean known = name.equals("current") || name.equals("nextInLine");
                String role = known ? name.replace("InLine", "") : "reuse";
                walk(mirror.field(at, name), role, depth + 1);
            }
        }
    }

    /** The free bytes of a chunk, read from a field, because the chunk's own method would recount them. */
    static Long freeBytes(Mirror mirror, Object chunk, long capacity) {
        Long segment = Mirror.asNumber(mirror.field(chunk, "segmentSize"));
        if (segment != null) {
            Object shared = mirror.field(chunk, "externalFreeList");
            shared = shared == null ? mirror.field(chunk, "freeList") : shared;
            Object own = mirror.field(chunk, "localFreeList");
            Long free = shared == null ? null : mirror.number(shared, "size");
            Long more = own == null ? Long.valueOf(0) : mirror.number(own, "size");
            return free == null || more == null ? null : Long.valueOf(segment * (free + more));
        }
        Long allocated = Mirror.asNumber(mirror.field(chunk, "allocatedBytes"));
        return allocated == null ? null : Long.valueOf(capacity - allocated);
    }
}
