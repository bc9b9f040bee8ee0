//! The number formats of Linux, shared by the parsers; HotSpot writes sizes in the same way.

use loadline_base::units::Bytes;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::{fs, io};

/// Reads a file, replacing bytes that are not UTF-8 (for instance in a directory name in `mountinfo`).
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// `5256 kB`, `5256KB`, `5256K`, `8M`, `64 K`, `12` → bytes, binary units.
pub fn size(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let shift = match text[end..].trim() {
        "" | "B" => 0,
        "K" | "k" | "KB" | "kB" => 10,
        "M" | "m" | "MB" => 20,
        "G" | "g" | "GB" => 30,
        "T" | "t" | "TB" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift).map(Bytes)
}

/// Returns the text between `before` and the next of `ends`: `between("used 8M, capacity", "used ", ",")` is `8M`.
pub fn between<'t>(text: &'t str, before: &str, ends: &[char]) -> Option<&'t str> {
    let rest = text.get(text.find(before)? + before.len()..)?;
    Some(&rest[..rest.find(ends).unwrap_or(rest.len())])
}

/// The value after `key` in lines of `key value` or `key: value`.
pub fn keyed<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        rest.strip_prefix(':').or(rest.strip_prefix(' ')).or(rest.strip_prefix('\t')).map(str::trim)
    })
}

/// Like [`keyed`], for all keys in one pass. If a key is repeated, its last value wins.
pub fn keyed_all(text: &str) -> BTreeMap<&str, &str> {
    let pairs = text.lines().filter_map(|line| line.split_once([':', ' ', '\t']));
    pairs.map(|(key, value)| (key, value.trim())).collect()
}

/// The numbers at the start of the text, separated by spaces.
pub fn numbers<T: FromStr>(text: &str) -> impl Iterator<Item = T> {
    text.split_ascii_whitespace().map_while(|word| word.parse().ok())
}

/// Like [`keyed`], for a plain number.
pub fn keyed_number(text: &str, key: &str) -> Option<u64> {
    keyed(text, key)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_jvm_sizes_are_parsed() {
        for (text, bytes) in [("5256 kB", 5256 << 10), ("5K", 5 << 10), ("8M", 8 << 20), ("0", 0), (" 64 K ", 64 << 10)]
        {
            assert_eq!(size(text), Some(Bytes(bytes)), "{text}");
        }
        for text in ["", "K", "-1K", "1.5M", "99999999999999999999", "99999999999999999T", "5 apples"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn keys_match_whole_words() {
        let text = "anon 5\nanon_thp 7\nVmRSS:\t 9 kB\n";
        assert_eq!(keyed_number(text, "anon"), Some(5));
        assert_eq!(keyed(text, "VmRSS"), Some("9 kB"));
        assert_eq!(keyed_all(text), BTreeMap::from([("anon", "5"), ("anon_thp", "7"), ("VmRSS", "9 kB")]));
        assert_eq!(keyed(text, "none"), None);
        assert_eq!(between("used 8M, capacity 64M", "used ", &[',']), Some("8M"));
    }
}
