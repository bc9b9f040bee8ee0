package shop;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

/** Spring Data implements the queries. */
public interface Purchases extends JpaRepository<Purchase, Long> {
    List<Purchase> findTop10ByOrderByIdDesc();
}
