package loadline.agent;

/** Writes one JSON document, including commas. The caller closes the objects and arrays that it opens. */
final class Json {
    private final StringBuilder text = new StringBuilder(4096);
    private boolean first = true;

    Json open(char bracket) {
        separate();
        text.append(bracket);
        first = true;
        return this;
    }

    Json close(char bracket) {
        text.append(bracket);
        first = false;
        return this;
    }

    /** The name of the next value in an object. */
    Json name(String name) {
        separate();
        quote(name);
        text.append(':');
        first = true;
        return this;
    }

    Json field(String name, String value) {
        name(name);
        separate();
        if (value == null) {
            text.append("null");
        } else {
            quote(value);
        }
        return this;
    }

    /** A number; a missing or negative value means "not measured" and becomes null. */
    Json field(String name, Long value) {
        name(name);
        separate();
        if (value == null || value < 0) {
            text.append("null");
        } else {
            text.append(value.longValue());
        }
        return this;
    }

    Json field(String name, double value) {
        name(name);
        separate();
        text.append(value);
        return this;
    }

    Json value(String value) {
        separate();
        quote(value);
        return this;
    }

    private void separate() {
        if (!first) {
            text.append(',');
        }
        first = false;
    }

    private void quote(String value) {
        text.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                // A lone surrogate would be invalid; an escaped pair is fine too.
                text.append("\\u").append(HEX.charAt(c >> 12)).append(HEX.charAt(c >> 8 & 15));
                text.append(HEX.charAt(c >> 4 & 15)).append(HEX.charAt(c & 15));
            } else {
                text.append(c);
            }
        }
        text.append('"');
    }

    private static final String HEX = "0123456789abcdef";

    @Override
    public String toString() {
        return text.toString();
    }
}
