//! Replies to `Thread.print -e` (JDK 11–27): each thread's allocations in the Java heap, with only a few digits.
//!
//! ```text
//! "main" #1 prio=5 os_prio=0 cpu=103.10ms elapsed=5.23s allocated=1523K defined_classes=3 tid=0x00007f… …
//! ```

use super::text::size;

/// Sums the bytes that live threads have allocated, within 10%: the JVM drops the low-order digits of each number.
/// `None` if the text has no such number for any thread.
pub fn allocated(text: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let (_, rest) = line.strip_prefix('"')?.rsplit_once("\" ")?;
        let told = rest.split_whitespace().find_map(|word| word.strip_prefix("allocated="))?;
        size(told).map(|bytes| bytes.0)
    };
    text.lines().filter_map(of_line).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_summed_and_names_are_not_numbers() {
        let text = "Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6):\n\n\
            \"main\" #1 prio=5 os_prio=0 cpu=1.10ms elapsed=5.23s allocated=1523K defined_classes=3 tid=0x1 nid=0x1a\n\
               java.lang.Thread.State: RUNNABLE\n\
            \"a\" allocated=9G\" #2 daemon cpu=0.10ms elapsed=5.23s allocated=0B defined_classes=0 tid=0x2 nid=0x1b\n\
            \"G1 Main Marker\" os_prio=0 cpu=0.17ms elapsed=5.24s tid=0x3 nid=0x1c runnable\n\
            \"worker\" #9 cpu=1.10ms elapsed=5.23s allocated=12M defined_classes=3 tid=0x1 nid=0x1a\n";
        assert_eq!(allocated(text), Some((1523 << 10) + (12 << 20)));
        assert_eq!(allocated("allocated=1M"), None);
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            // A truncated name may look like a number, but no reply is truncated at such a place.
            let _ = allocated(&text[..end]);
        }
    }
}
