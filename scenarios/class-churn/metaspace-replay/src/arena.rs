//! Allocates blocks in arenas, as metaspace does. An arena takes chunks and fills each one from its start. When the
//! arena dies, its chunks are freed and merged, and their memory is returned to the kernel in granules.
//!
//! Chunk sizes are powers of two, from 1 KiB to 16 MiB; chunks are split and merged as buddies. This is a simple model
//! of JEP 387's metaspace: it neither reuses the unused end of a chunk nor grows a chunk in place.

use super::native::Reservation;
use super::replay::Scheme;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

/// Memory is committed and uncommitted in units of this size, as in the JVM (`commit_granule_bytes` in its log).
const GRANULE: u64 = 64 << 10;
/// The size of the smallest chunk.
const CHUNK_LEAST: u64 = 1 << 10;
/// The number of chunk sizes: powers of two from 1 KiB to 16 MiB, which is enough for a trace's largest block.
const LEVELS: usize = 15;
/// Address space is reserved in units of this size, as in the JVM (`virtual_space_node_default_size`).
const NODE: u64 = 64 << 20;
/// The levels of an arena's first five chunks (4, 4, 4, 8, and 16 KiB); all later chunks use the last level.
const GROWTH: [usize; 5] = [2, 2, 2, 3, 4];
const WORD_BYTES: u64 = 8;

const fn bytes_of(level: usize) -> u64 {
    CHUNK_LEAST << level
}

/// The level of the smallest chunk that can hold this many bytes.
fn level_for(bytes: u64) -> usize {
    bytes.div_ceil(CHUNK_LEAST).next_power_of_two().trailing_zeros() as usize
}

/// Memory that is addressed by offset and consists of contiguous nodes; no chunk spans two nodes.
pub(crate) trait Pages {
    /// Reserves another node.
    fn reserve(&mut self) -> io::Result<()>;
    /// Commits the granules in this range that are not committed yet.
    fn commit(&mut self, granules: Range<u64>) -> io::Result<()>;
    /// Uncommits the granules in this range that are committed.
    fn uncommit(&mut self, granules: Range<u64>) -> io::Result<()>;
    /// Writes to all bytes in this range, which must be committed.
    fn fill(&mut self, bytes: Range<u64>) -> io::Result<()>;
    /// The number of bytes that are currently committed.
    fn committed_bytes(&self) -> u64;
}

/// Pages from the kernel.
#[derive(Default)]
pub(crate) struct Mapped {
    nodes: Vec<Reservation>,
    committed: u64,
}

impl Mapped {
    /// Returns the node that contains a range, and the range relative to the start of the node.
    fn place(&mut self, range: Range<u64>, node_size: u64) -> io::Result<(&mut Reservation, Range<usize>)> {
        let index = (range.start / node_size) as usize;
        let begin = (range.start % node_size) as usize;
        let node = self.nodes.get_mut(index).ok_or(io::ErrorKind::InvalidInput)?;
        Ok((node, begin..begin + (range.end - range.start) as usize))
    }
}

impl Pages for Mapped {
    fn reserve(&mut self) -> io::Result<()> {
        self.nodes.push(Reservation::new((NODE / GRANULE) as usize, GRANULE as usize)?);
        Ok(())
    }

    fn commit(&mut self, granules: Range<u64>) -> io::Result<()> {
        let (node, range) = self.place(granules, NODE / GRANULE)?;
        let count = node.commit(range)?;
        self.committed += count as u64;
        Ok(())
    }

    fn uncommit(&mut self, granules: Range<u64>) -> io::Result<()> {
        let (node, range) = self.place(granules, NODE / GRANULE)?;
        let count = node.uncommit(range)?;
        self.committed -= count as u64;
        Ok(())
    }

    fn fill(&mut self, bytes: Range<u64>) -> io::Result<()> {
        let (node, range) = self.place(bytes, NODE)?;
        node.fill(range)
    }

    fn committed_bytes(&self) -> u64 {
        self.committed * GRANULE
    }
}

/// Free chunks, by size and offset.
struct Chunks<P> {
    pages: P,
    /// The offsets of free chunks, by level; the lowest offset is used first.
    free: [BTreeSet<u64>; LEVELS],
    /// The offset at which the next node will start.
    reserved: u64,
}

impl<P: Pages> Chunks<P> {
    fn take(&mut self, level: usize) -> io::Result<u64> {
        let Some(from) = (level..LEVELS).find(|level| !self.free[*level].is_empty()) else {
            self.pages.reserve()?;
            self.free[LEVELS - 1].extend((self.reserved..self.reserved + NODE).step_by(bytes_of(LEVELS - 1) as usize));
            self.reserved += NODE;
            return self.take(level);
        };
        let at = self.free[from].pop_first().ok_or(io::ErrorKind::InvalidInput)?;
        // Splits the chunk down to `level`, keeping each lower half and freeing the upper one.
        for half in level..from {
            self.free[half].insert(at + bytes_of(half));
        }
        Ok(at)
    }

