package loadline.subjects;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/**
 * Responds to every request with the given status, and with its number as the body (204 and 304 have none). Keeps the
 * connection open.
 *
 * <p>Arguments: {@code PORT STATUS}.
 */
// truth: body_bytes=4
public final class AnswersStatus {
    private AnswersStatus() {}

    public static void main(String[] args) throws IOException {
        int status = Integer.parseInt(args[1]);
        boolean bodiless = status == 204 || status == 304;
        byte[] body = bodiless ? new byte[0] : (status + "\n").getBytes(StandardCharsets.US_ASCII);
        Listener.http(Integer.parseInt(args[0]), Executors.newFixedThreadPool(4),
                exchange -> Listener.answer(exchange, status, body));
    }
}
