//! The heap that HotSpot derives from visible memory unless an option sets it in bytes, and the shares of memory that
//! yield a given heap.
//!
//! Source: `Arguments::set_heap_size` (`arguments.cpp`, JDK 11 to 26), unchanged in `gcArguments.cpp` of JDK 27:
//!
//! ```text
//! reasonable_max = phys_mem * MaxRAMPercentage / 100; reasonable_min = phys_mem * MinRAMPercentage / 100;
//! reasonable_max = reasonable_min < MaxHeapSize ? reasonable_min : MAX2(reasonable_max, MaxHeapSize);
//! ```

use crate::units::MIB;

/// The default `MaxHeapSize`: `ScaleForWordSize(96*M)`, which on 64 bits is 1.3 times that in whole words: 124.8 MiB
/// (`gc_globals.hpp`, JDK 11 to 27). Memory counts as small if `MinRAMPercentage` of it is less than this.
const HEAP_USUAL: u64 = 96 * MIB * 13 / 10 / 8 * 8;
/// No HotSpot collector has a finer heap granularity: Shenandoah regions have at least 256 KiB (JDK 11 to 25).
const HEAP_GRAIN: f64 = 262_144.0;
/// Decimals of a percentage; at least one, because JDK 11 requires a decimal point.
const DIGITS: std::ops::RangeInclusive<usize> = 1..=6;

/// The shares of memory, 0 to 1, that HotSpot uses as the maximum heap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RamShare {
    /// `MinRAMPercentage`: for small memory, up to about 250 MiB.
    pub small: f64,
    /// `MaxRAMPercentage`: for larger memory.
    pub large: f64,
}

impl Default for RamShare {
    /// HotSpot's defaults (JDK 11 to 27).
    fn default() -> Self {
        Self { small: 0.50, large: 0.25 }
    }
}

impl RamShare {
    /// Whether this much memory, in bytes, counts as small.
    pub fn is_small(self, memory: u64) -> bool {
        part(memory, self.small) < HEAP_USUAL
    }

    /// The heap for this much memory, both in bytes, before the collector rounds it up.
    pub fn heap(self, memory: u64) -> u64 {
        match self.is_small(memory) {
            true => part(memory, self.small),
            false => part(memory, self.large).max(HEAP_USUAL),
        }
    }

    /// The least memory for which HotSpot derives this heap, both in bytes.
    pub fn memory(self, heap: u64) -> u64 {
        let least = |heap: u64, share: f64| (heap as f64 / share).ceil() as u64;
        match heap < HEAP_USUAL {
            true => least(heap, self.small),
            false => least(heap, self.large).max(least(HEAP_USUAL, self.small)),
        }
    }

    /// The least memory for which HotSpot derives at least this heap and leaves at least `rest` for everything else;
    /// all in bytes. `None` if a share of 1 leaves nothing.
    pub fn memory_beside(self, heap: u64, rest: u64) -> Option<u64> {
        let fits = |memory: &u64| self.heap(*memory) >= heap && memory.saturating_sub(self.heap(*memory)) >= rest;
        // The heap is a share of small memory, then the default, then a share of large memory; the solution is at the
        // start of one of these ranges.
        let left = |share: f64| (rest as f64 / (1.0 - share)).ceil() as u64;
        let mut begins = [self.memory(heap), left(self.small), HEAP_USUAL.saturating_add(rest), left(self.large)];
        begins.sort_unstable();
        begins.into_iter().find(fits)
    }

    /// The options for this heap with this memory, both in bytes: `MaxRAMPercentage`, and the same as
    /// `MinRAMPercentage` if that applies. Empty if no share gives this heap.
    ///
    /// Shares are rounded down by less than any collector rounds up, so the heap equals that of `-Xmx`.
    pub fn options(heap: u64, memory: u64) -> Vec<String> {
        if heap == 0 || heap >= memory {
            return Vec::new();
        }
        let exact = heap as f64 / memory as f64 * 100.0;
        let rounded = |digits: usize| {
            let scale = 10_f64.powi(digits as i32);
            // The tolerance keeps 14.1 from becoming 14.0 by binary rounding.
            (digits, ((exact * scale + 1e-9).floor()) / scale)
        };
        let is_near = |(_, percent): &(usize, f64)| heap as f64 - memory as f64 * percent / 100.0 < HEAP_GRAIN;
        let Some((digits, percent)) = DIGITS.map(rounded).find(is_near) else { return Vec::new() };
        let option = |name: &str| format!("-XX:{name}={percent:.digits$}");
        let min = heap < HEAP_USUAL || Self::default().is_small(memory);
        std::iter::once(option("MaxRAMPercentage")).chain(min.then(|| option("MinRAMPercentage"))).collect()
    }
}

