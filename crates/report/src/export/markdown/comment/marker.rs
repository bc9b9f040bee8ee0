//! The hidden first line, by which a poster finds the comment of a scenario: `<!-- loadline:tiny-http -->`.

/// Names are cut after this many characters, and made distinct by a hash.
const CHARACTERS_MAX: usize = 120;

/// The marker of a scenario. No name can end the HTML comment around it, and two names give two markers.
pub(super) fn marker(scenario: &str) -> String {
    let mut name = String::with_capacity(scenario.len());
    for byte in scenario.bytes() {
        match byte {
            // Two hyphens may end an HTML comment.
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

/// FNV-1a in 64 bits (Fowler, Noll, Vo; RFC 9923): the same in every release, unlike the hasher of the library.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_readable_where_it_can() {
        assert_eq!(marker("tiny-http"), "<!-- loadline:tiny-http -->");
        assert_eq!(marker("a b/c"), "<!-- loadline:a%20b%2Fc -->");
        assert_eq!(marker("a --> <b>"), "<!-- loadline:a%20-%2D%3E%20%3Cb%3E -->");
        assert_eq!(marker("->x"), "<!-- loadline:%2D%3Ex -->");
        assert_eq!(marker(""), "<!-- loadline: -->");
    }

    #[test]
    fn long_names_are_told_apart() {
        let [one, other] = ["a", "b"].map(|end| marker(&format!("{}{end}", "x".repeat(10_000))));
        assert_ne!(one, other);
        assert!(one.len() < 200, "{one}");
        // A known value of the hash.
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
