package loadline.agent;

import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/** One pass over every Netty in this JVM: finds event loops, then their allocators, and writes their contents. */
final class Survey {
    /** The superclass of every event loop, whatever name Netty is shaded to. */
    static final String EXECUTOR = ".util.concurrent.SingleThreadEventExecutor";
    private static final String ANCHOR = ".buffer.AbstractByteBufAllocator";
    private static final String COUNTERS = ".util.internal.PlatformDependent";
    /** Classes with an allocator in a static field, and that field. */
    private static final String[][] STATICS = {
        {".buffer.ByteBufUtil", "DEFAULT_ALLOCATOR"},
        {".buffer.PooledByteBufAllocator", "DEFAULT"},
        {".buffer.UnpooledByteBufAllocator", "DEFAULT"},
    };
    /** How long all event loops together may take to run our task; any that are busy for longer are skipped. */
    private static final long LOOPS_WITHIN_NS = TimeUnit.SECONDS.toNanos(2);
    private static final int RUNNABLES_DEEP = 7;

    /** One Netty: its classes share a loader and the prefix before {@code .buffer}. */
    static final class Library {
        final String prefix;
        final ClassLoader loader;
        final Class<?> anchor;
        Class<?> counters;
        final List<Class<?>> holders = new ArrayList<>();
        final Map<Object, List<String>> allocators = new IdentityHashMap<>();
        final List<Object> order = new ArrayList<>();
        final List<Visit> visits = new ArrayList<>();
        int loops;

        Library(String prefix, Class<?> anchor) {
            this.prefix = prefix;
            this.loader = anchor.getClassLoader();
            this.anchor = anchor;
        }

        void found(Object allocator, String how) {
            List<String> from = allocators.get(allocator);
            if (from == null) {
                from = new ArrayList<>();
                allocators.put(allocator, from);
                order.add(allocator);
            }
            if (!from.contains(how)) {
                from.add(how);
            }
        }
    }

    private final Instrumentation jvm;
    private final Mirror mirror;
    private final List<Library> libraries = new ArrayList<>();

    Survey(Instrumentation jvm) {
        this.jvm = jvm;
        this.mirror = new Mirror(jvm);
    }

    String take() {
        long begin = System.nanoTime();
        Class<?>[] loaded = jvm.getAllLoadedClasses();
        findLibraries(loaded);
        visitLoops();
        findAllocators();
        Json json = new Json().open('{');
        json.name("libraries").open('[');
        for (Library library : libraries) {
            new Pools(library, mirror, json).write(version(library));
        }
        json.close(']');
        writeDirectMemory(json);
        long loopNs = 0;
        for (Library library : libraries) {
            for (Visit visit : library.visits) {
                loopNs = Math.max(loopNs, visit.tookNs);
            }
        }
        json.name("agent").open('{').field("version", Long.valueOf(Agent.VERSION));
        json.field("took_ms", (System.nanoTime() - begin) / 1e6).field("loop_ms_max", loopNs / 1e6);
        json.field("classes_loaded", Long.valueOf(jvm.getAllLoadedClasses().length - loaded.length)).close('}');
        json.name("unread").open('[');
        for (String what : mirror.unread()) {
            json.value(what);
        }
        return json.close(']').close('}').toString();
    }

    /** For example, {@code a.io.netty} for {@code a.io.netty.buffer.X}. */
    static String prefix(String name, String suffix) {
        return name.substring(0, name.length() - suffix.length());
    }

    private void findLibraries(Class<?>[] loaded) {
        for (Class<?> type : loaded) {
            if (type.getName().endsWith(ANCHOR)) {
                libraries.add(new Library(prefix(type.getName(), ANCHOR), type));
            }
        }
        for (Class<?> type : libraries.isEmpty() ? new Class<?>[0] : loaded) {
            String name = type.getName();
            for (Library library : libraries) {
                if (library.loader != type.getClassLoader() || !name.startsWith(library.prefix)) {
                    continue;
                }
                String rest = name.substring(library.prefix.length());
                library.counters = rest.equals(COUNTERS) ? type : library.counters;
                for (String[] holder : STATICS) {
                    if (rest.equals(holder[0])) {
                        library.holders.add(type);
                    }
                }
            }
        }
    }

    private Library libraryOf(Class<?> type, String suffix) {
        Class<?> known = Mirror.ancestor(type, suffix);
        for (Library library : libraries) {
            if (known != null && library.loader == known.getClassLoader()
                    && prefix(known.getName(), suffix).equals(library.prefix)) {
                return library;
            }
        }
        return null;
    }

