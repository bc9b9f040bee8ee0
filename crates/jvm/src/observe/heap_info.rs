//! Replies to `GC.heap_info` (JDK 11–27): each collector has its own form, which has changed several times. JDK 25
//! omits metaspace.

use super::Unavailable;
use super::text::{addresses, between, size};
use loadline_base::units::Bytes;

loadline_base::named! {
    /// The collector that wrote the reply.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Collector,
    /// The name as people write it, and as it appears in the flag.
    fn title {
        /// `-XX:+UseSerialGC`
        Serial = "Serial",
        /// `-XX:+UseParallelGC`
        Parallel = "Parallel",
        /// `-XX:+UseG1GC`
        G1 = "G1",
        /// `-XX:+UseZGC`
        Z = "Z",
        /// `-XX:+UseShenandoahGC`
        Shenandoah = "Shenandoah",
        /// `-XX:+UseEpsilonGC`, which never collects.
        Epsilon = "Epsilon",
    }
}

impl Collector {
    /// The collector whose flag is on: `UseSerialGC` and so on.
    pub fn selected(is_on: impl Fn(&str) -> bool) -> Option<Self> {
        Self::ALL.into_iter().find(|collector| is_on(&format!("Use{}GC", collector.title())))
    }

    fn of(text: &str) -> Option<Self> {
        let known = [
            ("garbage-first heap", Self::G1),
            ("PSYoungGen", Self::Parallel),
            ("def new generation", Self::Serial),
            ("DefNew", Self::Serial),
            ("ZHeap", Self::Z),
            ("ZGeneration", Self::Z),
            ("Shenandoah Heap", Self::Shenandoah),
            ("Epsilon Heap", Self::Epsilon),
        ];
        known.into_iter().find(|(mark, _)| text.contains(mark)).map(|(_, collector)| collector)
    }
}

/// Sizes of metaspace, or of the class space within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that contain metadata.
    pub used: Bytes,
    /// Committed bytes.
    pub committed: Bytes,
    /// Reserved address space.
    pub reserved: Bytes,
}

impl Space {
    /// `Metaspace       used 3888K, committed 4096K, reserved 1114112K`
    fn parse(line: &str) -> Option<Self> {
        let sized = |key| between(line, key, &[',']).and_then(size);
        Some(Self { used: sized("used ")?, committed: sized("committed ")?, reserved: sized("reserved ")? })
    }
}

/// The Java heap at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapInfo {
    /// The collector that manages the heap.
    pub collector: Collector,
    /// Bytes that contain objects, live or dead.
    pub used: Bytes,
    /// Committed bytes; for Serial and Parallel, from the address ranges, as `total` excludes one survivor space.
    pub committed: Bytes,
    /// Maximum size.
    pub capacity_max: Bytes,
    /// The old generation's committed and maximum size. Serial and Parallel only.
    pub old: Option<(Bytes, Bytes)>,
    /// Metaspace including class space; `None` on JDK 25, which omits it.
    pub metaspace: Option<Space>,
    /// Class space only; `None` without compressed class pointers, and on JDK 25.
    pub class_space: Option<Space>,
}

impl HeapInfo {
    /// Parses a reply, such as Serial's:
    ///
    /// ```text
    /// DefNew     total 19648K, used 1044K [0x00000000fc000000, 0x00000000fd550000, 0x00000000fd550000)
    /// Tenured    total 43712K, used 5156K [0x00000000fd550000, 0x0000000100000000, 0x0000000100000000)
    /// ```
    pub fn parse(text: &str) -> Result<Self, Unavailable> {
        let unknown = || Unavailable::new("GC.heap_info", "the response has an unknown format");
        let collector = Collector::of(text).ok_or_else(unknown)?;
        let (used, committed, capacity_max) = match collector {
            Collector::Serial | Collector::Parallel => generations(text),
            Collector::G1 => g1(text),
            Collector::Z => z(text),
            Collector::Shenandoah => shenandoah(text),
            Collector::Epsilon => epsilon(text),
        }
        .ok_or_else(unknown)?;
        let space = |name| text.lines().find(|line| line.trim_start().starts_with(name)).and_then(Space::parse);
        let (metaspace, class_space) = (space("Metaspace"), space("class space"));
        let old = old_generation(text);
        Ok(Self { collector, used, committed, capacity_max, old, metaspace, class_space })
    }
}

