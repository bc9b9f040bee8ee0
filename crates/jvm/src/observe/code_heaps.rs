//! The use of the code cache by segment: replies to `Compiler.codecache` (JDK 11–27). From the same reply,
//! [`super::addresses`] reads where the segments lie.
//!
//! ```text
//! CodeHeap 'non-profiled nmethods': size=120032Kb used=2210Kb max_used=2215Kb free=117822Kb
//!  bounds [0x00007f2ea8ac8000, 0x00007f2ea8d38000, 0x00007f2eb0000000]
//! CodeCache: size=245760Kb used=1117Kb max_used=1117Kb free=244642Kb
//! ```
//!
//! The last form stands alone without segments (`-XX:-SegmentedCodeCache`, small caches); from JDK 21 on it follows the
//! segments as their sum, too.

/// A segment of the code cache, sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeHeap {
    /// `non-nmethods`, `profiled nmethods`, `non-profiled nmethods`, or `CodeCache`, which is all.
    pub name: String,
    /// The most it may become.
    pub reserved: u64,
    /// Blobs that live.
    pub used: u64,
    /// The most that it used.
    pub used_max: u64,
}

/// The segments; the sum of them is left out. Lines of another form are, too.
pub fn parse(text: &str) -> Vec<CodeHeap> {
    let mut heaps: Vec<CodeHeap> = Vec::new();
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
        if let (Some(reserved), Some(used), Some(used_max)) = (number("size"), number("used"), number("max_used")) {
            heaps.push(CodeHeap { name: name.to_owned(), reserved, used, used_max });
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
    fn segments_are_told_and_their_sum_is_not() {
        let found = parse(SEGMENTS);
        let names: Vec<_> =
            found.iter().map(|heap| (heap.name.as_str(), heap.used >> 10, heap.used_max >> 10)).collect();
        assert_eq!(names, [("non-profiled nmethods", 2210, 2215), ("profiled nmethods", 7000, 8000)]);
        assert_eq!(found[0].reserved, 120_032 << 10);
        let one = parse("CodeCache: size=49152Kb used=1117Kb max_used=1118Kb free=48035Kb\n bounds [0x1, 0x2, 0x3]\n");
        assert_eq!((one.len(), one[0].name.as_str(), one[0].used_max >> 10), (1, "CodeCache", 1118));
    }

    #[test]
    fn what_jvms_printed() {
        for text in [
            include_str!("../../../../tests/samples/11/vm_info-g1.txt"),
            include_str!("../../../../tests/samples/17/vm_info-g1.txt"),
            include_str!("../../../../tests/samples/21/vm_info-g1.txt"),
            include_str!("../../../../tests/samples/25/vm_info-g1.txt"),
        ] {
            let found = parse(text);
            assert!(found.iter().any(|heap| heap.name == "non-nmethods"), "{found:?}");
            assert_eq!(found.iter().map(|heap| heap.reserved).sum::<u64>() >> 20, 240, "{found:?}");
            assert!(found.iter().all(|heap| heap.used <= heap.used_max && heap.used_max < heap.reserved), "{found:?}");
        }
    }

    #[test]
    fn cut_anywhere_it_is_no_harm() {
        for end in 0..SEGMENTS.len() {
            assert!(parse(&SEGMENTS[..end]).len() <= 2);
        }
        assert_eq!(parse("CodeHeap 'x': size=99999999999999999999Kb used=1Kb max_used=1Kb"), []);
    }
}
