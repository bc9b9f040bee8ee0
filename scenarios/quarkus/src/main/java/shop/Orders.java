package shop;

import jakarta.ws.rs.Consumes;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.NotFoundException;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.MediaType;
import java.util.ArrayList;
import java.util.List;
import org.jboss.resteasy.reactive.ResponseStatus;
import org.jboss.resteasy.reactive.RestPath;

/**
 * {@code GET /orders} returns the last ten, {@code GET /orders/1} one; {@code POST /orders} adds one. All stay in the
 * heap. Replace it with your own resources.
 */
@Path("/orders")
@Produces(MediaType.APPLICATION_JSON)
@Consumes(MediaType.APPLICATION_JSON)
public class Orders {
    private final List<Order> kept = new ArrayList<>(List.of(new Order(1, "first")));

    public record Item(String item) {}

    public record Order(long id, String item) {}

    @GET
    public List<Order> latest() {
        synchronized (kept) {
            return List.copyOf(kept.subList(Math.max(0, kept.size() - 10), kept.size()));
        }
    }

    @GET
    @Path("/{id}")
    public Order one(@RestPath int id) {
        synchronized (kept) {
            if (id < 1 || id > kept.size()) {
                throw new NotFoundException();
            }
            return kept.get(id - 1);
        }
    }

    @POST
    @ResponseStatus(201)
    public Order place(Item sent) {
        synchronized (kept) {
            Order order = new Order(kept.size() + 1L, sent.item());
            kept.add(order);
            return order;
        }
    }
}
