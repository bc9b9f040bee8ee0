package shop;

import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/**
 * A small service with a database in memory: Tomcat, Spring MVC, Hibernate, HikariCP, H2. Put your own in its place.
 */
@SpringBootApplication
public class Shop {
    public static void main(String[] args) {
        SpringApplication.run(Shop.class, args);
    }

    /** The first purchase, so that there is one to read before any was sent. */
    @Bean
    CommandLineRunner first(Purchases purchases) {
        return args -> purchases.save(new Purchase("first"));
    }
}
