//! Walks musl's malloc from outside (mallocng of musl 1.2.1–1.2.5, 64-bit little-endian; layouts from
//! `src/malloc/mallocng/meta.h`: `malloc_context`, `meta_area`, `meta`; `mallocng_group` has the contents of groups).
//!
//! Its context has no exported symbol, but is in the data of the C library or of a static program. It begins with a
//! secret that is also in the process's auxiliary vector (`AT_RANDOM`, the second eight bytes). Nothing is assumed:
//! every meta area contains the secret, and groups and metas refer to each other. Only present pages are read.

use super::Unavailable;
use super::glibc::{Chunks, MmappedChunk};
use super::mallocng_group::{self as group, Meta};
pub use super::mallocng_group::{GroupWalk, RequestedAmount};
use super::memory::{Memory, number};
use super::pagemap::{PagesOf, Run};
use super::pointers::words;
use super::procfs::Process;
use crate::kernel::mapping::Mapping;
use loadline_base::order::Order as _;
use std::collections::BTreeSet;

/// The size and alignment of a meta area, regardless of the machine's page size.
const AREA: u64 = 4096;
/// `check`, `next`, `nslots` of `meta_area`, before its metas.
const AREA_HEADER: usize = 24;
/// `nslots` of every area: (4096 − 24) / 40.
const AREA_METAS: u32 = 101;
/// Maximum number of areas followed: 6.6 million groups, more than 100 million of the smallest chunks need.
const AREAS_MAX: usize = 1 << 16;
/// `AT_RANDOM` of the auxiliary vector (man getauxval): the address of 16 random bytes.
const AT_RANDOM: u64 = 25;
/// An auxiliary vector has about twenty pairs of words.
const AUXV_MAX: u64 = 16 << 10;
/// Maximum number of present bytes of library data searched for the context.
const SEARCHED_MAX: u64 = 64 << 20;
/// Words of the context from the secret up to `avail_meta_areas`, in the longer layout.
const CONTEXT_WORDS: usize = 11;
/// Up to this many slots in use may lack a valid header: one for each thread paused inside malloc or free.
const TORN_MIN: u64 = 64;
/// If more slots lack one, at most one slot in this many may.
const TORN_SHARE: u64 = 100;
/// Maximum number of groups walked again: if there are more, the layout is different.
const AGAIN_MAX: usize = 64;
/// At most one in this many groups may be implausible, or a single one.
const BROKEN_SHARE: usize = 20;

/// The location of mallocng's `malloc_context`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Its address.
    pub at: u64,
    /// The first meta area.
    pub head: u64,
    /// The secret that every area begins with.
    secret: u64,
}

/// A group that could not be walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenGroup {
    /// Start address of the range that its meta claims.
    pub start: u64,
    /// End address, exclusive; `start` if the meta does not contain it.
    pub end: u64,
    /// Why.
    pub why: &'static str,
}

/// The result of a walk; the lists are in address order and disjoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// Groups in memory that malloc mapped, including those nested in their slots.
    pub groups: Vec<GroupWalk>,
    /// Groups that musl's loader made in gaps of libraries' data, including those nested in their slots.
    pub donated: Vec<GroupWalk>,
    /// Chunks with their own mapping.
    pub mmapped: Vec<MmappedChunk>,
    /// Pages that contain only metas, start and end address.
    pub areas: Vec<(u64, u64)>,
    /// Groups that could not be walked.
    pub broken: Vec<BrokenGroup>,
    /// The requested sizes of chunks in use.
    pub asked: RequestedAmount,
}

impl Walk {
    /// Number of groups walked, including nested ones.
    pub fn group_count(&self) -> u64 {
        let all = self.groups.iter().chain(&self.donated);
        all.map(|group| group.groups).fold(0, u64::saturating_add)
    }

    /// Bytes taken from the system for groups and metas, resident or not, without chunks that have their own mapping.
    pub fn system(&self) -> u64 {
        let groups = self.groups.iter().map(|group| (group.start, group.end));
        let mapped = groups.chain(self.areas.iter().copied()).map(|(start, end)| end.saturating_sub(start));
        mapped.fold(0, u64::saturating_add)
    }

    /// Chunks in use, with or without NMT's header, except those with their own mapping.
    pub fn live(&self) -> Chunks {
        let mut sum = Chunks::default();
        for group in self.groups.iter().chain(&self.donated) {
            sum += group.live;
            group.tagged.iter().for_each(|(_, chunks)| sum += *chunks);
        }
        sum
    }

