//! The hidden first line that identifies a scenario's comment: `<!-- loadline:tiny-http -->`.

/// Longer names are truncated, and a hash keeps them unique.
const CHARACTERS_MAX: usize = 120;

/// A scenario's marker. Names cannot end the enclosing HTML comment, and different names have different markers.
pub(super) fn marker(scenario: &str) -> String {
    let mut name = String::with_capacity(scenario.len());
    for byte in scenario.bytes() {
        match byte {
            // Two hyphens can end an HTML comment.
            b'-' if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            b'.' | b'_' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.len() > CHARACTERS_MAX {
        name.truncate(CHARACTERS_MAX);
        name.push_str(&format!("~{:016x}", hash(scenario)));
    }
    format!("<!-- loadline:{name} -->")
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923), which unlike the standard hasher is stable across releases.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_markers_keep_names_readable() {
        assert_eq!(marker("tiny-http"), "<!-- loadline:tiny-http -->");
        assert_eq!(marker("a b/c"), "<!-- loadline:a%20b%2Fc -->");
        assert_eq!(marker("a --> <b>"), "<!-- loadline:a%20-%2D%3E%20%3Cb%3E -->");
        assert_eq!(marker("->x"), "<!-- loadline:%2D%3Ex -->");
        assert_eq!(marker(""), "<!-- loadline: -->");
    }

    #[test]
    fn long_names_have_distinct_markers() {
        let [one, other] = ["a", "b"].map(|end| marker(&format!("{}{end}", "x".repeat(10_000))));
        assert_ne!(one, other);
        assert!(one.len() < 200, "{one}");
        // A published test value.
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
