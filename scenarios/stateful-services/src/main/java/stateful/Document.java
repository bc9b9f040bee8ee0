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
 * <p>Every update carries the 524 bytes of JSON in {@code state.json}, whether from the in-process client or the load
 * engine.
 */
public final class Document extends ServiceDocument {
    public String id;
    public String name;
    public long counter;
    public List<String> tags;
    public String data;

    /** The state that every update sends. */
    static Document update(Path file) throws IOException {
        String json = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        Document update = Utils.fromJson(json, Document.class);
        // The length matters, and the in-process client serializes this JSON again.
        int length = Utils.toJson(update).length();
        if (length != json.length()) {
            throw new IOException(file + " has " + json.length() + " bytes, but is sent as " + length);
        }
        return update;
    }

    /** The smallest possible state: the rest is the framework's overhead. */
    static Document small() {
        Document small = new Document();
        small.id = "0123456789abcdef";
        return small;
    }
}
