//! The JVM's formats for numbers and addresses, shared by the parsers.

pub(super) use crate::kernel::text::{between, size};
use loadline_base::units::Bytes;

/// End of the user address space on x86_64 with four-level page tables.
pub(super) const ADDRESS_END: u64 = 1 << 47;

/// Like [`size`], but with decimals (`65536.00 KB`, `0 bytes`); rounded to a whole byte.
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

/// `0x00007f45f3000000`, with or without `0x`.
pub(super) fn address(text: &str) -> Option<u64> {
    let text = text.trim();
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// The addresses at the start of the text, up to `)`, `]`, `|`, or another word: `0x10, 0x20) …`, `0x10-0x20`.
pub(super) fn addresses(text: &str) -> impl Iterator<Item = u64> {
    let inside = &text[..text.find([')', ']', '|']).unwrap_or(text.len())];
    inside.split([',', '-']).map_while(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_decimals_are_parsed() {
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
}
