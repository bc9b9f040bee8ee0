//! Replies that name addresses (HotSpot 11–25): `GC.heap_info` says where objects lie, `Compiler.codecache` where code
//! does. Both forms stand in `VM.info` too, with more: this reads all three.
//!
//! No subject is asked `VM.info`, since the first one adds 4 to 5 MB to it for good; its form is kept for the samples,
//! which have every collector's. Which pages of a range are resident is [`super::smaps`]'s to say; the nodes of
//! metaspace are [`super::metaspace_nodes`]'s.
//!
//! ```text
//! Heap address: 0x00000000fc000000, size: 64 MB, Compressed Oops mode: 32-bit
//! CodeHeap 'non-nmethods': size=5692Kb used=1117Kb max_used=1117Kb free=4574Kb
//!  bounds [0x00007f6b50338000, 0x00007f6b505a8000, 0x00007f6b508c7000]
//! ```

use super::Unavailable;
use super::text::{ADDRESS_END, address, addresses, between, size};
use crate::units::Bytes;

/// A page of x86_64. The reply does not say what the machine's is.
const PAGE: u64 = 4096;

/// What a range of addresses is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Objects.
    JavaHeap,
    /// The archive of shared classes.
    Cds,
    /// Metaspace with the classes that a compressed class pointer can reach.
    ClassSpace,
    /// Metaspace other than that; this reply does not show it.
    Metaspace,
    /// Compiled code, stubs, the interpreter.
    CodeCache,
    /// A side table of the collector.
    GcTable,
    /// The pages that threads look at to learn of a safepoint.
    PollingPage,
}

/// A range of addresses with its purpose, as the JVM reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JvmRange {
    /// First address.
    pub start: u64,
    /// First address behind, of what is reserved.
    pub end: u64,
    /// First address behind what is committed; told of code heaps only.
    pub committed_end: Option<u64>,
    /// What it is for.
    pub purpose: Purpose,
    /// Which of its kind: `non-nmethods`, `card table`, `marking bits (prev)`, `CDS archive` …
    pub name: String,
}

/// What sizes the side tables of a collector. Each is `None` where the reply does not tell: JDK 11 tells nothing but
/// the size of regions, 17 not that of cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Geometry {
    /// A heap region of G1 or Shenandoah.
    pub region_size: Option<Bytes>,
    /// What one byte of the card table stands for. JDK 25 tells it for Shenandoah too, which may have no such table.
    pub card_size: Option<Bytes>,
    /// The least the heap may be.
    pub capacity_min: Option<Bytes>,
    /// The heap's size at the start.
    pub capacity_initial: Option<Bytes>,
    /// The most the heap may become.
    pub capacity_max: Option<Bytes>,
}

/// A reply, as far as it is about addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VmInfo {
    /// By address; none overlaps another.
    pub ranges: Vec<JvmRange>,
    /// First address of the heap, first address behind. `None` for ZGC, which prints offsets only. Without compressed
    /// oops it is put together from the generations; for Epsilon it then ends where the committed part does.
    pub heap_reserved: Option<(u64, u64)>,
    /// Where in the heap objects lie, live or dead: bottom to top of each generation's space, or of each region of G1
    /// and Shenandoah. By address; what touches is one range. Empty for ZGC.
    pub used_ranges: Vec<(u64, u64)>,
    /// Of the collector.
    pub collector_geometry: Geometry,
    /// The C library, `glibc 2.36 NPTL 2.36`.
    pub libc: Option<String>,
    /// malloc live, and malloc retained (JDK 17 and later). `None` too where the JVM says that they `may have wrapped`,
    /// being counted in 32 bits by a glibc before 2.33.
    pub c_heap: Option<(Bytes, Option<Bytes>)>,
}

impl VmInfo {
    /// Parses a reply, in one pass over its lines. Absurd and overlapping values are left out; only a reply in which
    /// nothing at all is recognised is an error.
    pub fn parse(text: &str) -> Result<Self, Unavailable> {
        let mut reader = Reader::default();
        for line in text.lines() {
            reader.take(line.trim());
        }
        let info = reader.finish();
        if info == Self::default() {
            return Err(Unavailable::new("GC.heap_info, Compiler.codecache", "no addresses in a known form"));
        }
        Ok(info)
    }
}

