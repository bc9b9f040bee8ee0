import io.netty.util.Version;
import io.netty.util.internal.PlatformDependent;
import java.lang.reflect.Field;
import java.nio.Buffer;
import sun.misc.Unsafe;

/**
 * Gives Netty 4.1.0.CR3 on a new JDK what it had on JDK 8, where the question comes from.
 *
 * <p>CR3 asks whether the address of a heap buffer is 0; since JDK 9 it is not, and CR3 concludes that there is no
 * {@code Unsafe}: it then prefers heap buffers, and frees direct ones only when a collection finds them. Here the
 * class that looks is told what it would have found, before any other class has asked it. Its way to free a buffer,
 * by a class that JDK 9 has moved, is replaced too: {@code io.netty.util.internal.Cleaner0} of this source comes
 * before Netty's on the class path. Other versions know new JDKs, and are left alone.
 */
final class Jdk8 {
    private static final String OLD = "4.1.0.CR3";

    private Jdk8() {}

    static void pretend() throws ReflectiveOperationException {
        // From the manifest: to ask Netty itself would make the class look.
        if (!OLD.equals(Version.class.getPackage().getImplementationVersion())) {
            return;
        }
        Field theUnsafe = Unsafe.class.getDeclaredField("theUnsafe");
        theUnsafe.setAccessible(true);
        Unsafe unsafe = (Unsafe) theUnsafe.get(null);
        Class<?> looks = Class.forName("io.netty.util.internal.PlatformDependent0");
        long address = unsafe.objectFieldOffset(Buffer.class.getDeclaredField("address"));
        setLong(unsafe, looks, "ADDRESS_FIELD_OFFSET", address);
        setLong(unsafe, looks, "BYTE_ARRAY_BASE_OFFSET", unsafe.arrayBaseOffset(byte[].class));
        setLong(unsafe, looks, "CHAR_ARRAY_BASE_OFFSET", unsafe.arrayBaseOffset(char[].class));
        setLong(unsafe, looks, "CHAR_ARRAY_INDEX_SCALE", unsafe.arrayIndexScale(char[].class));
        Field found = looks.getDeclaredField("UNSAFE");
        unsafe.putObject(unsafe.staticFieldBase(found), unsafe.staticFieldOffset(found), unsafe);
        if (!PlatformDependent.hasUnsafe() || !PlatformDependent.directBufferPreferred()) {
            throw new IllegalStateException("Netty " + OLD + " does not take direct buffers on this JDK");
        }
    }

    private static void setLong(Unsafe unsafe, Class<?> type, String name, long value)
            throws ReflectiveOperationException {
        Field field = type.getDeclaredField(name);
        unsafe.putLong(unsafe.staticFieldBase(field), unsafe.staticFieldOffset(field), value);
    }
}
