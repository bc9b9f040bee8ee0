//! G1's humongous objects, which have their own regions.

use super::facts::{Facts, share};
use super::found::{first, found};
use crate::record::{Finding, FindingRecord, HumongousRecord};
use crate::remedy::changes;
use crate::scenario::Change;
use crate::units::{Bytes, grouped, several};

/// Humongous objects normally waste less than this share of the used heap.
const TAIL_SHARE_MIN: f64 = 0.1;
/// The maximum region size (`HeapRegionBounds::MAX_SIZE`): 32 MiB up to JDK 17, 512 MiB since 18.
const REGION_MAX: u64 = 32 << 20;
/// The number of regions that a heap should have for G1 to choose from.
const REGIONS_MIN: u64 = 32;
/// The header of an array (`arrayOopDesc`) with compressed class pointers.
const HEADER_BYTES: u64 = 16;
/// A tail of less than this share of an object is not wasteful.
const WASTE_MAX: f64 = 0.125;

/// Half of the heap that G1 reports as used may contain no objects, because an object of at least half a region
/// occupies whole regions. Source: the G1 tuning guide of JDK 17 ("humongous objects"), spark #34846 (pages of 4 MiB
/// and 16 bytes: half of the heap wasted), hazelcast #16760; measured: 160 arrays of 1 MiB and 16 bytes occupy 320 MiB.
pub(super) fn tails(facts: &Facts) -> Option<FindingRecord> {
    let (mark, account) = facts.weighed()?;
    let HumongousRecord { objects, object_bytes, tail_bytes, region_bytes } = mark.heap.humongous?;
    let used = mark.heap.used_bytes.filter(|used| *used > 0)?;
    if share(tail_bytes, used) < TAIL_SHARE_MIN {
        return None;
    }
    // Pages of a tail that were never written are not resident.
    let needed = used.saturating_sub(tail_bytes);
    let costs_bytes = account.heap_bytes().saturating_sub(needed).min(tail_bytes);
    let each = object_bytes / objects.max(1);
    let fits = fitting(each, region_bytes, mark.heap.max_bytes).filter(|_| facts.flags.is_free("G1HeapRegionSize"));
    let sized = |region| changes::jvm([format!("-XX:G1HeapRegionSize={}", Bytes(region).java())]);
    let remedies: Vec<Change> = fits.map(sized).into_iter().collect();
    let [half, taken, empty] = [region_bytes / 2, object_bytes, tail_bytes].map(Bytes);
    let text = format!(
        "{} of at least half a region ({half}): {taken} of data, and {empty} wasted at the ends of regions",
        several(objects, "humongous object")
    );
    let smaller = smaller(each, region_bytes);
    let next = match first(&remedies) {
        Some(first) => format!("try `{first}`, or {smaller}{}", then(used, needed)),
        None => format!("{smaller}, or use another collector{}", then(used, needed)),
    };
    let finding = Finding::HumongousTails { objects, object_bytes, tail_bytes, region_bytes };
    let found = found(finding, text, next);
    Some(FindingRecord { costs_bytes, remedies, ..found })
}

/// An array length below the average that wastes almost nothing: whole regions, or less than half of one.
fn smaller(each: u64, region: u64) -> String {
    let (bytes, why) = match each / region.max(1) {
        // An object of half a region is already humongous, and sizes are multiples of 8 bytes.
        0 => ((region / 2).saturating_sub(8), "an object of half a region or more gets its own regions".to_owned()),
        whole => (whole * region, format!("with its header, it then fills exactly {}", several(whole, "region"))),
    };
    let [bytes, average] = [bytes, each].map(|size| grouped(size.saturating_sub(HEADER_BYTES)));
    format!("make each array at most {bytes} bytes long (the average is {average}): {why}")
}

/// A sentence about the savings: G1 uses the freed tails for other objects. Measured in the same heap of 512 MiB: RSS
/// was 362.5 MiB, or 396.1 with regions of 4 MiB.
fn then(used: u64, needed: u64) -> String {
    let (needed, used) = (Bytes(needed), Bytes(used));
    format!(
        ". The heap then needs only {needed} of the {used} now in use; RSS falls by as much as you lower \
         `-Xmx`"
    )
}

/// The smallest larger region size with which such objects waste almost nothing: at least twice an object's size, or a
/// size that an object fills.
fn fitting(each: u64, region: u64, heap_max: Option<u64>) -> Option<u64> {
    let wasted = |size: u64| each.next_multiple_of(size).saturating_sub(each) as f64 / each.max(1) as f64;
    let fits = |size: &u64| each < size / 2 || wasted(*size) < WASTE_MAX;
    let larger = std::iter::successors(region.checked_mul(2), |size| size.checked_mul(2));
    let larger = larger.take_while(|size| *size <= REGION_MAX && heap_max.is_none_or(|max| max / size >= REGIONS_MIN));
    larger.into_iter().find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_shortens_arrays_to_fit_or_avoid_humongous_regions() {
        const MIB: u64 = 1 << 20;
        assert!(smaller(MIB + 16, MIB).contains("at most 1,048,560 bytes long (the average is 1,048,576)"));
        assert!(smaller(3 * MIB + 16, MIB).contains("3,145,712 bytes long (the average is 3,145,728): with its"));
        assert!(smaller(0, 0).contains("at most 0 bytes"), "an empty record must not underflow");
        assert!(smaller(MIB / 2 + 16, MIB).contains("at most 524,264 bytes long (the average is 524,288)"));
    }

    #[test]
    fn the_proposed_region_size_makes_objects_ordinary_or_fills_regions() {
        const MIB: u64 = 1 << 20;
        let gib = Some(1024 * MIB);
        assert_eq!(fitting(MIB + 16, MIB, gib), Some(4 * MIB));
        assert_eq!(fitting(MIB / 2 + 16, MIB, gib), Some(2 * MIB));
        assert_eq!(fitting(4 * MIB + 16, 4 * MIB, Some(8192 * MIB)), Some(16 * MIB));
        assert_eq!(fitting(31 * MIB, MIB, Some(8192 * MIB)), Some(2 * MIB), "it may fill 16 regions of 2 MiB");
        assert_eq!(fitting(MIB + 16, MIB, Some(64 * MIB)), None, "the heap would have only 16 regions of this size");
        assert_eq!(fitting(20 * MIB + 16, 16 * MIB, Some(64 * 1024 * MIB)), None);
    }
}
