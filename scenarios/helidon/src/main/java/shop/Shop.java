package shop;

import io.helidon.config.Config;
import io.helidon.webserver.WebServer;

/** A small Helidon SE service, with a virtual thread per request. Replace it with your own. */
public final class Shop {
    private Shop() {}

    public static void main(String[] args) {
        Config config = Config.create();
        WebServer.builder()
                .config(config.get("server"))
                .routing(routing -> routing.register("/orders", new Orders()))
                .build()
                .start();
    }
}
