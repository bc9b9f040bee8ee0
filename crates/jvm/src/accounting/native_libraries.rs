//! Looks for memory mapped by libraries other than the JVM's: reads the libraries' data, any jemalloc inside them, what
//! they point to, and what HotSpot's structures point to. `account::native` decides what counts as evidence. Nothing is
//! read if no such library is loaded.

use super::musl_malloc::{pages_of, sources};
use crate::account::{self, NativeEvidence, NativeMappings, NativeRange, ProcessReadings, Said, Unowned};
use crate::kernel::mapping::Mapping;
use crate::observe::elf::{self, Image};
use crate::observe::jemalloc::{self, Split};
use crate::observe::maps::Allocator;
use crate::observe::memory::ProcessMemory;
use crate::observe::pagemap::{PageMap, Run};
use crate::observe::pointers::{OBJECT, OBJECT_LONG, Pointer, Stretches, through_objects, words};
use crate::observe::procfs::Process;
use crate::observe::ranges::gaps;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of present bytes read from the libraries' own data and the memory that they mapped.
const READ_MAX: u64 = 64 << 20;
/// Search depth: from a library's data to a malloc object, and on to another one.
const OBJECTS_DEEP: u32 = 2;
/// Search depth: from libjvm's data to the heap, to a generation, and to its offset table.
const HOTSPOT_DEEP: u32 = 3;
const PAGE: u64 = 4096;

/// The owner of a stretch, by the library's index.
type Whose = Option<(usize, NativeEvidence)>;

/// Finds memory mapped by libraries other than the JVM's among the memory without an owner.
pub(super) fn look(process: &Process, said: &Said, seen: &ProcessReadings) -> NativeMappings {
    let jvm = said.images.iter().find(|image| image.path.ends_with("/libjvm.so"));
    let jvm_path = jvm.map(|image| image.path.as_str());
    let libraries: Vec<&Image> =
        said.images.iter().filter(|image| account::foreign(&image.path, jvm_path) && !replaces_malloc(image)).collect();
    let unowned = account::unowned(said, seen);
    let mut found = NativeMappings { tables: (!libraries.is_empty()).then(BTreeSet::new), ..NativeMappings::default() };
    let mut whose: Vec<Whose> = vec![None; unowned.len()];
    if !libraries.is_empty()
        && let Ok((memory, map)) = sources(process)
    {
        let stretches = Stretches::new(unowned.iter().map(|of| (of.start, of.end)).collect());
        let mut look =
            LibrarySearch { memory, map, seen, unowned: &unowned, stretches, heaps: heaps(seen), exact: Vec::new() };
        whose = look.whose(&libraries, jvm, &mut found);
    }
    let mut allocators: BTreeMap<usize, Option<&'static str>> = BTreeMap::new();
    let walked: BTreeSet<String> = found.ranges.iter().map(|range| range.of.clone()).collect();
    for (stretch, whose) in unowned.iter().zip(whose) {
        let (start, end) = (stretch.start, stretch.end);
        let range = match (whose, &stretch.name) {
            (Some((library, evidence)), _) => {
                let of = libraries[library].path.clone();
                let name = || if walked.contains(&of) { Some("jemalloc") } else { elf::allocator_named(process, &of) };
                let allocator = *allocators.entry(library).or_insert_with(name);
                NativeRange { start, end, of, allocator, evidence }
            }
            (None, Some(name)) => {
                NativeRange { start, end, of: name.clone(), allocator: None, evidence: NativeEvidence::Name }
            }
            (None, None) => continue,
        };
        found.ranges.push(range);
    }
    found
}

/// Whether this library provides all of malloc, which makes all its mappings malloc's.
fn replaces_malloc(image: &Image) -> bool {
    let name = image.path.rsplit('/').next().unwrap_or_default();
    ["libjemalloc", "libmimalloc", "libtcmalloc"].iter().any(|start| name.starts_with(start))
}

fn heaps(seen: &ProcessReadings) -> Stretches {
    Stretches::new(seen.main_heaps().chain(seen.malloc_ranges()).collect())
}

/// A search in progress.
struct LibrarySearch<'a> {
    memory: ProcessMemory,
    map: PageMap,
    seen: &'a ProcessReadings,
    unowned: &'a [Unowned],
    stretches: Stretches,
    heaps: Stretches,
    /// The ranges that a walked allocator handed out or keeps.
    exact: Vec<(u64, u64)>,
}

