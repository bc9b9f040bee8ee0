//! Addresses in two replies (HotSpot 11–27): `GC.heap_info` shows where objects are, `Compiler.codecache` where code
//! is. [`super::smaps`] shows which pages of a range are resident, and [`super::metaspace_nodes`] has the nodes of
//! metaspace. (`VM.info` reports more, but its first use permanently adds 4 to 5 MB to the subject.)
//!
//! ```text
//! def new generation   total 19648K, used 688K [0x00007f3951400000, 0x00007f3952950000, 0x00007f3952950000)
//!  eden space 17472K,   3% used [0x00007f3951400000, 0x00007f39514ac050, 0x00007f3952510000)
//! CodeHeap 'non-nmethods': size=5692Kb used=1117Kb max_used=1117Kb free=4574Kb
//!  bounds [0x00007f6b50338000, 0x00007f6b505a8000, 0x00007f6b508c7000]
//! ```

use super::Unavailable;
use super::ranges::leave_out_overlaps;
use super::text::{ADDRESS_END, address, addresses, size};
use loadline_base::order::Order as _;
use loadline_base::units::Bytes;

/// The purpose of a range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Objects.
    JavaHeap,
    /// Compiled code, stubs, the interpreter.
    CodeCache,
    /// A side table of the collector.
    GcTable,
}

/// A range of addresses with its purpose, as the JVM reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JvmRange {
    /// First address.
    pub start: u64,
    /// End address of the reserved range, exclusive.
    pub end: u64,
    /// End address of the committed part, exclusive; known for code heaps only.
    pub committed_end: Option<u64>,
    /// The purpose of the range.
    pub purpose: Purpose,
    /// Its name within the purpose: `non-nmethods`, `collection set map` …
    pub name: String,
}

/// The addresses of both replies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JvmAddresses {
    /// In address order, disjoint.
    pub ranges: Vec<JvmRange>,
    /// Start and end address of the heap, over all generations. `None` for ZGC, which prints no addresses. For Epsilon,
    /// the range ends where the committed part does.
    pub heap_reserved: Option<(u64, u64)>,
    /// The parts of the heap that contain objects, live or dead: bottom to top of each space. In address order, with
    /// adjacent ranges merged. Empty for G1, Shenandoah, and ZGC.
    pub used_ranges: Vec<(u64, u64)>,
    /// The size of a heap region of G1 or Shenandoah.
    pub region_size: Option<Bytes>,
}

impl JvmAddresses {
    /// Parses the concatenated replies of a machine with this page size. Drops absurd and overlapping values; fails
    /// only if nothing at all is recognized.
    pub fn parse(text: &str, page: u64) -> Result<Self, Unavailable> {
        let mut found = AddressParser::default();
        for line in text.lines().map(str::trim) {
            let _ = found.take_heap(line) || found.take_code(line) || found.take_region_size(line);
        }
        let addresses = found.finish(page);
        if addresses == Self::default() {
            return Err(Unavailable::new("GC.heap_info, Compiler.codecache", "no addresses that Loadline recognizes"));
        }
        Ok(addresses)
    }

    /// Builds the same from data read elsewhere: code heaps in `ranges`, and the heap. Drops absurd and overlapping
    /// values. `collection_set_map` is the start of Shenandoah's map, `page` the machine's page size.
    pub fn of(read: Self, collection_set_map: Option<u64>, page: u64) -> Self {
        AddressParser { addresses: read, code_heap: None, collection_set_map }.finish(page)
    }
}

/// The addresses found so far. Lines borrow from the text, `'t`.
#[derive(Default)]
struct AddressParser<'t> {
    addresses: JvmAddresses,
    /// The code heap whose bounds come next.
    code_heap: Option<&'t str>,
    /// The start address of Shenandoah's collection set map.
    collection_set_map: Option<u64>,
}