    fn give(&mut self, mut at: u64, mut level: usize) -> io::Result<()> {
        while level < LEVELS - 1 && self.free[level].remove(&(at ^ bytes_of(level))) {
            at &= !bytes_of(level);
            level += 1;
        }
        self.free[level].insert(at);
        if bytes_of(level) >= GRANULE {
            self.pages.uncommit(at / GRANULE..(at + bytes_of(level)) / GRANULE)?;
        }
        Ok(())
    }
}

/// The chunks of one class loader.
#[derive(Default)]
struct Arena {
    /// The offset and level of each chunk; the last chunk is being filled.
    chunks: Vec<(u64, usize)>,
    /// The number of bytes used in the last chunk.
    used: u64,
}

/// Each arena's blocks, allocated in chunks.
pub(crate) struct Arenas<P> {
    chunks: Chunks<P>,
    arenas: Vec<Arena>,
    /// The total size of the chunks in use, in bytes.
    taken: u64,
}

impl<P: Pages> Arenas<P> {
    pub(crate) fn new(pages: P) -> Self {
        let chunks = Chunks { pages, free: [const { BTreeSet::new() }; LEVELS], reserved: 0 };
        Self { chunks, arenas: Vec::new(), taken: 0 }
    }

    /// Allocates a block, and returns its offset.
    fn place(&mut self, arena: u32, words: u32) -> io::Result<u64> {
        let bytes = u64::from(words) * WORD_BYTES;
        let index = arena as usize;
        if self.arenas.len() <= index {
            self.arenas.resize_with(index + 1, Arena::default);
        }
        let arena = &mut self.arenas[index];
        let room = arena.chunks.last().map_or(0, |(_, level)| bytes_of(*level) - arena.used);
        if room < bytes {
            let level = GROWTH[arena.chunks.len().min(GROWTH.len() - 1)].max(level_for(bytes));
            if level >= LEVELS {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            arena.chunks.push((self.chunks.take(level)?, level));
            arena.used = 0;
            self.taken += bytes_of(level);
        }
        let (chunk, _) = *arena.chunks.last().ok_or(io::ErrorKind::InvalidInput)?;
        let at = chunk + arena.used;
        arena.used += bytes;
        self.chunks.pages.commit(at / GRANULE..(at + bytes).div_ceil(GRANULE))?;
        self.chunks.pages.fill(at..at + bytes)?;
        Ok(at)
    }
}

impl<P: Pages> Scheme for Arenas<P> {
    fn allocate(&mut self, arena: u32, words: u32) -> io::Result<()> {
        self.place(arena, words).map(|_| ())
    }

    fn die(&mut self, arena: u32) -> io::Result<()> {
        let Some(arena) = self.arenas.get_mut(arena as usize) else { return Ok(()) };
        for (at, level) in std::mem::take(arena).chunks {
            self.taken -= bytes_of(level);
            self.chunks.give(at, level)?;
        }
        Ok(())
    }

    fn rest(&mut self) {}

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("chunk_bytes", self.taken), ("committed_bytes", self.chunks.pages.committed_bytes())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Event, WORDS_MAX, tests::events};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Simulates the kernel, and rejects invalid calls.
    #[derive(Default)]
    struct Model {
        reserved: u64,
        committed: BTreeSet<u64>,
    }

    impl Pages for Model {
        fn reserve(&mut self) -> io::Result<()> {
            self.reserved += NODE;
            Ok(())
        }

        fn commit(&mut self, granules: Range<u64>) -> io::Result<()> {
            assert!(granules.end * GRANULE <= self.reserved);
            self.committed.extend(granules);
            Ok(())
        }

        fn uncommit(&mut self, granules: Range<u64>) -> io::Result<()> {
            self.committed.retain(|granule| !granules.contains(granule));
            Ok(())
        }

        fn fill(&mut self, bytes: Range<u64>) -> io::Result<()> {
            assert!((bytes.start / GRANULE..bytes.end.div_ceil(GRANULE)).all(|at| self.committed.contains(&at)));
            assert_eq!(bytes.start / NODE, (bytes.end - 1) / NODE, "a block spans two nodes");
            Ok(())
        }

        fn committed_bytes(&self) -> u64 {
            self.committed.len() as u64 * GRANULE
        }
    }

    /// Live blocks by their start offset, each with its end offset and arena.
    #[derive(Default)]
    struct LiveSet(BTreeMap<u64, (u64, u32)>);

    impl LiveSet {
        fn add(&mut self, at: u64, end: u64, arena: u32) {
            let below = self.0.range(..end).next_back();
            assert!(below.is_none_or(|(_, (below, _))| *below <= at), "{at}..{end} overlaps {below:?}");
            self.0.insert(at, (end, arena));
        }
    }

