package shop;

import io.helidon.config.Config;
import io.helidon.webserver.WebServer;

/** A small service of Helidon SE: each request has a virtual thread of its own. Put your own in its place. */
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