/// The part of the reply a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    /// Up to the first list of events.
    #[default]
    Process,
    /// Events, which repeat older states of the heap, mappings, arguments, environment.
    Events,
    /// What follows `S Y S T E M`.
    System,
}

/// What was found so far. Lines live as long as the text, `'t`.
#[derive(Default)]
struct Reader<'t> {
    info: VmInfo,
    part: Part,
    /// The code heap whose bounds come next.
    code_heap: Option<&'t str>,
    /// The line `Heap address:`, which is there only with compressed oops.
    heap_told: Option<(u64, u64)>,
    /// From the lowest to the highest address of generations.
    heap_seen: Option<(u64, u64)>,
    /// Where Shenandoah's collection set map begins.
    collection_set_map: Option<u64>,
}

impl<'t> Reader<'t> {
    fn take(&mut self, line: &'t str) {
        if line.starts_with("-------") {
            if line.contains("S Y S T E M") {
                self.part = Part::System;
            }
        } else if self.part == Part::System {
            self.take_system(line);
        } else if self.part == Part::Process {
            if let Some(row) = line.strip_prefix('|') {
                self.take_region(row);
            } else if line.ends_with(" events):") {
                self.part = Part::Events;
            } else {
                let _ = self.take_heap(line) || self.take_range(line) || self.take_geometry(line);
            }
        }
    }

    /// A line about the heap and where objects lie in it. As its siblings, says whether it knows the line.
    fn take_heap(&mut self, line: &str) -> bool {
        if let Some(rest) = line.strip_prefix("Heap address: ") {
            let told = || {
                let start = address(rest.split(',').next()?)?;
                Some((start, start.checked_add(size(between(rest, "size: ", &[','])?)?.0)?))
            };
            self.heap_told = told().filter(plausible);
        } else if let Some((before, range)) = line.split_once("% used [") {
            // A part of eden on one NUMA node, which repeats a part of the line before.
            if !before.starts_with("lgrp") {
                let mut found = addresses(range);
                if let (Some(bottom), Some(top)) = (found.next(), found.next()) {
                    add_used(&mut self.info.used_ranges, (bottom, top));
                    // Epsilon has no other line with addresses.
                    if before.starts_with("space ") {
                        self.see_heap(std::iter::once(bottom).chain(found));
                    }
                }
            }
        } else if let Some((before, range)) = line.split_once(" [0x") {
            // Generations, all of G1 or Shenandoah's `Reserved region:`; not `Encoding Range:`, bits, bounds.
            if !(before.contains(" total ") && before.contains(" used ") || before == "-") {
                return false;
            }
            self.see_heap(addresses(range));
        } else if let Some(rest) = line.strip_prefix("- map (biased): ") {
            self.collection_set_map = address(rest);
        } else {
            return false;
        }
        true
    }

    fn see_heap(&mut self, found: impl Iterator<Item = u64>) {
        let (low, high) = self.heap_seen.unwrap_or((u64::MAX, 0));
        let (low, high) = found.fold((low, high), |(low, high), one| (low.min(one), high.max(one)));
        self.heap_seen = Some((low, high)).filter(plausible);
    }

    /// A line with a range of its own.
    fn take_range(&mut self, line: &'t str) -> bool {
        // JDK 17 and later; 11 tells nothing of the archive.
        if let Some(rest) = line.strip_prefix("CDS archive(s) mapped at: [") {
            let mut found = addresses(rest);
            self.add_between(Purpose::Cds, "CDS archive", found.next(), found.last());
        } else if let Some(rest) = line.strip_prefix("Compressed class space mapped at: ") {
            let mut found = addresses(rest);
            self.add_between(Purpose::ClassSpace, "class space", found.next(), found.next());
        } else if let Some(rest) = line.strip_prefix("Compressed class space size: ") {
            // JDK 11: `1073741824 Address: 0x0000000100000000`
            let (bytes, start) = rest.split_once(" Address: ").unwrap_or((rest, ""));
            let start = address(start);
            let end = start.and_then(|start| start.checked_add(size(bytes)?.0));
            self.add_between(Purpose::ClassSpace, "class space", start, end);
        } else if let Some(name) = line.strip_prefix("CodeHeap '") {
            self.code_heap = name.split('\'').next();
        } else if line.starts_with("CodeCache: size=") {
            // Not segmented; or the sum of the code heaps, which has no bounds (JDK 21 and later).
            self.code_heap = Some("CodeCache");
        } else if let Some(rest) = line.strip_prefix("bounds [") {
            let mut found = addresses(rest);
            let (start, committed_end) = (found.next(), found.next());
            let added = match self.code_heap.take() {
                Some(name) => self.add_between(Purpose::CodeCache, name, start, found.next()),
                None => None,
            };
            if let Some(added) = added {
                added.committed_end = committed_end.filter(|end| (added.start..=added.end).contains(end));
            }
        } else if let Some(rest) = line.strip_prefix("Polling page: ") {
            // A page that no one may read, and one that everyone may: only the second can be resident.
            let start = address(rest);
            let end = start.and_then(|start| start.checked_add(2 * PAGE));
            self.add_between(Purpose::PollingPage, "polling page", start, end);
        } else {
            return self.take_table(line);
        }
        true
    }