    /** Submits one task to every event loop, then waits for all of them together. */
    private void visitLoops() {
        Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<Object, Boolean>());
        for (Thread thread : libraries.isEmpty() ? new Thread[0] : threads()) {
            Object loop = thread == null ? null : executorOf(thread);
            Library library = loop == null ? null : libraryOf(loop.getClass(), EXECUTOR);
            if (library == null || !seen.add(loop)) {
                continue;
            }
            if (library.loops++ == 0) {
                Visit.rehearse(loop, thread, mirror);
            }
            Visit visit = new Visit(loop, thread.getName(), mirror);
            try {
                ((Executor) loop).execute(visit);
                library.visits.add(visit);
            } catch (Throwable cause) {
                mirror.unread("event loop " + thread.getName() + " takes no task: " + cause);
            }
        }
        long end = System.nanoTime() + LOOPS_WITHIN_NS;
        for (Library library : libraries) {
            for (Visit visit : new ArrayList<>(library.visits)) {
                if (!ended(visit, end)) {
                    visit.givenUp = true;
                    library.visits.remove(visit);
                    mirror.unread("event loop " + visit.thread + ": busy for more than 2 s");
                }
            }
        }
    }

    private static boolean ended(Visit visit, long end) {
        try {
            return visit.done.await(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (InterruptedException cause) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private static Thread[] threads() {
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        while (group.getParent() != null) {
            group = group.getParent();
        }
        Thread[] threads = new Thread[group.activeCount() + 64];
        group.enumerate(threads, true);
        return threads;
    }

    /** The event loop that a thread runs: its task, or an object that the task refers to. */
    private Object executorOf(Thread thread) {
        Object task = mirror.field(thread, "target");
        if (task == null) {
            // Since JDK 19.
            Object holder = mirror.field(thread, "holder");
            task = holder == null ? null : mirror.field(holder, "task");
        }
        return executorIn(task, 0);
    }

    private Object executorIn(Object task, int depth) {
        if (task == null || depth > RUNNABLES_DEEP || Mirror.isA(task, EXECUTOR)) {
            return depth > RUNNABLES_DEEP ? null : task;
        }
        if (task.getClass().getName().startsWith("java.")) {
            return null;
        }
        for (Field field : task.getClass().getDeclaredFields()) {
            String name = field.getName();
            boolean wanted = Runnable.class.isAssignableFrom(field.getType()) || name.startsWith("val$")
                    || name.startsWith("this$") || name.startsWith("arg$");
            if (wanted && !Modifier.isStatic(field.getModifiers()) && !field.getType().isPrimitive()) {
                Object found = executorIn(mirror.field(task, name), depth + 1);
                if (found != null) {
                    return found;
                }
            }
        }
        return null;
    }

    private void findAllocators() {
        for (Library library : libraries) {
            for (Visit visit : library.visits) {
                for (Object allocator : visit.allocators) {
                    Library owner = libraryOf(allocator.getClass(), ANCHOR);
                    (owner == null ? library : owner).found(allocator, "event loops");
                }
            }
            for (String[] holder : STATICS) {
                for (Class<?> type : library.holders) {
                    if (type.getName().endsWith(holder[0]) && mirror.isInitialised(type)) {
                        Object allocator = mirror.field(type, holder[1]);
                        if (allocator == null) {
                            mirror.unread(type.getName() + "." + holder[1]);
                        } else {
                            library.found(allocator, holder[1].equals("DEFAULT") ? "static" : "default");
                        }
                    }
                }
            }
        }
    }

    /** Netty's own list of versions: a shaded jar's manifest has another library's version. */
    private static String version(Library library) {
        ClassLoader loader = library.loader == null ? ClassLoader.getSystemClassLoader() : library.loader;
        try (InputStream in = loader.getResourceAsStream("META-INF/io.netty.versions.properties")) {
            BufferedReader lines = in == null ? null
                    : new BufferedReader(new InputStreamReader(in, StandardCharsets.ISO_8859_1));
            String line;
            while (lines != null && (line = lines.readLine()) != null) {
                if (line.startsWith("netty-buffer.version=") || line.startsWith("netty-common.version=")) {
                    return line.substring(line.indexOf('=') + 1);
                }
            }
            Package of = library.anchor.getPackage();
            return of != null && library.prefix.equals("io.netty") ? of.getImplementationVersion() : null;
        } catch (Throwable cause) {
            return null;
        }
    }

    /** The JDK's own count against {@code -XX:MaxDirectMemorySize}; Netty may bypass it. */
    private void writeDirectMemory(Json json) {
        Class<?> bits = null;
        try {
            bits = Class.forName("java.nio.Bits");
        } catch (Throwable cause) {
            mirror.unread("direct memory of the JDK: " + cause);
        }
        json.name("jdk_direct").open('{');
        json.field("reserved_bytes", bits == null ? null : mirror.counter(bits, "RESERVED_MEMORY"));
        json.field("buffers", bits == null ? null : mirror.counter(bits, "COUNT"));
        json.field("max_bytes", bits == null ? null : mirror.counter(bits, "MAX_MEMORY")).close('}');
    }
}