fn part(memory: u64, share: f64) -> u64 {
    (memory as f64 * share) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_default_heap_is_half_of_little_memory_and_a_quarter_of_more() {
        let usual = RamShare::default();
        let heaps = [100, 249, 250, 400, 800].map(|mib| usual.heap(mib * MIB) as f64 / MIB as f64);
        assert_eq!(heaps.map(|mib| (mib * 10.0).round() / 10.0), [50.0, 124.5, 124.8, 124.8, 200.0]);
        assert_eq!([60, 124, 130, 300].map(|mib| usual.memory(mib * MIB) / MIB), [120, 248, 520, 1200]);
        // The result is at least the smallest memory that does not count as small.
        let most = RamShare { large: 0.75, ..usual };
        assert_eq!(most.memory(126 * MIB), HEAP_USUAL * 2);
        assert_eq!([249, 250].map(|mib| most.heap(mib * MIB)), [249 * MIB / 2, 250 * MIB / 4 * 3]);
    }

    #[test]
    fn a_heap_is_expressed_as_shares_of_its_limit() {
        let of = |heap: u64, limit: u64| RamShare::options(heap * MIB, limit * MIB).join(" ");
        assert_eq!(of(7, 105), "-XX:MaxRAMPercentage=6.6 -XX:MinRAMPercentage=6.6");
        // A quarter of 400 MiB is less than the default heap.
        assert_eq!(of(33, 400), "-XX:MaxRAMPercentage=8.2 -XX:MinRAMPercentage=8.2");
        assert_eq!(of(130, 240), "-XX:MaxRAMPercentage=54.1 -XX:MinRAMPercentage=54.1", "both flags exceed 50%");
        assert_eq!(of(900, 1500), "-XX:MaxRAMPercentage=60.0", "a large memory and heap need only the maximum share");
        assert_eq!(of(700, 6000), "-XX:MaxRAMPercentage=11.666", "the share has enough digits for a heap region");
        assert_eq!([of(0, 100), of(100, 100), of(2, 0)], ["", "", ""]);
    }

    proptest! {
        #[test]
        fn memory_for_heap_and_rest_is_sufficient_and_minimal(heap in 1u64..2 << 30, rest in 1u64..2 << 30,
                                                             small in 0.05f64..0.95, large in 0.05f64..0.95) {
            let share = RamShare { small, large };
            let fits = |memory: u64| share.heap(memory) >= heap && memory - share.heap(memory) >= rest;
            let memory = share.memory_beside(heap, rest).unwrap();
            prop_assert!(fits(memory));
            // Rounding may shift a bound by a few bytes.
            for less in [memory.saturating_sub(1024), memory - memory / 100, memory / 2] {
                prop_assert!(!fits(less), "{less} of {memory}");
            }
        }

        #[test]
        fn the_memory_computed_for_a_heap_gives_that_heap(
            heap in MIB..1 << 36, small in 0.01..1.0, large in 0.01..1.0,
        ) {
            let shares = RamShare { small, large };
            let memory = shares.memory(heap);
            prop_assert!(shares.heap(memory + 64) >= heap && (memory < 64 || shares.heap(memory - 64) <= heap));
        }

        /// Parses the options and computes [`RamShare::heap`], rounded up as collectors do.
        #[test]
        fn ram_share_options_reproduce_the_heap_found(heap in 2_u64..40_000, more in 1_u64..200_000) {
            let (heap, memory) = (heap * MIB, (heap + more) * MIB);
            let options = RamShare::options(heap, memory);
            let typed = |name: &str| {
                let value = options.iter().find_map(|of| of.strip_prefix(&format!("-XX:{name}=")).map(str::to_owned));
                value.map(|percent| percent.parse::<f64>().unwrap() / 100.0)
            };
            let usual = RamShare::default();
            let large = typed("MaxRAMPercentage").unwrap();
            let shares = RamShare { small: typed("MinRAMPercentage").unwrap_or(usual.small), large };
            for grain in [1 << 18, 1 << 20, 1 << 21] {
                let rounded = |bytes: u64| bytes.div_ceil(grain) * grain;
                prop_assert_eq!(rounded(shares.heap(memory)), rounded(heap), "{:?}", options);
            }
        }
    }
}
