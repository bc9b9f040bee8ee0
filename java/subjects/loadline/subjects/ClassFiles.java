package loadline.subjects;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.function.IntUnaryOperator;

/**
 * Generates class files, each an {@code IntUnaryOperator} whose one method is straight-line arithmetic of any length.
 * The constants stay out of the constant pool, so all files have the same shape and differ only in name.
 */
final class ClassFiles extends ClassLoader {
    private static final int FINAL_SUPER = 0x0031;
    private static final int PUBLIC = 0x0001;
    /** Java 8: accepted by any JDK, and code without branches needs no stack maps. */
    private static final int VERSION = 52;
    private static final int ROUND_BYTES = 9;

    private final int rounds;

    /** Methods of {@code rounds} rounds of a multiplication, an addition, and an exclusive or. */
    ClassFiles(int rounds) {
        super(ClassFiles.class.getClassLoader());
        this.rounds = rounds;
    }

    /** A new class, linked and initialized, and one object of it. */
    IntUnaryOperator make(String name) throws IOException, ReflectiveOperationException {
        byte[] file = classFile(name);
        Class<?> made = defineClass(name, file, 0, file.length);
        return (IntUnaryOperator) made.getDeclaredConstructor().newInstance();
    }

    private byte[] classFile(String name) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xCAFEBABE);
        out.writeShort(0);
        out.writeShort(VERSION);
        constants(out, name);
        out.writeShort(FINAL_SUPER);
        out.writeShort(2);
        out.writeShort(4);
        out.writeShort(1);
        out.writeShort(6);
        out.writeShort(0);
        out.writeShort(2);
        // aload_0, invokespecial #10, return
        method(out, 7, 8, new byte[] {0x2A, (byte) 0xB7, 0, 10, (byte) 0xB1}, 1, 1);
        method(out, 12, 13, arithmetic(), 2, 2);
        out.writeShort(0);
        return bytes.toByteArray();
    }

    private static void constants(DataOutputStream out, String name) throws IOException {
        out.writeShort(14);
        text(out, name);
        reference(out, 7, 1);
        text(out, "java/lang/Object");
        reference(out, 7, 3);
        text(out, "java/util/function/IntUnaryOperator");
        reference(out, 7, 5);
        text(out, "<init>");
        text(out, "()V");
        // #9: name and type of the constructor; #10: the constructor of Object
        out.writeByte(12);
        out.writeShort(7);
        out.writeShort(8);
        out.writeByte(10);
        out.writeShort(4);
        out.writeShort(9);
        text(out, "Code");
        text(out, "applyAsInt");
        text(out, "(I)I");
    }

    private static void text(DataOutputStream out, String text) throws IOException {
        out.writeByte(1);
        out.writeUTF(text);
    }

    private static void reference(DataOutputStream out, int tag, int index) throws IOException {
        out.writeByte(tag);
        out.writeShort(index);
    }

    private static void method(DataOutputStream out, int name, int type, byte[] code, int stack, int locals)
            throws IOException {
        out.writeShort(PUBLIC);
        out.writeShort(name);
        out.writeShort(type);
        out.writeShort(1);
        out.writeShort(11);
        out.writeInt(12 + code.length);
        out.writeShort(stack);
        out.writeShort(locals);
        out.writeInt(code.length);
        out.write(code);
        out.writeShort(0);
        out.writeShort(0);
    }

    /** iload_1, then rounds of bipush, imul, sipush, iadd, iload_1, ixor; finally ireturn. */
    private byte[] arithmetic() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(2 + rounds * ROUND_BYTES);
        DataOutputStream code = new DataOutputStream(bytes);
        code.writeByte(0x1B);
        for (int round = 0; round < rounds; round++) {
            code.writeByte(0x10);
            code.writeByte(3 + round % 100);
            code.writeByte(0x68);
            code.writeByte(0x11);
            code.writeShort(1000 + round);
            code.writeByte(0x60);
            code.writeByte(0x1B);
            code.writeByte(0x82);
        }
        code.writeByte(0xAC);
        return bytes.toByteArray();
    }
}
