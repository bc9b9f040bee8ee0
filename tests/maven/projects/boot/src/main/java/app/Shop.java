package app;

import java.nio.ByteBuffer;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Says hello and stores as many bytes as requested. */
@SpringBootApplication
@RestController
public class Shop {
    private static final ByteBuffer REMEMBERED = ByteBuffer.allocateDirect(0);

    /** Serves until killed. */
    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }

    /** Returns what it stores. */
    @GetMapping("/hello")
    public String hello() {
        return "hello, " + REMEMBERED.capacity();
    }
}
