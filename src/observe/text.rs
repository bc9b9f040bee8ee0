//! The few ways in which kernel and JVM write numbers and addresses, shared by the parsers.

use crate::units::Bytes;

/// First address behind those that a process has on x86_64 with page tables of four levels.
pub(super) const ADDRESS_END: u64 = 1 << 47;

/// `5256 kB`, `5256KB`, `5256K`, `8M`, `64 K`, `12` → bytes, binary units.
pub(super) fn size(text: &str) -> Option<Bytes> {
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

/// As [`size`], with decimals: `65536.00 KB`, `0 bytes`; rounded to a byte.
pub(super) fn decimal_size(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let text = text.strip_suffix("bytes").unwrap_or(text).trim_end();
    let Some((whole, rest)) = text.split_once('.') else { return size(text) };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (decimals, unit) = rest.split_at(digits);
    let unit_bytes = size(&format!("1{unit}"))?.0;
    let fraction: f64 = format!("0.{decimals}").parse().ok()?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit_bytes)?;
    Some(Bytes(whole.checked_add((fraction * unit_bytes as f64).round() as u64)?))
}

/// `0x00007f45f3000000`, also without `0x`.
pub(super) fn address(text: &str) -> Option<u64> {
    let text = text.trim();
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// The addresses at the start of the text, to a bracket or what is none: `0x10, 0x20) …`, `0x10-0x20`.
pub(super) fn addresses(text: &str) -> impl Iterator<Item = u64> {
    let inside = &text[..text.find([')', ']', '|']).unwrap_or(text.len())];
    inside.split([',', '-']).map_while(address)
}

/// What stands between `before` and the next of `ends`: `between("used 8M, capacity", "used ", ",")` is `8M`.
pub(super) fn between<'t>(text: &'t str, before: &str, ends: &[char]) -> Option<&'t str> {
    let rest = text.get(text.find(before)? + before.len()..)?;
    Some(&rest[..rest.find(ends).unwrap_or(rest.len())])
}

/// The value after `key` in lines of `key value` or `key: value`.
pub(super) fn keyed<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        rest.strip_prefix(':').or(rest.strip_prefix(' ')).or(rest.strip_prefix('\t')).map(str::trim)
    })
}

/// As [`keyed`], a plain number.
pub(super) fn keyed_number(text: &str, key: &str) -> Option<u64> {
    keyed(text, key)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_kernel_and_jvm() {
        for (text, bytes) in [("5256 kB", 5256 << 10), ("5K", 5 << 10), ("8M", 8 << 20), ("0", 0), (" 64 K ", 64 << 10)]
        {
            assert_eq!(size(text), Some(Bytes(bytes)), "{text}");
        }
        for text in ["", "K", "-1K", "1.5M", "99999999999999999999", "99999999999999999T", "5 apples"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_with_decimals() {
        for (text, bytes) in [("65536.00 KB", 64 << 20), ("4.25 MB", 4352 << 10), ("0 bytes", 0), ("1.00 GB ", 1 << 30)]
        {
            assert_eq!(decimal_size(text), Some(Bytes(bytes)), "{text}");
        }
        for text in ["", ".", "1.5.5 KB", "1.5 apples", "-1.0 KB", "99999999999.0 GB", "1. 5KB"] {
            assert_eq!(decimal_size(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_end_at_a_bracket() {
        let found = |text| addresses(text).collect::<Vec<_>>();
        assert_eq!(found("0x10, 0x20,0x30) 0x40"), [0x10, 0x20, 0x30]);
        assert_eq!(found("0x10-20-x-40"), [0x10, 0x20]);
        assert!(found("").is_empty());
    }

    #[test]
    fn keys_match_whole_words() {
        let text = "anon 5\nanon_thp 7\nVmRSS:\t 9 kB\n";
        assert_eq!(keyed_number(text, "anon"), Some(5));
        assert_eq!(keyed(text, "VmRSS"), Some("9 kB"));
        assert_eq!(keyed(text, "none"), None);
        assert_eq!(between("used 8M, capacity 64M", "used ", &[',']), Some("8M"));
    }
}
