import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

/** Tomcat with one servlet: {@code java -cp 'JARS/*' TomcatPeer.java PORT}. The paths are those of {@code JdkPeer}. */
final class TomcatPeer extends HttpServlet {
    private static final AtomicLong REQUESTS = new AtomicLong();
    private static final Set<String> CONNECTIONS = ConcurrentHashMap.newKeySet();

    public static void main(String[] args) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(System.getProperty("java.io.tmpdir"));
        Connector connector = new Connector();
        connector.setPort(Integer.parseInt(args[0]));
        connector.setProperty("address", "127.0.0.1");
        tomcat.setConnector(connector);
        var context = tomcat.addContext("", System.getProperty("java.io.tmpdir"));
        Tomcat.addServlet(context, "all", new TomcatPeer());
        context.addServletMappingDecoded("/", "all");
        tomcat.start();
        tomcat.getServer().await();
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String path = request.getRequestURI();
        if (path.equals("/counted")) {
            say(response, "counted " + REQUESTS + " " + CONNECTIONS.size() + "\n", false);
            return;
        }
        REQUESTS.incrementAndGet();
        CONNECTIONS.add(request.getServletConnection().getConnectionId());
        long length = request.getInputStream().transferTo(OutputStream.nullOutputStream());
        switch (path) {
            case "/fixed" -> say(response, "hello world\n", false);
            case "/last" -> {
                response.setHeader("Connection", "close");
                say(response, "hello world\n", false);
            }
            case "/chunked" -> say(response, "0123456789".repeat(10_000), true);
            case "/length" -> say(response, "got " + length + "\n", false);
            default -> response.sendError(404);
        }
    }

    private static void say(HttpServletResponse response, String text, boolean chunked) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        if (!chunked) {
            response.setContentLength(bytes.length);
        }
        OutputStream out = response.getOutputStream();
        for (int from = 0; from < bytes.length; from += 7777) {
            out.write(bytes, from, Math.min(7777, bytes.length - from));
            if (chunked) {
                out.flush();
            }
        }
    }
}
