package shop;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

/** The purchases in the database; Spring Data writes the queries. */
public interface Purchases extends JpaRepository<Purchase, Long> {
    List<Purchase> findTop10ByOrderByIdDesc();
}