    /// Free chunks.
    pub fn free(&self) -> Chunks {
        let mut sum = Chunks::default();
        self.groups.iter().chain(&self.donated).for_each(|group| sum += group.free);
        sum
    }

    /// Resident bytes of whole pages in free chunks, in groups that malloc mapped.
    pub fn free_pages(&self) -> u64 {
        self.groups.iter().map(|group| group.free_pages).fold(0, u64::saturating_add)
    }
}

/// The secret that this process's mallocng would have: the second eight bytes at `AT_RANDOM`. `None` if they cannot be
/// read.
pub fn secret(process: &Process, memory: &dyn Memory, pages_of: &mut PagesOf) -> Result<Option<u64>, Unavailable> {
    let auxv = process.read_below("auxv", AUXV_MAX).map_err(Unavailable::io("auxv"))?;
    Ok(random_at(&auxv).and_then(|at| word(memory, pages_of, at.checked_add(8)?)))
}

/// `AT_RANDOM` of an auxiliary vector: pairs of words, type and value.
fn random_at(auxv: &[u8]) -> Option<u64> {
    let pairs = auxv.chunks_exact(16).map(|pair| (number(&pair[..8]), number(&pair[8..])));
    pairs.take_while(|(kind, _)| *kind != 0).find(|(kind, _)| *kind == AT_RANDOM).map(|(_, at)| at)
}

/// Writable file mappings and the zeroed data after them, start and end address; the context is in one of these. Files
/// selected by `first` come first.
pub fn places(maps: &[Mapping], first: impl Fn(&Mapping) -> bool) -> Vec<(u64, u64)> {
    let (mut likely, mut others) = (Vec::new(), Vec::new());
    let mut file: Option<(&Mapping, u64)> = None;
    for mapping in maps {
        match file {
            _ if mapping.inode != 0 => file = Some((mapping, mapping.end)),
            Some((of, end)) if end == mapping.start && mapping.path.is_empty() => file = Some((of, mapping.end)),
            _ => file = None,
        }
        if let Some((of, _)) = file.filter(|_| &*mapping.perms == "rw-p") {
            let place = (mapping.start, mapping.end);
            if first(of) { likely.push(place) } else { others.push(place) }
        }
    }
    likely.extend(others);
    likely
}

/// Finds the context in these places by its secret; `None` if it is in none.
pub fn find(memory: &dyn Memory, pages_of: &mut PagesOf, places: &[(u64, u64)], secret: u64) -> Option<Context> {
    // A secret of zeros would be found everywhere.
    let mut left = if secret == 0 { 0 } else { SEARCHED_MAX };
    places.iter().find_map(|(start, end)| {
        let (runs, mut found) = (pages_of(*start, *end), None);
        words(memory, &runs, &mut left, &mut |word| {
            if found.is_none() && word.to == secret {
                found = accept(memory, pages_of, word.at, secret);
            }
        });
        found
    })
}

/// The context at this address, if it is one: initialized, with areas whose first and last contain the secret. Builds
/// without a constant page size (aarch64) store that size after the secret.
fn accept(memory: &dyn Memory, pages_of: &mut PagesOf, at: u64, secret: u64) -> Option<Context> {
    let mut words = [0; CONTEXT_WORDS];
    for (n, word) in words.iter_mut().enumerate() {
        *word = self::word(memory, pages_of, at.checked_add(8 * n as u64)?)?;
    }
    [0, 1].into_iter().find_map(|more| {
        let word = |n: usize| words.get(n + more).copied().unwrap_or_default();
        let size_known = more == 0 || words[1].is_power_of_two() && words[1] >= AREA;
        // `init_done` shares its word with `mmap_counter`.
        let begun = word(1) as u32 == 1 && word(4) <= u64::from(AREA_METAS);
        let (head, tail) = (word(7), word(8));
        let mut is_area = |area: u64| read_area(memory, pages_of, area, secret).is_ok();
        (size_known && begun && is_area(head) && is_area(tail)).then_some(Context { at, head, secret })
    })
}