impl<'t> AddressParser<'t> {
    /// Parses a line about the heap and where its objects are. Like its siblings, returns whether it recognized the
    /// line.
    fn take_heap(&mut self, line: &str) -> bool {
        if let Some((before, range)) = line.split_once("% used [") {
            // The part of eden on one NUMA node repeats part of the previous line.
            if !before.starts_with("lgrp") {
                let mut found = addresses(range);
                if let (Some(bottom), Some(top)) = (found.next(), found.next()) {
                    add_used(&mut self.addresses.used_ranges, (bottom, top));
                    // Epsilon has no other line with addresses.
                    if before.starts_with("space ") {
                        self.see_heap(std::iter::once(bottom).chain(found));
                    }
                }
            }
        } else if let Some((before, range)) = line.split_once(" [0x") {
            // Generations, all of G1, or the line after Shenandoah's `Reserved region:`.
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
        let (low, high) = self.addresses.heap_reserved.unwrap_or((u64::MAX, 0));
        let (low, high) = found.fold((low, high), |(low, high), one| (low.min(one), high.max(one)));
        self.addresses.heap_reserved = Some((low, high)).filter(plausible);
    }

    /// Parses a line about a code heap, or about the code cache if it is not segmented.
    fn take_code(&mut self, line: &'t str) -> bool {
        if let Some(name) = line.strip_prefix("CodeHeap '") {
            self.code_heap = name.split('\'').next();
        } else if line.starts_with("CodeCache: size=") {
            // As of JDK 21, also the sum of the code heaps, which has no bounds.
            self.code_heap = Some("CodeCache");
        } else if let Some(rest) = line.strip_prefix("bounds [") {
            let mut found = addresses(rest);
            let (start, committed_end, end) = (found.next(), found.next(), found.next());
            if let Some((name, range)) = self.code_heap.take().zip(start.zip(end)) {
                let committed_end = committed_end.filter(|end| (range.0..=range.1).contains(end));
                self.add(Purpose::CodeCache, name, range, committed_end);
            }
        } else {
            return false;
        }
        true
    }

    /// `region size 1024K, 2 young …` of G1, `256 x 256K regions` of Shenandoah.
    fn take_region_size(&mut self, line: &str) -> bool {
        let shenandoah = || Some(line.strip_suffix(" regions")?.split_once(" x ")?.1);
        let told = line.strip_prefix("region size ").and_then(|rest| rest.split(',').next()).or_else(shenandoah);
        self.addresses.region_size = told.and_then(size).or(self.addresses.region_size);
        told.is_some()
    }

    /// Adds a range if it is plausible.
    fn add(&mut self, purpose: Purpose, name: &str, (start, end): (u64, u64), committed_end: Option<u64>) {
        if plausible(&(start, end)) {
            let name = name.to_owned();
            self.addresses.ranges.push(JvmRange { start, end, committed_end, purpose, name });
        }
    }

    fn finish(mut self, page: u64) -> JvmAddresses {
        let heap = self.addresses.heap_reserved;
        if let Some(heap) = heap {
            self.add(Purpose::JavaHeap, "Java heap", heap, None);
            self.add_collection_set_map(heap.1, page);
        }
        let mut found = self.addresses;
        found.ranges.order_by_key(|range| (range.start, range.end));
        leave_out_overlaps(&mut found.ranges, |range| (range.start, range.end));
        let (low, high) = heap.unwrap_or((0, ADDRESS_END));
        found.used_ranges.retain(|used| low <= used.0 && used.1 <= high);
        found.used_ranges.sort_unstable();
        let mut merged = Vec::with_capacity(found.used_ranges.len());
        found.used_ranges.iter().for_each(|used| add_used(&mut merged, *used));
        found.used_ranges = merged;
        found
    }

    /// The map has a byte per region that would fit below the end of the heap (`shenandoahCollectionSet.cpp`), starting
    /// at address 0. Only the first page and the bytes of the heap's own regions are committed.
    fn add_collection_set_map(&mut self, heap_end: u64, page: u64) {
        let region = self.addresses.region_size.filter(|size| size.0 > 0);
        if let (Some(start), Some(region)) = (self.collection_set_map, region) {
            let end = start.saturating_add((heap_end / region.0).next_multiple_of(page));
            self.add(Purpose::GcTable, "collection set map", (start, end), None);
        }
    }
}

fn plausible(range: &(u64, u64)) -> bool {
    range.0 < range.1 && range.1 <= ADDRESS_END
}

/// Adds a nonempty range, merged with the last one if they are adjacent.
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
CodeCache: size=245760Kb used=1117Kb max_used=1117Kb free=244642Kb
 bounds [0x00007f3955400000, 0x00007f3955670000, 0x00007f3964400000]
";

