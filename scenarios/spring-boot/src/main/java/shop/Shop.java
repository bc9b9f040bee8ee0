package shop;

import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/**
 * A small service with an in-memory database: Tomcat, Spring MVC, Hibernate, HikariCP, H2. Replace it with your own.
 */
@SpringBootApplication
public class Shop {
    public static void main(String[] args) {
        SpringApplication.run(Shop.class, args);
    }

    /** Adds a purchase, so that reads find one before any write. */
    @Bean
    CommandLineRunner first(Purchases purchases) {
        return args -> purchases.save(new Purchase("first"));
    }
}
