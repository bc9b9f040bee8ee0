package shop;

import io.micronaut.http.HttpStatus;
import io.micronaut.http.annotation.Body;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.http.annotation.Post;
import io.micronaut.http.annotation.Status;
import io.micronaut.serde.annotation.Serdeable;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code GET /orders} returns the last ten, {@code GET /orders/1} one; {@code POST /orders} adds one. All stay in the
 * heap.
 */
@Controller("/orders")
public class Orders {
    private final List<Order> kept = new ArrayList<>(List.of(new Order(1, "first")));

    @Serdeable
    public record Item(String item) {}

    @Serdeable
    public record Order(long id, String item) {}

    @Get
    public List<Order> latest() {
        synchronized (kept) {
            return List.copyOf(kept.subList(Math.max(0, kept.size() - 10), kept.size()));
        }
    }

    @Get("/{id}")
    public Order one(int id) {
        synchronized (kept) {
            return id >= 1 && id <= kept.size() ? kept.get(id - 1) : null;
        }
    }

    @Post
    @Status(HttpStatus.CREATED)
    public Order place(@Body Item sent) {
        synchronized (kept) {
            Order order = new Order(kept.size() + 1L, sent.item());
            kept.add(order);
            return order;
        }
    }
}