    #[test]
    fn the_heap_is_found_from_its_generations_without_compressed_oops() {
        let found = JvmAddresses::parse(WITHOUT, 4096).unwrap();
        assert_eq!(found.heap_reserved, Some((0x7f39_5140_0000, 0x7f39_5540_0000)));
        let used = [(0x7f39_5140_0000, 0x7f39_514a_c050), (0x7f39_5295_0000, 0x7f39_52dc_3d60)];
        assert_eq!(found.used_ranges, used);
        let names: Vec<_> = found.ranges.iter().map(|range| (range.purpose, range.name.as_str())).collect();
        assert_eq!(names, [(Purpose::JavaHeap, "Java heap"), (Purpose::CodeCache, "CodeCache")]);
        assert_eq!(found.ranges[1].committed_end, Some(0x7f39_5567_0000));
    }

    #[test]
    fn the_epsilon_heap_is_found_without_compressed_oops() {
        let text = "Epsilon Heap\nAllocation space:\n space 65536K,  37% used [0x7fc905000000, 0x7fc906000000, \
             0x7fc909000000)";
        let found = JvmAddresses::parse(text, 4096).unwrap();
        assert_eq!(found.heap_reserved, Some((0x7fc9_0500_0000, 0x7fc9_0900_0000)));
        assert_eq!(found.used_ranges, [(0x7fc9_0500_0000, 0x7fc9_0600_0000)]);
    }

    #[test]
    fn absurd_or_overlapping_ranges_are_skipped() {
        let text = "def new generation total 9K, used 5K [0x10000000, 0x10300000, 0x14000000)
  eden space 9K, 50% used [0x0000000010000000, 0x0000000010180000, 0x0000000010200000)
  from space 9K, 50% used [0x0000000010080000, 0x0000000010190000, 0x0000000010200000)
  to space 9K, 50% used [0x0000000014000000, 0x0000000014100000, 0x0000000014200000)
  the space 9K, 50% used [0x0000000010200000, 0x0000000010200000, 0x0000000010300000)
 bounds [0x30000000, 0x30001000, 0x30002000]
CodeHeap 'one'
 bounds [0x10001000, 0x10002000, 0x10003000]
CodeHeap 'two'
 bounds [0x20001000, 0x20000000, 0x20000000]
CodeHeap 'three'
 bounds [0x00007f0ccca00000, 0x00007f0ccca00000, 0xffff7f0ccce00000]
";
        let found = JvmAddresses::parse(text, 4096).unwrap();
        assert_eq!(found.ranges.len(), 1, "{:?}", found.ranges);
        assert_eq!(found.ranges[0].purpose, Purpose::JavaHeap);
        assert_eq!(found.used_ranges, [(0x1000_0000, 0x1019_0000)]);
    }

    #[test]
    fn eden_on_numa_nodes_is_not_counted_twice() {
        let text = "PSYoungGen total 9K, used 5K [0x10000, 0x20000, 0x30000)\n  eden space 9K, 5% used \
             [0x10000,0x14000,0x20000)\n    lgrp 0 space 5K, 9% used [0x10000,0x18000,0x18000)";
        assert_eq!(JvmAddresses::parse(text, 4096).unwrap().used_ranges, [(0x10000, 0x14000)]);
    }

    #[test]
    fn unrecognized_text_is_an_error() {
        for text in ["", "Heap:\n", "Environment Variables:\nA=1\n", "|\n|BTE|\n"] {
            assert!(JvmAddresses::parse(text, 4096).is_err(), "{text}");
        }
    }
}
