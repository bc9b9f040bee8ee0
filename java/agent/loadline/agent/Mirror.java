package loadline.agent;

import java.lang.instrument.Instrumentation;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/**
 * Reads fields and calls methods of classes known only by the end of their names. Missing members yield null and, where
 * a reader would miss them, an entry in {@link #unread}. Thread-safe: its caches are locked.
 */
final class Mirror {
    /** A longer list of reasons helps no one. */
    private static final int UNREAD_MAX = 64;

    private final Instrumentation jvm;
    private final Map<String, Object> members = new HashMap<>();
    private final Set<String> unread = new LinkedHashSet<>();
    private final Set<String> opened = new HashSet<>();
    private Object initialised;

    Mirror(Instrumentation jvm) {
        this.jvm = jvm;
    }

    /** Records that something could not be read. */
    synchronized void unread(String what) {
        if (unread.size() < UNREAD_MAX) {
            unread.add(what);
        }
    }

    synchronized String[] unread() {
        return unread.toArray(new String[0]);
    }

    /** The value of an object's field or, for a class, of a static field; null if there is none. */
    Object field(Object of, String name) {
        try {
            Field field = (Field) member(type(of), name, -1);
            return field == null ? null : field.get(of instanceof Class ? null : of);
        } catch (Throwable cause) {
            return null;
        }
    }

    boolean hasField(Object of, String name) {
        return member(type(of), name, -1) != null;
    }

    /** The result of a method without side effects; null if there is none, or if it throws. */
    Object ask(Object of, String name, Object... arguments) {
        try {
            Method method = (Method) member(type(of), name, arguments.length);
            return method == null ? null : method.invoke(of instanceof Class ? null : of, arguments);
        } catch (Throwable cause) {
            return null;
        }
    }

    /** The result as a number; null if it is not one. */
    Long number(Object of, String name) {
        return asNumber(ask(of, name));
    }

    /** A counter in a field: a number, an AtomicLong, a LongAdder, or Netty's LongCounter. */
    Long counter(Object of, String name) {
        Object value = field(of, name);
        if (value == null || value instanceof Number) {
            return asNumber(value);
        }
        return asNumber(ask(value, "value"));
    }

    static Long asNumber(Object value) {
        return value instanceof Number ? Long.valueOf(((Number) value).longValue()) : null;
    }

    /** Whether the name of the object's class or a superclass has this suffix. */
    static boolean isA(Object object, String suffix) {
        return object != null && ancestor(object.getClass(), suffix) != null;
    }

    static Class<?> ancestor(Class<?> type, String suffix) {
        while (type != null && !type.getName().endsWith(suffix)) {
            type = type.getSuperclass();
        }
        return type;
    }

    private static Class<?> type(Object of) {
        return of instanceof Class ? (Class<?>) of : of.getClass();
    }

    /** A field (parameters: -1) or method, made accessible; looked up once per class. */
    private synchronized Object member(Class<?> type, String name, int parameters) {
        String key = new StringBuilder(type.getName()).append('@').append(System.identityHashCode(type)).append(' ')
                .append(name).append(' ').append(parameters).toString();
        if (!members.containsKey(key)) {
            members.put(key, find(type, name, parameters));
        }
        return members.get(key);
    }

    private Object find(Class<?> type, String name, int parameters) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            try {
                AccessibleObject found = null;
                if (parameters < 0) {
                    found = at.getDeclaredField(name);
                } else {
                    for (Method method : at.getDeclaredMethods()) {
                        boolean fits = method.getName().equals(name) && method.getParameterCount() == parameters;
                        found = fits && !method.isBridge() ? method : found;
                    }
                }
                if (found != null) {
                    open(at);
                    found.setAccessible(true);
                    return found;
                }
            } catch (Throwable goOn) {
                // Missing or inaccessible here, but the superclass may have it.
            }
        }
        return null;
    }

    /** Opens the package of a class to this agent only. */
    private void open(Class<?> type) {
        Module module = type.getModule();
        String name = type.getPackageName();
        Module mine = Mirror.class.getModule();
        // Done even if the package is open to everyone, because JDK 11 to 16 warn the first time that is used.
        if (module.isNamed() && opened.add(module.getName() + '/' + name)) {
            Map<String, Set<Module>> opens = Collections.singletonMap(name, Collections.singleton(mine));
            jvm.redefineModule(module, Collections.emptySet(), Collections.emptyMap(), opens,
                    Collections.emptySet(), Collections.emptyMap());
        }
    }

    /** Whether the class is initialized. Reading a static field would initialize it, which is not for us to do. */
    boolean isInitialised(Class<?> type) {
        try {
            if (initialised == null) {
                initialised = ask(Class.forName("jdk.internal.misc.Unsafe"), "getUnsafe");
            }
            return Boolean.FALSE.equals(ask(initialised, "shouldBeInitialized", type));
        } catch (Throwable cause) {
            return false;
        }
    }
}