impl LibrarySearch<'_> {
    /// Returns the owner of each stretch. Stores exactly known ranges, and those that HotSpot refers to, in `found`.
    fn whose(&mut self, libraries: &[&Image], jvm: Option<&Image>, found: &mut NativeMappings) -> Vec<Whose> {
        let mut whose: Vec<Whose> = vec![None; self.unowned.len()];
        let mut votes: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut roots: Vec<Vec<u64>> = Vec::new();
        let mut left = READ_MAX;
        for (n, library) in libraries.iter().enumerate() {
            let (pointers, objects) = self.data(library, &mut left);
            self.walk_jemalloc(library, &pointers, found);
            pointers.iter().filter_map(|pointer| self.leads_to(pointer.to)).for_each(|stretch| {
                *votes.entry((stretch, n)).or_default() += 1;
            });
            roots.push(objects);
        }
        found.tables = Some(jvm.map(|jvm| self.named_by_hotspot(jvm)).unwrap_or_default());
        let preloaded = self.seen.allocator;
        if !matches!(preloaded, Some(Allocator::Glibc | Allocator::Musl | Allocator::Unknown)) {
            // A stretch that a library points to may belong to malloc, whose structures are unknown.
            return whose;
        }
        let mut most: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
        for ((stretch, library), count) in votes {
            let best = most.entry(stretch).or_insert((count, library));
            *best = if count > best.0 { (count, library) } else { *best };
        }
        most.iter().for_each(|(stretch, (_, library))| whose[*stretch] = Some((*library, NativeEvidence::Data)));
        let mut left = READ_MAX;
        self.spread(most.into_keys().collect(), &mut whose, &mut left);
        let through = self.through_objects(roots, &whose, found.tables.as_ref());
        through.iter().for_each(|(stretch, library)| whose[*stretch] = Some((*library, NativeEvidence::Object)));
        self.spread(through.into_keys().collect(), &mut whose, &mut left);
        // A stray word in HotSpot's objects may point to a library's memory.
        let is_free = |at: &u64| self.stretches.of(*at).is_some_and(|stretch| whose[stretch].is_none());
        found.tables.iter_mut().for_each(|tables| tables.retain(is_free));
        whose
    }

    /// The stretch that a pointer is evidence for. A thread's handle points to the end of its stack.
    fn leads_to(&self, to: u64) -> Option<usize> {
        let stretch = self.stretches.of(to)?;
        (!self.unowned[stretch].like_stack || self.unowned[stretch].start == to).then_some(stretch)
    }

    /// Reads the pointers in a library's own data that point into the stretches or to malloc objects.
    fn data(&mut self, library: &Image, left: &mut u64) -> (Vec<Pointer>, Vec<u64>) {
        let (mut pointers, mut objects) = (Vec::new(), Vec::new());
        for (start, end) in data_of(self.seen.smaps.maps(), library) {
            let runs = pages_of(&mut self.map)(start, end);
            words(&self.memory, &runs, left, &mut |pointer| {
                if self.stretches.of(pointer.to).is_some() {
                    pointers.push(pointer);
                } else if self.heaps.of(pointer.to).is_some() {
                    objects.push(pointer.to);
                }
            });
        }
        (pointers, objects)
    }

    /// Records the extents of this library's jemalloc, if it has one.
    fn walk_jemalloc(&mut self, library: &Image, pointers: &[Pointer], found: &mut NativeMappings) {
        let Some(walk) = jemalloc::walk(&self.memory, &mut pages_of(&mut self.map), pointers) else { return };
        let known = walk.split == Split::Known;
        let mut enter = |start: u64, end: u64, evidence| {
            let range = NativeRange { start, end, of: library.path.clone(), allocator: Some("jemalloc"), evidence };
            match found.ranges.last_mut() {
                // Extents are merged, because a claim for each of 100,000 extents would be wasteful.
                Some(last) if last.end == start && (&last.of, last.evidence) == (&range.of, evidence) => last.end = end,
                _ if start < end => found.ranges.push(range),
                _ => {}
            }
        };
        for extent in walk.extents.iter().filter(|extent| self.stretches.of(extent.start).is_some()) {
            let free = extent.end.saturating_sub(extent.free).max(extent.start);
            match known {
                true => {
                    enter(extent.start, free, NativeEvidence::InUse);
                    enter(free, extent.end, NativeEvidence::Free);
                }
                false => enter(extent.start, extent.end, NativeEvidence::NotSplit),
            }
            self.exact.push((extent.start, extent.end));
        }
    }

    /// If a library's memory points to a stretch, attributes the stretch to that library and continues from there.
    /// Memory that a walked allocator handed out may contain anything and is not read.
    fn spread(&mut self, mut ahead: Vec<usize>, whose: &mut [Whose], left: &mut u64) {
        while let Some(stretch) = ahead.pop() {
            let Some((library, _)) = whose[stretch] else { continue };
            let (start, end) = (self.unowned[stretch].start, self.unowned[stretch].end);
            let runs = outside(&self.exact, pages_of(&mut self.map)(start, end));
            let mut reached = BTreeSet::new();
            words(&self.memory, &runs, left, &mut |pointer| {
                reached.extend(self.leads_to(pointer.to).filter(|to| whose[*to].is_none()));
            });
            for to in reached {
                whose[to] = Some((library, NativeEvidence::Memory));
                ahead.push(to);
            }
        }
    }

    /// The unowned stretches whose first byte is the target of a pointer in a library's object, but not in HotSpot's.
    fn through_objects(
        &mut self,
        roots: Vec<Vec<u64>>,
        whose: &[Whose],
        named: Option<&BTreeSet<u64>>,
    ) -> BTreeMap<usize, usize> {
        let mut found = BTreeMap::new();
        let free = |n: usize| whose[n].is_none() && named.is_none_or(|named| !named.contains(&self.unowned[n].start));
        let free: BTreeSet<u64> = (0..whose.len()).filter(|n| free(*n)).map(|n| self.unowned[n].start).collect();
        for (library, roots) in roots.into_iter().enumerate().filter(|_| !free.is_empty()) {
            let mut pages = pages_of(&mut self.map);
            through_objects(
                &self.memory,
                &mut pages,
                roots,
                &self.heaps,
                (OBJECTS_DEEP, OBJECT_LONG),
                &mut |pointer| {
                    if free.contains(&pointer.to)
                        && let Some(stretch) = self.stretches.of(pointer.to)
                    {
                        found.entry(stretch).or_insert(library);
                    }
                },
            );
        }
        found
    }

    /// First addresses of pages in these stretches that HotSpot's own structures refer to.
    fn named_by_hotspot(&mut self, jvm: &Image) -> BTreeSet<u64> {
        let mut left = READ_MAX;
        let (pointers, objects) = self.data(jvm, &mut left);
        let mut named: BTreeSet<u64> = pointers.into_iter().map(|pointer| pointer.to).collect();
        let mut pages = pages_of(&mut self.map);
        through_objects(&self.memory, &mut pages, objects, &self.heaps, (HOTSPOT_DEEP, OBJECT), &mut |pointer| {
            if self.stretches.of(pointer.to).is_some() {
                named.insert(pointer.to);
            }
        });
        named.retain(|at| at.is_multiple_of(PAGE));
        named
    }
}

