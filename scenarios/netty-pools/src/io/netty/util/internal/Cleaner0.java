package io.netty.util.internal;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import sun.misc.Unsafe;

/**
 * Replaces this class of Netty 4.1.0.CR3, which frees direct buffers in a way that JDK 9 closed off: see {@code Jdk8}.
 * Newer versions have no such class.
 */
final class Cleaner0 {
    private static final Unsafe UNSAFE = unsafe();

    private Cleaner0() {}

    static void freeDirectBuffer(ByteBuffer buffer) {
        if (buffer.isDirect()) {
            UNSAFE.invokeCleaner(buffer);
        }
    }

    private static Unsafe unsafe() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (Unsafe) field.get(null);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }
}