/// Used, committed, maximum.
type Sizes = Option<(Bytes, Bytes, Bytes)>;

/// Both generations, from the lines with `total`: used as printed, the rest from `[start, committed end, reserved
/// end)`.
fn generations(text: &str) -> Sizes {
    let mut sums = (0u64, 0u64, 0u64);
    let mut found = 0;
    for line in text.lines().filter(|line| line.contains(" total ") && line.contains('[')) {
        let (used, (committed, reserved)) = (size(between(line, "used ", &[' ', ','])?)?, lengths(line)?);
        sums.0 = sums.0.checked_add(used.0)?;
        sums.1 = sums.1.checked_add(committed.0)?;
        sums.2 = sums.2.checked_add(reserved.0)?;
        found += 1;
    }
    (found == 2).then_some((Bytes(sums.0), Bytes(sums.1), Bytes(sums.2)))
}

/// Returns the committed and reserved sizes of `tenured generation`, `Tenured` or `ParOldGen`.
fn old_generation(text: &str) -> Option<(Bytes, Bytes)> {
    let line = text.lines().find(|line| {
        let name = line.trim_start();
        ["tenured generation", "Tenured ", "ParOldGen"].into_iter().any(|old| name.starts_with(old))
    })?;
    lengths(line)
}

/// The distances of the second and third address of `[0x…, 0x…, 0x…)` from the first.
fn lengths(line: &str) -> Option<(Bytes, Bytes)> {
    let range = range(line);
    let from_start = |n: usize| Some(Bytes(range.get(n)?.checked_sub(*range.first()?)?));
    Some((from_start(1)?, from_start(2)?))
}

/// Addresses of `[0x…, 0x…, 0x…)`.
fn range(line: &str) -> Vec<u64> {
    line.split_once('[').into_iter().flat_map(|(_, inside)| addresses(inside)).collect()
}

/// 11–21: `garbage-first heap   total 20480K, used 4299K [0x…, 0x…)`;
/// 25: `garbage-first heap   total reserved 65536K, committed 20480K, used 6335K [0x…, 0x…)`.
fn g1(text: &str) -> Sizes {
    let line = text.lines().find(|line| line.contains("garbage-first heap"))?;
    let sized = |key| between(line, key, &[' ', ',']).and_then(size);
    let range = range(line);
    let most = Bytes(range.last()?.checked_sub(*range.first()?)?);
    Some((sized("used ")?, sized("committed ").or_else(|| sized("total "))?, most))
}

/// `ZHeap           used 8M, capacity 64M, max capacity 64M`; with generations in between on some builds.
fn z(text: &str) -> Sizes {
    let line = text.lines().find(|line| line.contains("ZHeap"))?;
    let sized = |key| between(line, key, &[',']).and_then(size);
    Some((sized("used ")?, sized(", capacity ")?, sized("max capacity ")?))
}

/// ` 65536K max, 65536K soft max, 65536K committed, 4863K used`
fn shenandoah(text: &str) -> Sizes {
    let line = text.lines().find(|line| line.contains(" committed, "))?;
    let sized = |key| line.split(',').find_map(|part| size(part.trim().strip_suffix(key)?));
    Some((sized(" used")?, sized(" committed")?, sized(" max")?))
}

/// `space 65536K,  37% used [0x00000000fc000000, 0x00000000fd8517f8, 0x0000000100000000)`: start, top, end.
fn epsilon(text: &str) -> Sizes {
    let line = text.lines().find(|line| line.trim_start().starts_with("space "))?;
    let (used, reserved) = lengths(line)?;
    Some((used, size(between(line, "space ", &[','])?)?, reserved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_heap_is_rejected() {
        assert!(HeapInfo::parse("DefNew     total 19648K, used 1044K [0x10, 0x20, 0x20)\n").is_err());
        assert!(HeapInfo::parse("").is_err());
    }
}
