package loadline.subjects;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * Responds to each request and never closes a connection first: it waits for the client to do so, whatever the request
 * says. So it is always the client's port that stays in TIME_WAIT.
 *
 * <p>Arguments: {@code PORT}.
 */
// truth: status=200
public final class LeavesClosing {
    private static final byte[] ANSWER =
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n".getBytes(StandardCharsets.US_ASCII);

    private LeavesClosing() {}

    public static void main(String[] args) throws IOException {
        Listener.tcp(Integer.parseInt(args[0]), LeavesClosing::talk);
    }

    private static void talk(Socket socket) throws IOException {
        BufferedReader head =
                new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
        OutputStream answers = socket.getOutputStream();
        for (String line = head.readLine(); line != null; line = head.readLine()) {
            if (line.isEmpty()) {
                answers.write(ANSWER);
                answers.flush();
            }
        }
    }
}
