//! Replies to `VM.native_memory detail` (JDK 11–25, with `-XX:NativeMemoryTracking=detail`): the address ranges that
//! the JVM reserved. Only for benchmarks and tests, as the truth for accounts: detailed tracking is too expensive to
//! measure with. `observe::nmt` has the sums by category.
//!
//! ```text
//! [0x00000000fc000000 - 0x0000000100000000] reserved and committed 65536KB for Java Heap from
//!     [0x00007fa920b51d6f]ReservedHeapSpace::ReservedHeapSpace(...)+0x2af
//!
//!     [0x00000000fc000000 - 0x0000000100000000] committed 65536KB from
//! [0x00007fa91e8ab000 - 0x00007fa91e9ab000] reserved 1024KB for Thread Stack from
//! ```

/// Reserved ranges by address: start, exclusive end, category as spelled by the JVM. Categories can differ from the
/// summary's: `Thread Stack` here is part of `Thread` there. Omits indented committed ranges and call stacks; empty for
/// a reply without details.
pub(crate) fn ranges(text: &str) -> Vec<(u64, u64, String)> {
    let mut ranges: Vec<_> = text.lines().filter_map(range).collect();
    // JDK 21 and later list the highest first.
    ranges.sort_unstable();
    ranges
}

/// `[0x00007fa9003ff000 - 0x00007fa90f400000] reserved 245764KB for Code from`
fn range(line: &str) -> Option<(u64, u64, String)> {
    let (range, rest) = line.strip_prefix('[')?.split_once("] reserved ")?;
    let (start, end) = range.split_once(" - ")?;
    let address = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let (_size, category) = rest.split_once(" for ")?;
    let category = category.strip_suffix(" from").unwrap_or(category).trim_end();
    (start < end && !category.is_empty()).then(|| (start, end, category.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reserved_ranges_count() {
        let text = "[0x2000 - 0x3000] reserved 4KB for Thread Stack from\n    [0x00007fa920b51d6f]JavaMain+0x8f\n\n\
                    \t[0x2000 - 0x2800] committed 2KB from\n[0x1000 - 0x2000] reserved and committed 4KB for GC\n\
                    [0x00007fa920c86a02]VirtualMemoryTracker::add_reserved_region(unsigned char*)+0x2b2\n\
                    [0x3000 - 0x1000] reserved 4KB for Code from\n[0x3000 - 0x4000] reserved 4KB for  from\n";
        let expect = [(0x1000, 0x2000, "GC".to_owned()), (0x2000, 0x3000, "Thread Stack".to_owned())];
        assert_eq!(ranges(text), expect);
        assert!(ranges("Native memory tracking is not enabled").is_empty());
    }
}
