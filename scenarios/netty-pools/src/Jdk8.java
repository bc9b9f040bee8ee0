import io.netty.util.Version;
import io.netty.util.internal.PlatformDependent;
import java.lang.reflect.Field;
import java.nio.Buffer;
import sun.misc.Unsafe;

/**
 * Makes Netty 4.1.0.CR3 behave on newer JDKs as it does on JDK 8, the JDK of the source.
 *
 * <p>CR3 expects a heap buffer's address to be 0. As of JDK 9, it is not, so CR3 concludes that there is no
 * {@code Unsafe}: it prefers heap buffers, and frees direct ones only when a collection finds them. So this class
 * overwrites the result of Netty's check before any other class reads it. {@code io.netty.util.internal.Cleaner0} in
 * this source precedes Netty's own on the class path, because CR3 frees buffers with a class that JDK 9 moved. Other
 * versions are left alone.
 */
final class Jdk8 {
    private static final String OLD = "4.1.0.CR3";

    private Jdk8() {}

    static void pretend() throws ReflectiveOperationException {
        // Read from the manifest, because asking Netty would initialize that class.
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
            throw new IllegalStateException("Netty " + OLD + " does not use direct buffers on this JDK");
        }
    }

    private static void setLong(Unsafe unsafe, Class<?> type, String name, long value)
            throws ReflectiveOperationException {
        Field field = type.getDeclaredField(name);
        unsafe.putLong(unsafe.staticFieldBase(field), unsafe.staticFieldOffset(field), value);
    }
}
