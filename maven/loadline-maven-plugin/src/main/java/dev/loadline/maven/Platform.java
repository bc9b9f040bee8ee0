package dev.loadline.maven;

import java.util.Locale;

/** Describes this machine as a classifier. */
final class Platform {
    private Platform() {}

    /** The classifier of the binary for this machine; null if there is none. */
    static String classifier() {
        if (!isLinux()) {
            return null;
        }
        switch (System.getProperty("os.arch", "").toLowerCase(Locale.ROOT)) {
            case "amd64":
            case "x86_64":
                return "linux-x86_64";
            case "aarch64":
            case "arm64":
                return "linux-aarch_64";
            default:
                return null;
        }
    }

    static boolean isLinux() {
        return System.getProperty("os.name", "").toLowerCase(Locale.ROOT).startsWith("linux");
    }

    /** The machine's name, for messages. */
    static String name() {
        return System.getProperty("os.name") + " on " + System.getProperty("os.arch");
    }
}
