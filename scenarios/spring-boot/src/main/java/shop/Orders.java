package shop;

import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** {@code GET /orders} and {@code GET /orders/1} read from the database, {@code POST /orders} writes to it. */
@RestController
public class Orders {
    private final Purchases purchases;

    public Orders(Purchases purchases) {
        this.purchases = purchases;
    }

    public record Order(String item) {}

    @GetMapping("/orders")
    public List<Purchase> latest() {
        return purchases.findTop10ByOrderByIdDesc();
    }

    @GetMapping("/orders/{id}")
    public Purchase one(@PathVariable("id") long id) {
        return purchases.findById(id).orElseThrow(() -> new ResponseStatusException(HttpStatus.NOT_FOUND));
    }

    @PostMapping("/orders")
    @ResponseStatus(HttpStatus.CREATED)
    public Purchase place(@RequestBody Order order) {
        return purchases.save(new Purchase(order.item()));
    }
}
