//! Reads musl's malloc group by group while threads are paused; `accounting` decides when, as for glibc's heaps.

use super::turns::RUN_ON;
use crate::account::ProcessReadings;
use crate::observe::Unavailable;
use crate::observe::mallocng::{self, Walk, Walker};
use crate::observe::maps::Allocator;
use crate::observe::memory::ProcessMemory;
use crate::observe::pagemap::{PageMap, PagesOf};
use crate::observe::procfs::Process;
use crate::observe::smaps::Smaps;
use std::time::Duration;

/// The malloc of a process on musl during the walk.
pub(super) struct MuslMalloc {
    memory: ProcessMemory,
    map: PageMap,
    /// The walk, or why it is not possible.
    walker: Result<Walker, &'static str>,
    done: bool,
}

impl MuslMalloc {
    /// Finds musl's malloc by its secret, in the data of the C library or of a statically linked program. `None` if
    /// malloc is not musl's or cannot be read.
    pub(super) fn find(
        process: &Process,
        smaps: &Smaps,
        allocator: Allocator,
        failed: &mut Vec<Unavailable>,
    ) -> Option<Self> {
        let is_musl = match allocator {
            Allocator::Musl => true,
            Allocator::Unknown => false,
            _ => return None,
        };
        // If the allocator is unknown, the walk of glibc's heaps reports what cannot be read.
        let (memory, mut map) = sources(process).map_err(|why| failed.extend(is_musl.then_some(why))).ok()?;
        let maps: Vec<_> = smaps.maps().cloned().collect();
        let places = mallocng::places(&maps, |mapping| Allocator::of([mapping]) == Allocator::Musl);
        let secret = mallocng::secret(process, &memory, &mut pages_of(&mut map));
        let context = secret.map(|secret| mallocng::find(&memory, &mut pages_of(&mut map), &places, secret?));
        let walker = match context {
            Ok(Some(context)) => Walker::begin(&memory, &mut pages_of(&mut map), context),
            Ok(None) if is_musl => Err("its context does not match musl 1.2.1 to 1.2.5"),
            Ok(None) => return None,
            Err(why) => {
                failed.extend(is_musl.then_some(why));
                return None;
            }
        };
        Some(Self { memory, map, walker, done: false })
    }

    pub(super) fn is_done(&self) -> bool {
        self.done || self.walker.is_err()
    }

    /// How long threads should run before the next group is walked.
    pub(super) fn run_on(&self) -> Duration {
        if self.walker.as_ref().is_ok_and(Walker::waits) { RUN_ON } else { Duration::ZERO }
    }

    pub(super) fn walk_next(&mut self) {
        if let Ok(walker) = &mut self.walker {
            self.done = !walker.step(&self.memory, &mut pages_of(&mut self.map));
        }
    }

    /// Returns the result of the walk, or why it cannot be trusted.
    pub(super) fn finish(self) -> Result<Walk, &'static str> {
        self.walker.and_then(Walker::finish)
    }
}

pub(super) fn sources(process: &Process) -> Result<(ProcessMemory, PageMap), Unavailable> {
    Ok((ProcessMemory::open(process)?, PageMap::open(process)?))
}

/// The current pages of a range. Empty if they cannot be read; the walk then reads no memory of the range.
pub(super) fn pages_of(map: &mut PageMap) -> Box<PagesOf<'_>> {
    Box::new(|start, end| map.list(start, end).unwrap_or_default())
}

/// Adds musl's chunks with their own mappings to the same list as glibc's.
pub(super) fn enter_mmapped(seen: &mut ProcessReadings) {
    for chunk in seen.musl.iter().flatten().flat_map(|walk| &walk.mmapped) {
        let mappings = &seen.smaps.mappings;
        let index = mappings.partition_point(|weighed| weighed.mapping.end <= chunk.start);
        let fits = mappings.get(index).is_some_and(|of| of.mapping.start <= chunk.start && chunk.end <= of.mapping.end);
        if fits {
            seen.chunks.entry(index).or_default().push(*chunk);
        }
    }
}
