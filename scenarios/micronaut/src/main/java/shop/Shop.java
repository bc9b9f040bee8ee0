package shop;

import io.micronaut.runtime.Micronaut;

/**
 * A small service on Netty, which Micronaut analyzes at compile time. Replace it with your own.
 */
public final class Shop {
    private Shop() {}

    public static void main(String[] args) {
        Micronaut.run(Shop.class, args);
    }
}
