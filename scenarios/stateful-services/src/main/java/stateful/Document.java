package stateful;

import com.vmware.xenon.common.ServiceDocument;
import com.vmware.xenon.common.Utils;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The state of one service instance. Xenon reads and writes public fields.
 *
 * <p>An update carries the 524 bytes of JSON that stand in {@code state.json}, whoever sends it: a client inside the
 * process or the load engine outside.
 */
public final class Document extends ServiceDocument {
    public String id;
    public String name;
    public long counter;
    public List<String> tags;
    public String data;

    /** What every update sends. */
    static Document update(Path file) throws IOException {
        String json = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        Document update = Utils.fromJson(json, Document.class);
        // The length is part of the question, and a client inside the process writes this JSON again.
        int length = Utils.toJson(update).length();
        if (length != json.length()) {
            throw new IOException(file + " has " + json.length() + " bytes, but is sent as " + length);
        }
        return update;
    }

    /** The least an instance can hold: what remains is the framework's own. */
    static Document small() {
        Document small = new Document();
        small.id = "0123456789abcdef";
        return small;
    }
}