    /// `Card table byte_map: [0x…,0x…] _byte_map_base: 0x…`, ` Prev Bits: [0x…, 0x…)`
    fn take_table(&mut self, line: &str) -> bool {
        let known = [
            ("Card table byte_map:", "card table"),
            // G1 up to JDK 17, G1 from 21 on.
            ("Prev Bits:", "marking bits (prev)"),
            ("Next Bits:", "marking bits (next)"),
            ("Bits:", "marking bits"),
            // Parallel; JDK 25 has no second ones.
            ("Begin Bits:", "marking bits (begin)"),
            ("End Bits:", "marking bits (end)"),
        ];
        for (before, name) in known {
            // `End Bits:   [`
            if let Some(rest) = line.strip_prefix(before).and_then(|rest| rest.trim_start().strip_prefix('[')) {
                let mut found = addresses(rest);
                self.add_between(Purpose::GcTable, name, found.next(), found.next());
                return true;
            }
        }
        false
    }

    /// The added range, unless it is none.
    fn add_between(
        &mut self,
        purpose: Purpose,
        name: &str,
        start: Option<u64>,
        end: Option<u64>,
    ) -> Option<&mut JvmRange> {
        let (start, end) = start.zip(end).filter(plausible)?;
        self.info.ranges.push(JvmRange { start, end, committed_end: None, purpose, name: name.to_owned() });
        self.info.ranges.last_mut()
    }

    /// ` Heap Min Capacity: 8M` (ZGC: ` Min Capacity: 8M`), `  region size 1024K, 2 young …`, ` 256 x 256K regions`
    fn take_geometry(&mut self, line: &str) -> bool {
        let geometry = &mut self.info.collector_geometry;
        let line = line.strip_prefix("Heap ").unwrap_or(line);
        if let Some((key, value)) = line.split_once(": ") {
            let field = match key {
                "Region Size" => &mut geometry.region_size,
                "CardTable entry size" => &mut geometry.card_size,
                "Min Capacity" => &mut geometry.capacity_min,
                "Initial Capacity" => &mut geometry.capacity_initial,
                "Max Capacity" => &mut geometry.capacity_max,
                _ => return false,
            };
            *field = size(value);
        } else if let Some(rest) = line.strip_prefix("region size ") {
            geometry.region_size = rest.split(',').next().and_then(size);
        } else if let Some((_count, each)) = line.strip_suffix(" regions").and_then(|line| line.split_once(" x ")) {
            geometry.region_size = size(each);
        } else {
            return false;
        }
        true
    }

    /// A row of the table of regions without its first `|`: bottom, top, end.
    ///
    /// ```text
    /// |   0|0x00000000f0000000, 0x00000000f0100000, 0x00000000f0100000|100%| O|  |TAMS 0x00000000f0000000| …
    /// |    4|R  |BTE     f0100000,     f0130d60,     f0140000|TAMS     f0130d60|UWM     f0130d60|U   195K| …
    /// ```
    fn take_region(&mut self, row: &str) {
        let Some((_index, rest)) = row.split_once('|') else { return };
        // Shenandoah: the letters of its state before it, on JDK 25 of its generation too.
        let rest = if rest.starts_with("0x") { Some(rest) } else { rest.split_once("|BTE ").map(|(_, rest)| rest) };
        let mut found = rest.map(addresses).into_iter().flatten();
        if let (Some(bottom), Some(top)) = (found.next(), found.next()) {
            add_used(&mut self.info.used_ranges, (bottom, top));
        }
    }

