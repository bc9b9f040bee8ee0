import io.vertx.core.Vertx;
import io.vertx.core.json.JsonObject;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.handler.BodyHandler;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A small Vert.x web application: {@code GET /hello} returns JSON, {@code POST /orders} reads JSON and returns the
 * order's number. It stores nothing. Replace the routes with your own.
 *
 * <p>Arguments: {@code PORT}.
 */
public final class WebApp {
    private WebApp() {}

    public static void main(String[] args) {
        Vertx vertx = Vertx.vertx();
        AtomicLong orders = new AtomicLong();
        Router router = Router.router(vertx);
        router.get("/hello").handler(context -> context.json(new JsonObject().put("hello", "world")));
        router.post("/orders").handler(BodyHandler.create(false)).handler(context -> {
            JsonObject order = context.body().asJsonObject();
            context.response().setStatusCode(201);
            context.json(new JsonObject().put("order", orders.incrementAndGet()).put("item", order.getValue("item")));
        });
        vertx.createHttpServer().requestHandler(router).listen(Integer.parseInt(args[0]), "127.0.0.1")
                .onSuccess(server -> System.out.println("listening on " + server.actualPort()))
                .onFailure(cause -> {
                    cause.printStackTrace();
                    vertx.close();
                });
    }
}