/// Reads an area from memory: its `next`, and its metas.
fn read_area(
    memory: &dyn Memory,
    pages_of: &mut PagesOf,
    at: u64,
    secret: u64,
) -> Result<(u64, Box<[u8; AREA as usize]>), &'static str> {
    if at == 0 || !at.is_multiple_of(AREA) {
        return Err("a meta area at an impossible address");
    }
    let mut bytes = Box::new([0; AREA as usize]);
    if !read_present(memory, pages_of, at, bytes.as_mut_slice()) {
        return Err("a meta area that is not in memory");
    }
    if number(&bytes[..8]) != secret || number(&bytes[16..20]) != u64::from(AREA_METAS) {
        return Err("a meta area without the secret");
    }
    Ok((number(&bytes[8..16]), bytes))
}

fn word(memory: &dyn Memory, pages_of: &mut PagesOf, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    read_present(memory, pages_of, at, &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// Extends a range to whole pages; `None` if that exceeds the address space.
fn whole_pages(memory: &dyn Memory, start: u64, end: u64) -> Option<(u64, u64)> {
    Some((start & !(memory.page() - 1), end.checked_next_multiple_of(memory.page())?))
}

/// Reads memory if all of its pages are present.
fn read_present(memory: &dyn Memory, pages_of: &mut PagesOf, at: u64, into: &mut [u8]) -> bool {
    let Some(end) = at.checked_add(into.len() as u64) else { return false };
    let Some((first, last)) = whole_pages(memory, at, end) else { return false };
    let mut reached = at;
    for run in pages_of(first, last).iter().filter(|run| !run.swapped) {
        if run.start <= reached {
            reached = reached.max(run.end);
        }
    }
    reached >= end && memory.read(at, into)
}

/// The pages that describe a chunk with its own mapping: those with its two headers and with the count at its end. The
/// walk does not need the pages between them.
fn headers_of_alone(memory: &dyn Memory, pages_of: &mut PagesOf, start: u64, end: u64) -> Vec<Run> {
    let header = word(memory, pages_of, start.saturating_add(8)).unwrap_or_default();
    let chunk = start.saturating_add(group::first_chunk(header)).min(end);
    let page = memory.page();
    let told = [start, chunk.saturating_sub(1), chunk, end - 1].into_iter().filter(|at| (start..end).contains(at));
    let pages: BTreeSet<u64> = told.map(|at| at & !(page - 1)).collect();
    pages.into_iter().flat_map(|at| pages_of(at, at.saturating_add(page))).collect()
}

/// Implausible groups are walked again after the threads have run: a thread paused inside malloc leaves a group half
/// built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    First,
    /// The first round has ended, and the second has not begun.
    Between,
    Second,
}

/// A walk in progress: groups are taken one by one, which keeps pauses short.
#[derive(Debug)]
pub struct Walker {
    areas: BTreeSet<u64>,
    /// Metas of groups that are not nested, ordered by group address, the next one last.
    ahead: Vec<Meta>,
    /// Implausible groups: after the first round, to be walked again; after the second, broken.
    refused: Vec<(Meta, BrokenGroup)>,
    round: Round,
    /// End address of the last group of this round.
    end: u64,
    torn: u64,
    found: Walk,
}

impl Walker {
    /// Lists the metas. Areas are only ever added, so the process may keep running. Fails if the list of areas cannot
    /// be followed to its end; the error says why.
    pub fn begin(memory: &dyn Memory, pages_of: &mut PagesOf, context: Context) -> Result<Self, &'static str> {
        let mut areas = BTreeSet::new();
        let mut ahead = Vec::new();
        let mut at = context.head;
        while at != 0 {
            if areas.len() == AREAS_MAX || !areas.insert(at) {
                return Err("an endless list of meta areas");
            }
            let (next, bytes) = read_area(memory, pages_of, at, context.secret)?;
            let slots = bytes[AREA_HEADER..].chunks_exact(Meta::SIZE).take(AREA_METAS as usize);
            let addresses = (at + AREA_HEADER as u64..).step_by(Meta::SIZE);
            let metas = slots.zip(addresses).filter_map(|(bytes, at)| Meta::parse(at, bytes));
            ahead.extend(metas.filter(|meta| !meta.is_nested()));
            at = next;
        }
        ahead.largest_first(|meta| (meta.group, meta.at));
        let mut pages: Vec<_> = areas.iter().filter_map(|area| whole_pages(memory, *area, area + AREA)).collect();
        // A larger page contains several areas.
        pages.dedup();
        let found = Walk { areas: pages, ..Walk::default() };
        Ok(Self { areas, ahead, refused: Vec::new(), round: Round::First, end: 0, torn: 0, found })
    }

    /// Whether threads should run before the next step.
    pub fn waits(&self) -> bool {
        self.round == Round::Between
    }

    /// Walks the next group, whose memory must not change during the step; false if no group is left.
    pub fn step(&mut self, memory: &dyn Memory, pages_of: &mut PagesOf) -> bool {
        let Some(listed) = self.ahead.pop() else { return self.ends_round() };
        if self.round == Round::Between {
            self.round = Round::Second;
        }
        // If the group is gone, its memory is no longer malloc's, and its meta may describe another group.
        let Some(meta) = Meta::read(memory, listed.at).filter(|meta| meta.group == listed.group) else { return true };
        if meta.is_nested() {
            return true;
        }
        if let Err(why) = self.walk(memory, pages_of, meta) {
            let end = meta.end().unwrap_or(meta.group);
            self.refused.push((meta, BrokenGroup { start: meta.group, end, why }));
        }
        true
    }

    /// Walks a group that is not nested. Fails if it is implausible; the error says why.
    fn walk(&mut self, memory: &dyn Memory, pages_of: &mut PagesOf, meta: Meta) -> Result<(), &'static str> {
        let end = meta.check()?;
        if meta.group < self.end || self.is_walked(meta.group, end) {
            return Err("a group inside another");
        }
        self.end = end;
        let runs = match meta.is_alone() {
            true => headers_of_alone(memory, pages_of, meta.group, end),
            false => whole_pages(memory, meta.group, end).map_or_else(Vec::new, |(first, last)| pages_of(first, last)),
        };
        let walked = group::walk(memory, &runs, &self.areas, &meta, end)?;
        self.torn = self.torn.saturating_add(walked.torn);
        self.found.asked += walked.asked;
        match walked.mmapped {
            // The whole last page belongs to the chunk, though musl counts in units of 4 KiB.
            Some(tag) => {
                let end = whole_pages(memory, meta.group, end).map_or(end, |(_, last)| last);
                self.found.mmapped.push(MmappedChunk { start: meta.group, end, tag });
            }
            None if meta.pages > 0 => self.found.groups.push(walked.group),
            None => self.found.donated.push(walked.group),
        }
        Ok(())
    }

    /// Whether the first round has walked part of this range; in the first round, `end` decides.
    fn is_walked(&self, start: u64, end: u64) -> bool {
        let groups = self.found.groups.iter().chain(&self.found.donated).map(|group| (group.start, group.end));
        let mut all = groups.chain(self.found.mmapped.iter().map(|chunk| (chunk.start, chunk.end)));
        self.round == Round::Second && all.any(|walked| walked.0 < end && start < walked.1)
    }

    /// Starts the second round if the first rejected a few groups; false if the walk has ended.
    fn ends_round(&mut self) -> bool {
        let again = self.round == Round::First && (1..=AGAIN_MAX).contains(&self.refused.len());
        if again {
            (self.round, self.end) = (Round::Between, 0);
            self.ahead = std::mem::take(&mut self.refused).into_iter().rev().map(|(meta, _)| meta).collect();
        }
        again
    }

    /// Returns the result of the walk. Fails if so much of the memory is implausible that its layout must be different.
    pub fn finish(mut self) -> Result<Walk, &'static str> {
        self.found.broken = self.refused.into_iter().map(|(_, broken)| broken).collect();
        self.found.groups.order_by_key(|group| group.start);
        self.found.donated.order_by_key(|group| group.start);
        self.found.mmapped.order_by_key(|chunk| chunk.start);
        let walked = self.found.groups.len() + self.found.donated.len() + self.found.mmapped.len();
        let torn = self.torn > TORN_MIN && self.torn.saturating_mul(TORN_SHARE) > self.found.asked.count;
        let broken = self.found.broken.len().saturating_sub(1) * BROKEN_SHARE > walked;
        let nothing = walked == 0 && !self.found.broken.is_empty();
        match torn || broken || nothing {
            true => Err("its groups do not have the layout of musl 1.2.1 to 1.2.5"),
            false => Ok(self.found),
        }
    }
}

#[cfg(test)]
#[path = "mallocng_tests.rs"]
mod tests;
