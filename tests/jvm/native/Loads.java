/** Loads libraries, says so, and waits until its input ends. */
public final class Loads {
    public static void main(String[] libraries) throws Exception {
        for (String library : libraries) System.load(library);
        System.out.println("ready");
        System.out.flush();
        while (System.in.read() >= 0) {}
    }
}
