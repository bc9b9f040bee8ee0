import java.io.IOException;
import java.net.ServerSocket;
import net.freeutils.httpserver.HTTPServer;
import net.freeutils.httpserver.HTTPServer.Request;
import net.freeutils.httpserver.HTTPServer.Response;

/**
 * The same file server on JLHTTP, with a thread per connection. {@code build} downloads JLHTTP with Maven.
 *
 * <p>Arguments: see {@link Site}.
 */
public final class JlHttpServer {
    private JlHttpServer() {}

    public static void main(String[] args) throws IOException {
        Site site = new Site(args);
        HTTPServer server = new HTTPServer(Integer.parseInt(args[0])) {
            @Override
            protected ServerSocket createServerSocket() throws IOException {
                return new ServerSocket(port, Site.BACKLOG, Site.loopback());
            }
        };
        server.getVirtualHost(null).addContext("/{*path}", (asked, answer) -> serve(asked, answer, site), "GET");
        server.start();
    }

    private static int serve(Request request, Response response, Site site) throws IOException {
        Site.drain(request.getBody());
        byte[] file = site.file(request.getPath());
        if (file == null) {
            return 404;
        }
        response.sendHeaders(200, file.length, -1, null, "application/octet-stream", null);
        response.getBody().write(file);
        return 0;
    }
}
