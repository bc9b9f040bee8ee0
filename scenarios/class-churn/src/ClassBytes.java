import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/**
 * Writes class files by hand, so that the same classes load on every JDK since 11: {@code java.lang.classfile} needs
 * JDK 24, and a library would have to be downloaded.
 *
 * <p>A class of size n has n fields each of {@code int}, {@code String} and {@code byte[]}, a constructor that sets
 * them, and a getter for each. No method branches, so none needs a stack map.
 */
final class ClassBytes {
    private static final int ACC_PUBLIC = 1;
    private static final int ACC_SUPER = 0x20;
    /** Java 8's format, which every JDK reads. */
    private static final int MAJOR = 52;
    /** {@code newarray}'s code for {@code byte}. */
    private static final int T_BYTE = 8;
    /** Length of each {@code byte[]} field's array. */
    private static final int ARRAY_LENGTH = 16;

    private final ByteArrayOutputStream constants = new ByteArrayOutputStream();
    private final DataOutputStream pool = new DataOutputStream(constants);
    /** The index of each entry in the constant pool, from 1, by content. */
    private final Map<String, Integer> known = new HashMap<>();
    private final String name;
    private final int size;

    private ClassBytes(String name, int size) {
        this.name = name;
        this.size = size;
    }

    /** A class file with this name and {@code size} fields of each of the three types. */
    static byte[] of(String name, int size) throws IOException {
        return new ClassBytes(name, size).file();
    }

    private byte[] file() throws IOException {
        // The pool comes before the body, but is complete only once the body is written.
        byte[] body = body();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xCAFEBABE);
        out.writeShort(0);
        out.writeShort(MAJOR);
        out.writeShort(known.size() + 1);
        out.write(constants.toByteArray());
        out.write(body);
        return bytes.toByteArray();
    }

    private byte[] body() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeShort(ACC_PUBLIC | ACC_SUPER);
        out.writeShort(type(name));
        out.writeShort(type("java/lang/Object"));
        out.writeShort(0);
        Kind[] kinds = Kind.values();
        out.writeShort(kinds.length * size);
        for (int i = 0; i < size; i++) {
            for (Kind kind : kinds) {
                out.writeShort(ACC_PUBLIC);
                out.writeShort(utf8(kind.field + i));
                out.writeShort(utf8(kind.descriptor));
                out.writeShort(0);
            }
        }
        out.writeShort(kinds.length * size + 1);
        method(out, "<init>", "()V", 3, constructor());
        for (int i = 0; i < size; i++) {
            for (Kind kind : kinds) {
                method(out, "get_" + kind.field + i, "()" + kind.descriptor, 1, getter(kind, i));
            }
        }
        out.writeShort(0);
        return bytes.toByteArray();
    }

    private void method(DataOutputStream out, String method, String descriptor, int stack, byte[] code)
            throws IOException {
        out.writeShort(ACC_PUBLIC);
        out.writeShort(utf8(method));
        out.writeShort(utf8(descriptor));
        out.writeShort(1);
        out.writeShort(utf8("Code"));
        // Stack and locals, the code with its length, no handlers, no attributes.
        out.writeInt(2 + 2 + 4 + code.length + 2 + 2);
        out.writeShort(stack);
        out.writeShort(1);
        out.writeInt(code.length);
        out.write(code);
        out.writeShort(0);
        out.writeShort(0);
    }

    private byte[] constructor() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream code = new DataOutputStream(bytes);
        code.writeByte(0x2A); // aload_0
        code.writeByte(0xB7); // invokespecial
        code.writeShort(member(10, "java/lang/Object", "<init>", "()V"));
        for (int i = 0; i < size; i++) {
            for (Kind kind : Kind.values()) {
                code.writeByte(0x2A); // aload_0
                switch (kind) {
                    case NUMBER:
                        code.writeByte(0x11); // sipush
                        code.writeShort(i);
                        break;
                    case TEXT:
                        code.writeByte(0x13); // ldc_w
                        code.writeShort(entry(8, utf8("text " + i)));
                        break;
                    default:
                        code.writeByte(0x10); // bipush
                        code.writeByte(ARRAY_LENGTH);
                        code.writeByte(0xBC); // newarray
                        code.writeByte(T_BYTE);
                }
                code.writeByte(0xB5); // putfield
                code.writeShort(member(9, name, kind.field + i, kind.descriptor));
            }
        }
        code.writeByte(0xB1); // return
        return bytes.toByteArray();
    }

    private byte[] getter(Kind kind, int i) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream code = new DataOutputStream(bytes);
        code.writeByte(0x2A); // aload_0
        code.writeByte(0xB4); // getfield
        code.writeShort(member(9, name, kind.field + i, kind.descriptor));
        code.writeByte(kind == Kind.NUMBER ? 0xAC : 0xB0); // ireturn or areturn
        return bytes.toByteArray();
    }

    private int utf8(String text) throws IOException {
        Integer number = known.get("1 " + text);
        if (number != null) {
            return number;
        }
        pool.writeByte(1);
        pool.writeUTF(text);
        return added("1 " + text);
    }

    private int type(String type) throws IOException {
        return entry(7, utf8(type));
    }

    /** Adds a field (9) or method (10) reference. */
    private int member(int tag, String of, String member, String descriptor) throws IOException {
        return entry(tag, type(of), entry(12, utf8(member), utf8(descriptor)));
    }

    /** Adds an entry: a tag and the indexes of other entries. */
    private int entry(int tag, int... others) throws IOException {
        StringBuilder key = new StringBuilder(Integer.toString(tag));
        for (int other : others) {
            key.append(' ').append('#').append(other);
        }
        Integer number = known.get(key.toString());
        if (number != null) {
            return number;
        }
        pool.writeByte(tag);
        for (int other : others) {
            pool.writeShort(other);
        }
        return added(key.toString());
    }

    private int added(String key) {
        int number = known.size() + 1;
        known.put(key, number);
        return number;
    }

    private enum Kind {
        NUMBER("i", "I"),
        TEXT("s", "Ljava/lang/String;"),
        BYTES("b", "[B");

        final String field;
        final String descriptor;

        Kind(String field, String descriptor) {
            this.field = field;
            this.descriptor = descriptor;
        }
    }
}