    /// `libc: glibc 2.36 NPTL 2.36`, `C-Heap outstanding allocations: 11364K, retained: 1703K`
    fn take_system(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("libc:") {
            self.info.libc = Some(rest.trim().to_owned()).filter(|libc| !libc.is_empty());
        } else if let Some(rest) = line.strip_prefix("C-Heap outstanding allocations: ") {
            let outstanding = rest.split(',').next().and_then(size);
            let retained = between(rest, "retained: ", &[' ']).and_then(size);
            self.info.c_heap = outstanding.filter(|_| !rest.contains("wrapped")).map(|bytes| (bytes, retained));
        }
    }

    fn finish(mut self) -> VmInfo {
        let heap = match (self.heap_told, self.heap_seen) {
            // The line tells whole MiB only.
            (Some(told), Some(seen)) if told.0 == seen.0 => Some((told.0, told.1.max(seen.1))),
            (told, seen) => told.or(seen),
        };
        if let Some((start, end)) = heap {
            self.add_between(Purpose::JavaHeap, "Java heap", Some(start), Some(end));
            self.add_collection_set_map(end);
        }
        let mut info = self.info;
        info.heap_reserved = heap;
        info.ranges.sort_by_key(|range| (range.start, range.end));
        let mut end = 0;
        info.ranges.retain(|range| {
            let apart = range.start >= end;
            end = if apart { range.end } else { end };
            apart
        });
        let (low, high) = heap.unwrap_or((0, ADDRESS_END));
        info.used_ranges.retain(|used| low <= used.0 && used.1 <= high);
        info.used_ranges.sort_unstable();
        let mut merged = Vec::with_capacity(info.used_ranges.len());
        info.used_ranges.iter().for_each(|used| add_used(&mut merged, *used));
        info.used_ranges = merged;
        info
    }

    /// One byte for each region that would fit below the end of the heap (`shenandoahCollectionSet.cpp`); it begins for
    /// address 0, and only the bytes of the heap's own regions and the first page are committed.
    fn add_collection_set_map(&mut self, heap_end: u64) {
        let region = self.info.collector_geometry.region_size.filter(|size| size.0 > 0);
        if let (Some(start), Some(region)) = (self.collection_set_map, region) {
            let end = start.checked_add((heap_end / region.0).next_multiple_of(PAGE));
            self.add_between(Purpose::GcTable, "collection set map", Some(start), end);
        }
    }
}

/// Whether a range can be one.
fn plausible(range: &(u64, u64)) -> bool {
    range.0 < range.1 && range.1 <= ADDRESS_END
}