/// The writable parts of a library: `.data` and `.bss`. The kernel merges `.bss` with anonymous memory that follows it;
/// only the part within the library is its data.
fn data_of<'a>(maps: impl Iterator<Item = &'a Mapping>, library: &Image) -> Vec<(u64, u64)> {
    let writable = maps.filter(|mapping| &*mapping.perms == "rw-p");
    let within = writable.map(|mapping| (mapping.start.max(library.start), mapping.end.min(library.end)));
    within.filter(|(start, end)| start < end).collect()
}

/// Returns the parts of these runs outside all the ranges, which are in address order per library.
fn outside(exact: &[(u64, u64)], runs: Vec<Run>) -> Vec<Run> {
    let exact = Stretches::new(exact.to_vec());
    let parts = |run: Run| {
        let from = exact.all().partition_point(|(_, end)| *end <= run.start);
        let within = exact.all()[from..].iter().copied().take_while(move |(start, _)| *start < run.end);
        gaps(run.start, run.end, within).map(move |(start, end)| Run { start, end, ..run })
    };
    runs.into_iter().flat_map(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mapping::parse;

    #[test]
    fn library_data_ends_with_the_library() {
        let maps = parse(
            "1000-3000 rw-p 0 00:00 0\n3000-5000 r-xp 0 08:01 7 /lib/libjvm.so\n5000-6000 rw-p 0 08:01 7 /lib/libjvm.so\n\
             6000-f000 rw-p 0 00:00 0\nf000-11000 rw-p 0 00:00 0\n",
        );
        let library = Image { start: 0x3000, end: 0x8000, path: "/lib/libjvm.so".to_owned() };
        assert_eq!(data_of(maps.iter(), &library), [(0x5000, 0x6000), (0x6000, 0x8000)]);
    }

    #[test]
    fn allocated_ranges_are_excluded() {
        let run = |start, end| Run { start, end, swapped: false };
        let found = outside(&[(10, 20), (30, 40), (90, 99)], vec![run(0, 35), run(50, 60), run(91, 95)]);
        assert_eq!(found, [run(0, 10), run(20, 30), run(50, 60)]);
    }
}
