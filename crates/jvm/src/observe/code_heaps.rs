//! Code cache usage by segment: replies to `Compiler.codecache` (JDK 11–27). [`super::addresses`] reads the segments'
//! addresses from the same reply.
//!
//! ```text
//! CodeHeap 'non-profiled nmethods': size=120032Kb used=2210Kb max_used=2215Kb free=117822Kb
//!  bounds [0x00007f2ea8ac8000, 0x00007f2ea8d38000, 0x00007f2eb0000000]
//! CodeCache: size=245760Kb used=1117Kb max_used=1117Kb free=244642Kb
//! ```
//!
//! Without segments (`-XX:-SegmentedCodeCache`, small caches), the JVM prints only the last form. As of JDK 21, it
//! also prints that form after the segments, as their sum.

use serde::{Deserialize, Serialize};

/// A segment of the code cache.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CodeHeapRecord {
    /// Name in the JVM: `non-nmethods`, `profiled nmethods`, `non-profiled nmethods`; `CodeCache` if not segmented.
    pub name: String,
    /// Maximum size.
    pub reserved_bytes: u64,
    /// Committed memory; `null` if the JVM does not report it.
    pub committed_bytes: Option<u64>,
    /// Code in use.
    pub used_bytes: u64,
    /// Peak size of the code in use.
    pub used_bytes_peak: u64,
    /// Resident; `null` without an account.
    pub rss_bytes: Option<u64>,
}

/// Parses the segments; skips their sum and unrecognized lines.
pub fn parse(text: &str) -> Vec<CodeHeapRecord> {
    let mut heaps: Vec<CodeHeapRecord> = Vec::new();
    for line in text.lines().map(str::trim) {
        let segment = line.strip_prefix("CodeHeap '").and_then(|rest| rest.split_once("': "));
        let (name, numbers) = match (segment, line.strip_prefix("CodeCache: ")) {
            (Some(segment), _) => segment,
            (None, Some(numbers)) if heaps.is_empty() => ("CodeCache", numbers),
            _ => continue,
        };
        let number = |key: &str| {
            let found = numbers.split_whitespace().find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
            found?.trim_end_matches(',').strip_suffix("Kb")?.parse::<u64>().ok()?.checked_mul(1024)
        };
        let sizes = (number("size"), number("used"), number("max_used"));
        if let (Some(reserved_bytes), Some(used_bytes), Some(used_bytes_peak)) = sizes {
            let name = name.to_owned();
            heaps.push(CodeHeapRecord { name, reserved_bytes, used_bytes, used_bytes_peak, ..Default::default() });
        }
    }
    heaps
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: &str = "CodeHeap 'non-profiled nmethods': size=120032Kb used=2210Kb max_used=2215Kb free=117822Kb
 bounds [0x00007f2ea8ac8000, 0x00007f2ea8d38000, 0x00007f2eb0000000]
CodeHeap 'profiled nmethods': size=120028Kb used=7000Kb max_used=8000Kb free=113028Kb
 bounds [0x00007f2ea1593000, 0x00007f2ea1c93000, 0x00007f2ea8ac8000]
CodeCache: size=240060Kb, used=9210Kb, max_used=10215Kb, free=230850Kb
 total_blobs=2210 nmethods=1800 adapters=300
";

    #[test]
    fn segments_are_listed_without_their_sum() {
        let found = parse(SEGMENTS);
        let names: Vec<_> =
            found.iter().map(|heap| (heap.name.as_str(), heap.used_bytes >> 10, heap.used_bytes_peak >> 10)).collect();
        assert_eq!(names, [("non-profiled nmethods", 2210, 2215), ("profiled nmethods", 7000, 8000)]);
        assert_eq!(found[0].reserved_bytes, 120_032 << 10);
        let one = parse("CodeCache: size=49152Kb used=1117Kb max_used=1118Kb free=48035Kb\n bounds [0x1, 0x2, 0x3]\n");
        assert_eq!((one.len(), one[0].name.as_str(), one[0].used_bytes_peak >> 10), (1, "CodeCache", 1118));
    }

    #[test]
    fn code_heaps_of_real_jvms_are_parsed() {
        for text in [
            include_str!("../../../../tests/samples/11/vm_info-g1.txt"),
            include_str!("../../../../tests/samples/17/vm_info-g1.txt"),
            include_str!("../../../../tests/samples/21/vm_info-g1.txt"),
            include_str!("../../../../tests/samples/25/vm_info-g1.txt"),
        ] {
            let found = parse(text);
            assert!(found.iter().any(|heap| heap.name == "non-nmethods"), "{found:?}");
            assert_eq!(found.iter().map(|heap| heap.reserved_bytes).sum::<u64>() >> 20, 240, "{found:?}");
            assert!(
                found
                    .iter()
                    .all(|heap| heap.used_bytes <= heap.used_bytes_peak && heap.used_bytes_peak < heap.reserved_bytes),
                "{found:?}"
            );
        }
    }

    #[test]
    fn truncated_code_heap_output_is_parsed() {
        for end in 0..SEGMENTS.len() {
            assert!(parse(&SEGMENTS[..end]).len() <= 2);
        }
        assert_eq!(parse("CodeHeap 'x': size=99999999999999999999Kb used=1Kb max_used=1Kb"), []);
    }
}