/// Adds a range to others, to the last one if they touch; a range that holds nothing is none.
fn add_used(ranges: &mut Vec<(u64, u64)>, used: (u64, u64)) {
    match ranges.last_mut() {
        _ if !plausible(&used) => {}
        Some(last) if last.0 <= used.0 && used.0 <= last.1 => last.1 = last.1.max(used.1),
        _ => ranges.push(used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JDK 17, `-XX:-UseCompressedOops -XX:-SegmentedCodeCache -XX:-UseCompressedClassPointers`.
    const WITHOUT: &str = "Heap:
 def new generation   total 19648K, used 688K [0x00007f3951400000, 0x00007f3952950000, 0x00007f3952950000)
  eden space 17472K,   3% used [0x00007f3951400000, 0x00007f39514ac050, 0x00007f3952510000)
  from space 2176K,   0% used [0x00007f3952730000, 0x00007f3952730000, 0x00007f3952950000)
  to   space 2176K,   0% used [0x00007f3952510000, 0x00007f3952510000, 0x00007f3952730000)
 tenured generation   total 43712K, used 4559K [0x00007f3952950000, 0x00007f3955400000, 0x00007f3955400000)
   the space 43712K,  10% used [0x00007f3952950000, 0x00007f3952dc3d60, 0x00007f3952dc3e00, 0x00007f3955400000)
Card table byte_map: [0x00007f3970cb1000,0x00007f3970cd2000] _byte_map_base: 0x00007ef9d4227000
CodeCache: size=245760Kb used=1117Kb max_used=1117Kb free=244642Kb
 bounds [0x00007f3955400000, 0x00007f3955670000, 0x00007f3964400000]
GC Heap History (2 events):
  eden space 17472K,  99% used [0x00007f3951400000, 0x00007f3952510000, 0x00007f3952510000)
";

    #[test]
    fn without_compressed_oops_generations_tell_the_heap() {
        let info = VmInfo::parse(WITHOUT).unwrap();
        assert_eq!(info.heap_reserved, Some((0x7f39_5140_0000, 0x7f39_5540_0000)));
        let used = [(0x7f39_5140_0000, 0x7f39_514a_c050), (0x7f39_5295_0000, 0x7f39_52dc_3d60)];
        assert_eq!(info.used_ranges, used);
        let names: Vec<_> = info.ranges.iter().map(|range| (range.purpose, range.name.as_str())).collect();
        let expect =
            [(Purpose::JavaHeap, "Java heap"), (Purpose::CodeCache, "CodeCache"), (Purpose::GcTable, "card table")];
        assert_eq!(names, expect);
        assert_eq!(info.ranges[1].committed_end, Some(0x7f39_5567_0000));
        assert_eq!((info.libc, info.c_heap), (None, None));
    }

    #[test]
    fn epsilon_without_compressed_oops() {
        let text = "Epsilon Heap\nAllocation space:\n space 65536K,  37% used [0x7fc905000000, 0x7fc906000000, 0x7fc909000000)";
        let info = VmInfo::parse(text).unwrap();
        assert_eq!(info.heap_reserved, Some((0x7fc9_0500_0000, 0x7fc9_0900_0000)));
        assert_eq!(info.used_ranges, [(0x7fc9_0500_0000, 0x7fc9_0600_0000)]);
    }

    #[test]
    fn what_is_absurd_or_overlaps_is_left_out() {
        let text = "Heap address: 0x10000000, size: 64 MB, Compressed Oops mode: 32-bit
CDS archive(s) mapped at: [0x0000000000000000-0x0000000000000000-0x0000000000000000), size 0
Compressed class space mapped at: 0x0000000010001000-0x0000000140000000, reserved size: 1073741824
Card table byte_map: [0x20001000,0x20000000] _byte_map_base: 0x0
 Bits: [0x00007f0ccca00000, 0xffff7f0ccce00000)
 bounds [0x30000000, 0x30001000, 0x30002000]
Polling page: 0xffffffffffffffff
|   0|0x0000000010000000, 0x0000000010100000, 0x0000000010100000|100%| O|
|   1|0x0000000010100000, 0x0000000010180000, 0x0000000010200000| 50%| E|
|   2|0x0000000010200000, 0x0000000010200000, 0x0000000010300000|  0%| F|
|   3|0x0000000014000000, 0x0000000014100000, 0x0000000014100000|100%| O|
|   4|0x0000000010080000, 0x0000000010190000, 0x0000000010100000|100%| O|
|   5|
";
        let info = VmInfo::parse(text).unwrap();
        assert_eq!(info.ranges.len(), 1, "{:?}", info.ranges);
        assert_eq!(info.ranges[0].purpose, Purpose::JavaHeap);
        assert_eq!(info.used_ranges, [(0x1000_0000, 0x1019_0000)]);
    }

    #[test]
    fn parts_of_eden_on_numa_nodes_are_not_counted_twice() {
        let text = "PSYoungGen total 9K, used 5K [0x10000, 0x20000, 0x30000)\n  eden space 9K, 5% used [0x10000,0x14000,0x20000)\n    lgrp 0 space 5K, 9% used [0x10000,0x18000,0x18000)";
        assert_eq!(VmInfo::parse(text).unwrap().used_ranges, [(0x10000, 0x14000)]);
    }

    #[test]
    fn the_c_heap_counts_only_when_it_has_not_wrapped() {
        let of =
            |line: &str| VmInfo::parse(&format!("--------  S Y S T E M  --------\nlibc:musl - \n{line}\n")).unwrap();
        let line = "C-Heap outstanding allocations: 11364K, retained: 1703K";
        assert_eq!(of(line).c_heap, Some((Bytes::kib(11_364), Some(Bytes::kib(1703)))));
        assert_eq!(of("C-Heap outstanding allocations: 2377K").c_heap, Some((Bytes::kib(2377), None)));
        assert_eq!(of(&format!("{line} (may have wrapped)")).c_heap, None);
        assert_eq!(of(line).libc.as_deref(), Some("musl -"));
    }

    #[test]
    fn nothing_recognised_is_an_error() {
        for text in ["", "libc: glibc 2.36\n", "Environment Variables:\nA=1\n", "|\n|BTE|\n"] {
            assert!(VmInfo::parse(text).is_err(), "{text}");
        }
    }
}
