//! What an account needs to know of a JVM, from HotSpot's own tables: nothing is asked of it, nothing is added to it. It
//! is what `accounting::hear` hears where the JVM has to be asked.

use super::accounting::Heard;
use crate::clock::Clock;
use crate::kernel::mapping::Mapping;
use crate::observe::addresses::JvmAddresses;
use crate::observe::heap_info::Collector;
use crate::observe::hotspot::HotSpot;
use crate::observe::hotspot::flags::Flags;
use crate::observe::hotspot::{code, heap, loaders, metaspace};
use crate::observe::procfs::Process;
use crate::observe::untouched::Untouched;
use crate::observe::{Unavailable, maps};

/// A reading that the JVM contradicts meanwhile is made again.
const TRIES: usize = 5;

/// The tables of one JVM.
#[derive(Debug)]
pub(crate) struct JvmTables {
    hotspot: HotSpot,
}

impl JvmTables {
    /// Looks for them: some 10 ms, once.
    ///
    /// # Errors
    /// Where there are none, or memory may not be read.
    pub(crate) fn find(process: &Process, clock: &Clock) -> Result<Self, Unavailable> {
        let maps = maps::read(process, clock)?.value;
        Ok(Self { hotspot: HotSpot::find(process, &maps)? })
    }

    /// Every flag in force.
    ///
    /// # Errors
    /// Where this JVM keeps its flags in another way.
    pub(crate) fn flags(&self, process: &Process, clock: &Clock) -> Result<Flags, Unavailable> {
        let maps = maps::read(process, clock)?.value;
        Flags::read(&Untouched::open(process, &maps)?, &self.hotspot.tables)
    }

    /// Reads all of it, again where the JVM was changing it.
    ///
    /// # Errors
    /// What could not be read, and why; then the JVM has to be asked.
    pub(crate) fn read(&self, process: &Process, flags: &Flags, clock: &Clock) -> Result<Heard, Unavailable> {
        let mut tries = (0..TRIES).map(|_| self.once(process, flags, clock));
        let mut last = tries.next().unwrap_or_else(|| Err(Unavailable::new("HotSpot's tables", "it was not tried")));
        while last.as_ref().is_err_and(|why| why.is_early) {
            let Some(next) = tries.next() else { break };
            last = next;
        }
        last
    }

    fn once(&self, process: &Process, flags: &Flags, clock: &Clock) -> Result<Heard, Unavailable> {
        let maps = maps::read(process, clock)?.value;
        let (memory, tables) = (Untouched::open(process, &maps)?, &self.hotspot.tables);
        let read = heap::read(&memory, tables, flags, &maps)?;
        let nodes = metaspace::nodes(&memory, self.hotspot.metaspace_at)?;
        let unloadable = loaders::may_be_garbage(&memory, &self.hotspot, flags, &nodes)?;
        let addresses = JvmAddresses {
            ranges: code::heaps(&memory, tables)?,
            heap_reserved: read.reserved,
            used_ranges: read.used_ranges,
            region_size: read.region_size,
        };
        let is_shenandoah = read.info.collector == Collector::Shenandoah;
        let map = addresses.heap_reserved.zip(addresses.region_size).filter(|_| is_shenandoah);
        let map = map.and_then(|((_, end), region)| collection_set_map(&maps, end, region.0));
        let (info, heap) = (Some(JvmAddresses::of(addresses, map)), Some(read.info));
        Ok(Heard { info, nodes, unloadable: Some(unloadable.0), heap })
    }
}

/// Where Shenandoah keeps a byte for each region that would fit below the end of its heap: at the first power of two that
/// was free, up to 1 GiB (`shenandoahHeap.cpp`). It is known by its length and by nothing before it.
fn collection_set_map(maps: &[Mapping], heap_end: u64, region: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    let length = heap_end.checked_div(region)?.checked_next_multiple_of(PAGE)?;
    let powers = (12..=30).map(|bit| 1u64 << bit);
    powers.into_iter().find(|start| {
        let first = maps.iter().position(|mapping| mapping.start == *start);
        let Some(first) = first else { return false };
        let mut end = *start;
        for mapping in maps[first..].iter().take_while(|mapping| mapping.inode == 0 && mapping.path.is_empty()) {
            if mapping.start != end {
                break;
            }
            end = mapping.end;
        }
        end == start + length
    })
}
