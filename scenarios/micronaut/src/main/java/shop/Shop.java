package shop;

import io.micronaut.runtime.Micronaut;

/**
 * A small service on Netty; what Micronaut needs to know of it was found while it was compiled. Put your own in its
 * place.
 */
public final class Shop {
    private Shop() {}

    public static void main(String[] args) {
        Micronaut.run(Shop.class, args);
    }
}
