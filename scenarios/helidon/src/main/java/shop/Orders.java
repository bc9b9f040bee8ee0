package shop;

import io.helidon.http.Status;
import io.helidon.webserver.http.HttpRules;
import io.helidon.webserver.http.HttpService;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import jakarta.json.Json;
import jakarta.json.JsonArrayBuilder;
import jakarta.json.JsonBuilderFactory;
import jakarta.json.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/**
 * {@code GET /orders} returns the last ten, {@code GET /orders/1} one; {@code POST /orders} adds one. All stay in the
 * heap.
 */
public final class Orders implements HttpService {
    private final List<Order> kept = new ArrayList<>(List.of(new Order(1, "first")));
    /** Until JDK 23, a virtual thread pins its carrier while it waits in {@code synchronized}, but not here. */
    private final ReentrantLock lock = new ReentrantLock();

    /** Created once, since {@code Json.createObjectBuilder()} looks up its provider each time: see README.md. */
    private static final JsonBuilderFactory JSON = Json.createBuilderFactory(Map.of());

    private record Order(long id, String item) {
        JsonObject json() {
            return JSON.createObjectBuilder().add("id", id).add("item", item).build();
        }
    }

    @Override
    public void routing(HttpRules rules) {
        rules.get("/", this::latest).get("/{id}", this::one).post("/", this::place);
    }

    private void latest(ServerRequest request, ServerResponse response) {
        JsonArrayBuilder answer = JSON.createArrayBuilder();
        lock.lock();
        try {
            kept.subList(Math.max(0, kept.size() - 10), kept.size()).forEach(order -> answer.add(order.json()));
        } finally {
            lock.unlock();
        }
        response.send(answer.build());
    }

    private void one(ServerRequest request, ServerResponse response) {
        int id = request.path().pathParameters().first("id").asInt().get();
        Order order;
        lock.lock();
        try {
            order = id >= 1 && id <= kept.size() ? kept.get(id - 1) : null;
        } finally {
            lock.unlock();
        }
        if (order == null) {
            response.status(Status.NOT_FOUND_404).send();
        } else {
            response.send(order.json());
        }
    }

    private void place(ServerRequest request, ServerResponse response) {
        String item = request.content().as(JsonObject.class).getString("item");
        Order order;
        lock.lock();
        try {
            order = new Order(kept.size() + 1L, item);
            kept.add(order);
        } finally {
            lock.unlock();
        }
        response.status(Status.CREATED_201).send(order.json());
    }
}