    /// Replays events on the model. At each mark and at the end, checks that only chunks in use have committed memory.
    fn play(events: &[Event]) -> Arenas<Model> {
        let mut arenas = Arenas::new(Model::default());
        let mut live = LiveSet::default();
        for event in events {
            match event {
                Event::Allocate { arena, words } => {
                    let at = arenas.place(*arena, *words).unwrap();
                    assert_eq!(at % WORD_BYTES, 0);
                    live.add(at, at + u64::from(*words) * WORD_BYTES, *arena);
                }
                Event::Die { arena } => {
                    arenas.die(*arena).unwrap();
                    live.0.retain(|_, (_, of)| of != arena);
                }
                Event::Mark { .. } => check(&arenas, &live),
            }
        }
        check(&arenas, &live);
        arenas
    }

    fn check(arenas: &Arenas<Model>, live: &LiveSet) {
        let granules = |begin: u64, end: u64| begin / GRANULE..end.div_ceil(GRANULE);
        let needed: BTreeSet<u64> = live.0.iter().flat_map(|(at, (end, _))| granules(*at, *end)).collect();
        let committed = &arenas.chunks.pages.committed;
        assert!(needed.is_subset(committed));
        let chunks = || arenas.arenas.iter().flat_map(|arena| &arena.chunks);
        let held: BTreeSet<u64> = chunks().flat_map(|(at, level)| granules(*at, at + bytes_of(*level))).collect();
        assert!(committed.is_subset(&held), "a committed granule contains no chunk in use");
        // Together, used and free chunks cover the reserved memory without gaps or overlaps.
        let free =
            arenas.chunks.free.iter().enumerate().flat_map(|(level, all)| all.iter().map(move |at| (*at, level)));
        let mut all: Vec<_> = chunks().copied().chain(free).collect();
        all.sort_unstable();
        let mut end = 0;
        for (at, level) in all {
            assert_eq!((at, at % bytes_of(level)), (end, 0));
            end += bytes_of(level);
        }
        assert_eq!(end, arenas.chunks.reserved);
        assert_eq!(arenas.taken, chunks().map(|(_, level)| bytes_of(*level)).sum::<u64>());
    }

    #[test]
    fn block_sizes_have_the_right_level() {
        for (bytes, level) in [(8, 0), (1024, 0), (1025, 1), (4096, 2), (16 << 20, 14), ((16 << 20) + 1, 15)] {
            assert_eq!(level_for(bytes), level, "{bytes}");
        }
        let mut arenas = Arenas::new(Model::default());
        arenas.place(0, WORDS_MAX).unwrap();
        assert_eq!(arenas.taken, 16 << 20);
        assert!(arenas.place(0, WORDS_MAX + 1).is_err());
    }

    #[test]
    fn chunks_grow_as_an_arena_grows() {
        let mut arenas = Arenas::new(Model::default());
        (0..6).for_each(|_| arenas.allocate(0, 512).unwrap());
        let levels: Vec<_> = arenas.arenas[0].chunks.iter().map(|(_, level)| *level).collect();
        assert_eq!(levels, [2, 2, 2, 3, 4]);
    }

    #[test]
    fn memory_of_ended_arenas_among_live_ones_is_given_back() {
        let mut arenas = Arenas::new(Mapped::default());
        for arena in 0..50 {
            (0..1000).for_each(|_| arenas.allocate(arena, 100).unwrap());
        }
        let spike = arenas.chunks.pages.committed_bytes();
        assert!(spike >= 50 * 1000 * 800);
        (0..50).filter(|arena| arena % 5 != 0).for_each(|arena| arenas.die(arena).unwrap());
        let valley = arenas.chunks.pages.committed_bytes();
        assert!((0.19..0.25).contains(&(valley as f64 / spike as f64)), "{valley} of {spike}");
        (0..50).for_each(|arena| arenas.die(arena).unwrap());
        assert_eq!(arenas.chunks.pages.committed_bytes(), 0);
        let real: usize = arenas.chunks.pages.nodes.iter().map(Reservation::committed).sum();
        assert_eq!(real, 0);
    }

    proptest! {
        #[test]
        fn blocks_never_overlap_and_free_granules_are_given_back(events in events(400)) {
            let mut arenas = play(&events);
            (0..arenas.arenas.len()).for_each(|arena| arenas.die(arena as u32).unwrap());
            check(&arenas, &LiveSet::default());
            prop_assert_eq!(arenas.chunks.pages.committed_bytes(), 0);
            let whole = arenas.chunks.reserved / bytes_of(LEVELS - 1);
            prop_assert_eq!(arenas.chunks.free[LEVELS - 1].len() as u64, whole);
        }

        #[test]
        fn mapped_memory_behaves_like_the_model(events in events(100)) {
            let (mut real, model) = (Arenas::new(Mapped::default()), play(&events));
            for event in &events {
                match event {
                    Event::Allocate { arena, words } => real.allocate(*arena, *words).unwrap(),
                    Event::Die { arena } => real.die(*arena).unwrap(),
                    Event::Mark { .. } => {}
                }
            }
            prop_assert_eq!(real.counters(), model.counters());
            let committed: usize = real.chunks.pages.nodes.iter().map(Reservation::committed).sum();
            prop_assert_eq!(committed as u64 * GRANULE, model.chunks.pages.committed_bytes());
        }
    }
}
