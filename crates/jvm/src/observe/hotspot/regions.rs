//! The regions of G1 (`G1HeapRegionTable`, `HeapRegion`, from JDK 22 on `G1HeapRegion`; JDK 17–25): one structure for
//! each that ever held something, which stays where it is.

use super::super::Unavailable;
use super::fields::{Fields, absurd, unread};
use crate::kernel::mapping::Mapping;

/// G1 makes about 2,048 of them; 1 MiB each of 1 TiB.
const REGIONS_MAX: u64 = 1 << 20;
const BOTTOM: [&str; 2] = ["G1HeapRegion::_bottom", "HeapRegion::_bottom"];
const TOP: [&str; 2] = ["G1HeapRegion::_top", "HeapRegion::_top"];
const END: [&str; 2] = ["G1HeapRegion::_end", "HeapRegion::_end"];

/// Bytes between bottom and top of all regions; one that is free has them in one place.
///
/// # Errors
/// Where a region is not one of this heap.
pub(super) fn used(fields: Fields<'_>, heap: u64, (start, end): (u64, u64), size: u64) -> Result<u64, Unavailable> {
    let regions = fields.place(heap, &["G1CollectedHeap::_hrm"])?;
    let table = fields.place(regions, &["G1HeapRegionManager::_regions", "HeapRegionManager::_regions"])?;
    let (base, length) =
        (fields.pointer(table, &["G1HeapRegionTable::_base"])?, fields.word(table, &["G1HeapRegionTable::_length"])?);
    if length > REGIONS_MAX || Some(end - start) != length.checked_mul(size) {
        return Err(absurd("the table of regions"));
    }
    let mut pointers = vec![0; 8 * length as usize];
    fields.memory.read(base, &mut pointers).then_some(()).ok_or_else(unread)?;
    let mut used = 0;
    for (n, region) in (0..).zip(pointers.chunks_exact(8)) {
        let region = region.try_into().map_or(0, u64::from_le_bytes);
        if region == 0 {
            continue;
        }
        let bottom = start + n * size;
        let top = fields.word(region, &TOP)?;
        let own = fields.word(region, &BOTTOM)? == bottom && fields.word(region, &END)? == bottom + size;
        if !own || !(bottom..=bottom + size).contains(&top) {
            return Err(absurd("a region of the heap"));
        }
        used += top - bottom;
    }
    Ok(used)
}

/// Bytes of the heap that are mapped to be written: what is not committed is not accessible.
pub(super) fn committed(maps: &[Mapping], (start, end): (u64, u64)) -> u64 {
    let inside = maps.iter().filter(|mapping| mapping.start < end && start < mapping.end);
    let accessible = inside.filter(|mapping| mapping.perms.starts_with("rw"));
    accessible.map(|mapping| mapping.end.min(end) - mapping.start.max(start)).sum()
}

/// What G1 counted as committed when it last had a reason to.
///
/// # Errors
/// Where this JVM does not describe it.
pub(super) fn monitored(fields: Fields<'_>, heap: u64) -> Result<u64, Unavailable> {
    let counts = fields.pointer(heap, &["G1CollectedHeap::_monitoring_support", "G1CollectedHeap::_g1mm"])?;
    let parts = ["_eden_space_committed", "_survivor_space_committed", "_old_gen_committed"];
    let parts = parts.map(|part| fields.word(counts, &[&format!("G1MonitoringSupport::{part}")]));
    parts.into_iter().try_fold(0u64, |sum, part| Ok(sum.saturating_add(part?)))
}
