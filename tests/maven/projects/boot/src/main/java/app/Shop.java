package app;

import java.nio.ByteBuffer;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A shop that says hello and remembers as many bytes as it is made to. */
@SpringBootApplication
@RestController
public class Shop {
    private static final ByteBuffer REMEMBERED = ByteBuffer.allocateDirect(0);

    /** Serves until it is ended. */
    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }

    /** Answers with what it remembers. */
    @GetMapping("/hello")
    public String hello() {
        return "hello, " + REMEMBERED.capacity();
    }
}
