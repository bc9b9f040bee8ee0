//! The regions of G1 (`G1HeapRegionTable`, `HeapRegion`, `G1HeapRegion` since JDK 22; JDK 17–25): one structure,
//! which does not move, per region that was ever in use.

use super::super::Unavailable;
use super::super::memory::words;
use super::fields::{Fields, absurd, unread};
use super::objects::Objects;
use crate::kernel::mapping::Mapping;
use serde::{Deserialize, Serialize};

/// G1 creates about 2,048 of them; this covers 1 TiB in regions of 1 MiB.
const REGIONS_MAX: u64 = 1 << 20;
const BOTTOM: [&str; 2] = ["G1HeapRegion::_bottom", "HeapRegion::_bottom"];
const TOP: [&str; 2] = ["G1HeapRegion::_top", "HeapRegion::_top"];
const END: [&str; 2] = ["G1HeapRegion::_end", "HeapRegion::_end"];
const TYPE: [&str; 2] = ["G1HeapRegion::_type", "HeapRegion::_type"];
const TAG: [&str; 2] = ["G1HeapRegionType::_tag", "HeapRegionType::_tag"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Regions {
    /// Bytes between bottom and top of all regions.
    pub(super) used: u64,
    /// Humongous objects, which have their own regions; `None` if this JVM does not describe which regions these are.
    pub(super) humongous: Option<HumongousRecord>,
}

/// G1 objects of at least half a region, which get their own regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HumongousRecord {
    /// Number of objects.
    pub objects: u64,
    /// Their size.
    pub object_bytes: u64,
    /// Unusable space after them in their regions.
    pub tail_bytes: u64,
    /// Size of a region.
    pub region_bytes: u64,
}

/// The tags that distinguish the kinds of regions (`HeapRegionType::Tag`, JDK 11–27).
#[derive(Clone, Copy)]
struct Tags {
    at: u64,
    starts: u32,
    continues: u32,
}

impl Tags {
    fn of(fields: Fields<'_>) -> Option<Self> {
        let constant = |name: &str| {
            let names = [format!("G1HeapRegionType::{name}"), format!("HeapRegionType::{name}")];
            names.iter().find_map(|name| fields.tables.constant(name).ok()).map(|value| value as u32)
        };
        Some(Self {
            at: fields.tables.offset(&TYPE).ok()?.checked_add(fields.tables.offset(&TAG).ok()?)?,
            starts: constant("StartsHumongousTag")?,
            continues: constant("ContinuesHumongousTag")?,
        })
    }
}

/// Reads all regions; in a free one, bottom and top are equal. Fails if a region does not belong to this heap.
pub(super) fn read(
    fields: Fields<'_>,
    objects: Option<&Objects>,
    heap: u64,
    (start, end): (u64, u64),
    size: u64,
) -> Result<Regions, Unavailable> {
    let regions = fields.place(heap, &["G1CollectedHeap::_hrm"])?;
    let table = fields.place(regions, &["G1HeapRegionManager::_regions", "HeapRegionManager::_regions"])?;
    let (base, length) =
        (fields.pointer(table, &["G1HeapRegionTable::_base"])?, fields.word(table, &["G1HeapRegionTable::_length"])?);
    if length > REGIONS_MAX || Some(end - start) != length.checked_mul(size) {
        return Err(absurd("the table of regions"));
    }
    let mut pointers = vec![0; 8 * length as usize];
    fields.memory.read(base, &mut pointers).then_some(()).ok_or_else(unread)?;
    let tags = Tags::of(fields).filter(|_| objects.is_some());
    // The address of each humongous object, and the bytes of its regions.
    let (mut used, mut humongous) = (0, Vec::<(u64, u64)>::new());
    for (n, region) in (0..).zip(words(&pointers)) {
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
        let Some(tags) = tags else { continue };
        let tag = region.checked_add(tags.at).and_then(|at| fields.memory.u32(at)).ok_or_else(unread)?;
        if tag == tags.starts {
            humongous.push((bottom, size));
        } else if let Some((_, bytes)) = humongous.last_mut().filter(|_| tag == tags.continues) {
            *bytes += size;
        }
    }
    Ok(Regions { used, humongous: tags.and(objects).map(|objects| sum(fields, objects, &humongous, size)) })
}

/// Adds up objects and tails of humongous regions. G1 fills the tail with a dummy object (`fill_with_dummy_object`, JDK
/// 11–27), so the end of the object comes from the object itself. Objects replaced in the meantime are skipped.
fn sum(fields: Fields<'_>, objects: &Objects, humongous: &[(u64, u64)], region_bytes: u64) -> HumongousRecord {
    let mut sum = HumongousRecord { region_bytes, ..HumongousRecord::default() };
    for (object, bytes) in humongous {
        let Some(size) = objects.array_size(fields.memory, *object).filter(|size| size <= bytes) else { continue };
        sum.objects += 1;
        sum.object_bytes += size;
        sum.tail_bytes += bytes - size;
    }
    sum
}

/// Writable bytes of the heap. Memory that is not committed is not accessible.
pub(super) fn committed(maps: &[Mapping], (start, end): (u64, u64)) -> u64 {
    let inside = maps.iter().filter(|mapping| mapping.start < end && start < mapping.end);
    let accessible = inside.filter(|mapping| mapping.perms.starts_with("rw"));
    accessible.map(|mapping| mapping.end.min(end) - mapping.start.max(start)).sum()
}

/// Reads the bytes that G1 counted as committed when it last updated its counters.
pub(super) fn monitored(fields: Fields<'_>, heap: u64) -> Result<u64, Unavailable> {
    let counts = fields.pointer(heap, &["G1CollectedHeap::_monitoring_support", "G1CollectedHeap::_g1mm"])?;
    let parts = ["_eden_space_committed", "_survivor_space_committed", "_old_gen_committed"];
    let parts = parts.map(|part| fields.word(counts, &[&format!("G1MonitoringSupport::{part}")]));
    parts.into_iter().try_fold(0u64, |sum, part| Ok(sum.saturating_add(part?)))
}
