//! Turns evidence into an account: the claims, and the entries for each mapping.

use super::claims::{Claim, Claims};
use super::direct::move_chunks;
use super::evidence::{ProcessReadings, Said};
use super::ledger::{Account, Ledger, LedgerEntry};
use super::malloc::{heap_parts, mmapped_parts, musl_parts};
use super::native::NativeEvidence;
use super::plan::{AccountPlan, Planned, Question, Segment};
use super::tables::{Sizes, by_size, ended_stacks, written};
use super::tags::TagNames;
use crate::kernel::mapping::Mapping;
use crate::observe::addresses::{JvmAddresses, Purpose};
use crate::observe::glibc::MmappedChunk;
use crate::observe::heap_info::Collector;
use crate::observe::maps::Allocator;
use crate::observe::nmt_header::Tag;
use crate::observe::pagemap::{self, Run};
use crate::observe::ranges::gaps;
use crate::observe::stacks::ThreadStack;
use crate::owner::Owner;
use std::collections::BTreeMap;

/// glibc never gives a shorter chunk its own mapping (`DEFAULT_MMAP_THRESHOLD_MIN`).
const MMAP_THRESHOLD: u64 = 128 << 10;

/// Returns the claims known before memory is read: the JVM's, the libraries', and the thread stacks. `malloc` contains
/// the ranges known to be malloc's, disjoint and in address order.
pub fn claims(said: &Said, maps: &[Mapping], stacks: &[ThreadStack], malloc: &[(u64, u64)]) -> Claims {
    Claims::settle(named(said, maps, stacks, malloc))
}

/// Like [`claims`], but overlaps are not yet resolved.
pub(super) fn named(said: &Said, maps: &[Mapping], stacks: &[ThreadStack], malloc: &[(u64, u64)]) -> Vec<Claim> {
    let mut list = said_by_jvm(said);
    for image in &said.images {
        let owner = if image.path.ends_with("/libjvm.so") { Owner::Libjvm } else { Owner::Libraries };
        list.push(Claim::new(image.start, image.end, owner, "file", &image.path));
    }
    list.extend(stacks.iter().filter_map(|stack| stack_claim(said, maps, stack, malloc)));
    list
}

/// Returns the named claims, plus claims on ranges that are identified only by their sizes.
fn all_claims(said: &Said, seen: &ProcessReadings) -> Claims {
    let maps: Vec<Mapping> = seen.smaps.maps().cloned().collect();
    let mut list = named(said, &maps, &seen.stacks, &seen.malloc_ranges());
    let mut taken: Vec<Claim> = list.iter().cloned().chain(malloc_claims(seen)).collect();
    let native = &seen.native;
    taken.extend(native.claims(NativeEvidence::is_exact));
    let tables = by_size(&maps, &taken, &sizes(said, seen));
    list.extend(tables.iter().cloned().chain(native.claims(|_| true)));
    taken.extend(tables.into_iter().chain(native.claims(|of| !of.is_exact())));
    list.extend(ended_stacks(&maps, &Claims::settle(taken), seen.smaps.page(), !said.unanswered));
    Claims::settle(list)
}

pub(super) fn malloc_claims(seen: &ProcessReadings) -> Vec<Claim> {
    let chunks = seen.chunks.values().flatten().map(|chunk| (chunk.start, chunk.end));
    let all = seen.main_heaps().chain(chunks).chain(seen.malloc_ranges());
    all.map(|(start, end)| Claim::new(start, end, Owner::MallocMmapped, "", "")).collect()
}

fn said_by_jvm(said: &Said) -> Vec<Claim> {
    let mut list = Vec::new();
    for range in said.info.iter().flat_map(|info| &info.ranges) {
        let (owner, kind) = match range.purpose {
            Purpose::JavaHeap => (Owner::JavaHeap, ""),
            Purpose::CodeCache => (Owner::CodeCache, "code_heap"),
            Purpose::GcTable => (Owner::Gc, "table"),
        };
        list.push(Claim::new(range.start, range.end, owner, kind, &range.name));
    }
    for node in &said.nodes {
        let owner = if node.class_space { Owner::ClassSpace } else { Owner::Metaspace };
        list.push(Claim::new(node.start, node.end, owner, "node", &format!("node at {:#x}", node.start)));
    }
    list
}

/// Claims a thread's stack: the mapping that its stack pointer points into, without the guard. musl maps stacks as it
/// maps its groups, so the kernel may show a stack and a group as one mapping.
fn stack_claim(said: &Said, maps: &[Mapping], stack: &ThreadStack, malloc: &[(u64, u64)]) -> Option<Claim> {
    let pointer = stack.pointer?;
    let mapping = maps.get(maps.partition_point(|mapping| mapping.end <= pointer))?;
    let fits = mapping.start <= pointer && mapping.inode == 0 && &*mapping.path != "[heap]";
    let name = said.thread_names.get(&stack.tid).map_or("thread", String::as_str);
    let above = malloc.partition_point(|(start, _)| *start <= pointer);
    let start = above.checked_sub(1).map_or(mapping.start, |below| malloc[below].1.max(mapping.start));
    let end = malloc.get(above).map_or(mapping.end, |(start, _)| mapping.end.min(*start));
    (fits && start <= pointer).then(|| Claim::new(start, end, Owner::ThreadStacks, "thread", name))
}

fn sizes(said: &Said, seen: &ProcessReadings) -> Sizes {
    let ranges = said.info.iter().flat_map(|info| &info.ranges).filter(|range| range.purpose == Purpose::CodeCache);
    let is = |collector| said.heap.is_some_and(|heap| heap.collector == collector);
    let regions = |info: &JvmAddresses| {
        let (start, end) = info.heap_reserved?;
        end.saturating_sub(start).checked_div(info.region_size?.0)
    };
    Sizes {
        page: seen.smaps.page(),
        code_heaps: ranges.cloned().collect(),
        heap: said.info.as_ref().and_then(|info| info.heap_reserved),
        old: said.heap.and_then(|heap| heap.old).map(|(committed, reserved)| (committed.0, reserved.0)),
        regions: said.info.as_ref().filter(|_| is(Collector::G1)).and_then(regions),
        offsets_written: said.release.is_some_and(|release| release <= 17),
        foreign_malloc: is_foreign(seen),
        unread_malloc: is_unread(seen),
        guarded: is(Collector::Serial) || is(Collector::Parallel),
        parallel: is(Collector::Parallel),
        z: is(Collector::Z),
        named: seen.native.tables.clone(),
    }
}

/// Enters the evidence for every mapping and closes the account.
pub fn close(said: &Said, seen: &ProcessReadings) -> Account {
    let names = tag_names(said, seen);
    let mut ledger = Ledger::new(&seen.smaps);
    let plan = AccountPlan::new(&seen.smaps, &all_claims(said, seen));
    for planned in &plan.mappings {
        let weight = &seen.smaps.mappings[planned.index].weight;
        let all = (weight.rss.0, weight.swap.0);
        let whole = planned.segments.first().and_then(|segment| segment.claim.as_ref());
        match planned.question {
            Question::None => {
                ledger.enter(planned.index, whole.map(|claim| LedgerEntry::of(claim, all)));
            }
            Question::Heap if walked(seen, planned.index) => {}
            Question::Heap if unwalked_heap(seen, planned) => {
                let mapping = &seen.smaps.mappings[planned.index].mapping;
                let claim = unsplit(said, seen, mapping, (mapping.start, mapping.end));
                ledger.enter(planned.index, [LedgerEntry::of(&claim, all)]);
            }
            _ => {
                let parts = |segment| by_pages(said, seen, planned.index, segment, names.as_ref());
                ledger.enter(planned.index, planned.segments.iter().flat_map(parts));
            }
        }
    }
    let whole = |index: &usize| plan.mappings.iter().any(|of| of.index == *index && of.question == Question::Heap);
    for heap in seen.walk.iter().flat_map(|walk| &walk.heaps) {
        let (candidate, mappings) = &seen.candidates[heap.index];
        // The other heaps are parts of mappings that have several owners.
        if !mappings.iter().all(whole) {
            continue;
        }
        let parts = heap_parts(heap, (candidate.start, candidate.end), names.as_ref());
        for (n, index) in mappings.iter().enumerate() {
            // A heap that spans several mappings is divided in proportion; its chunks are counted only in the first.
            let counted = |part: &LedgerEntry| match n {
                0 => part.clone(),
                _ => LedgerEntry { count: 0, allocated: None, ..part.clone() },
            };
            ledger.enter(*index, parts.iter().map(counted));
        }
    }
    let mut account = ledger.close();
    // Tables between unread chunks have no known address.
    if is_unread(seen)
        && let Some(tables) = written(seen.smaps.maps(), &sizes(said, seen))
    {
        let left = tables.saturating_sub(account.rss_of(Owner::Gc));
        move_chunks(&mut account, Owner::MallocUnsplit, Owner::Gc, left);
    }
    account
}

/// Whether the mapping belongs to a heap that was walked completely.
fn walked(seen: &ProcessReadings, index: usize) -> bool {
    seen.walk.iter().flat_map(|walk| &walk.heaps).any(|heap| seen.candidates[heap.index].1.contains(&index))
}

/// Whether the mapping is a glibc heap whose walk failed, or may be one in unreadable memory.
fn unwalked_heap(seen: &ProcessReadings, planned: &Planned) -> bool {
    match &seen.walk {
        Some(walk) => walk.errors.iter().any(|error| seen.candidates[error.index].1.contains(&planned.index)),
        None => seen.allocator == Some(Allocator::Glibc),
    }
}

/// Whether malloc's chunks are unknown.
fn is_unread(seen: &ProcessReadings) -> bool {
    seen.walk.is_none() && seen.musl_walk().is_none()
}

/// Whether the allocator is known not to be glibc's and was not walked.
fn is_foreign(seen: &ProcessReadings) -> bool {
    seen.musl_walk().is_none() && !matches!(seen.allocator, None | Some(Allocator::Glibc | Allocator::Unknown))
}

/// A malloc range that cannot be split, named after its allocator. If the JVM did not report its own mappings, only
/// `[heap]` is known to be malloc's.
fn unsplit(said: &Said, seen: &ProcessReadings, mapping: &Mapping, (start, end): (u64, u64)) -> Claim {
    if said.unanswered && &*mapping.path != "[heap]" {
        return Claim::new(start, end, Owner::Anonymous, "", "");
    }
    let name = seen.allocator.map_or("unknown allocator", Allocator::name);
    Claim::new(start, end, Owner::MallocUnsplit, "allocator", name)
}

/// The parts of a segment in a mapping (`index`) with several owners or no known owner.
fn by_pages(
    said: &Said,
    seen: &ProcessReadings,
    index: usize,
    segment: &Segment,
    names: Option<&TagNames>,
) -> Vec<LedgerEntry> {
    let mapping = &seen.smaps.mappings[index].mapping;
    let unsplit = |start, end| unsplit(said, seen, mapping, (start, end));
    let runs = seen.pages.get(&index).map(Vec::as_slice).unwrap_or_default();
    let backed = |start, end| backed(runs, start, end);
    // Unclaimed memory is attributed to malloc if the allocator's structures are unknown, or if it is long enough to be
    // an unread glibc chunk with its own mapping.
    let is_glibc = seen.allocator == Some(Allocator::Glibc);
    let is_chunk = || is_glibc && is_unread(seen) && segment.end - segment.start >= MMAP_THRESHOLD;
    // Executable memory contains compiled code.
    let may_be = &*mapping.perms == "rw-p" || said.unanswered && mapping.perms.starts_with("rw");
    let of_malloc = may_be && (is_foreign(seen) || is_chunk());
    let of_malloc = of_malloc.then(|| unsplit(segment.start, segment.end));
    if let Some(claim) = segment.claim.as_ref().or(of_malloc.as_ref()) {
        return vec![LedgerEntry::of(claim, backed(segment.start, segment.end))];
    }
    let is_inside = |chunk: &&MmappedChunk| segment.start <= chunk.start && chunk.end <= segment.end;
    let inside: Vec<MmappedChunk> = seen.chunks.get(&index).into_iter().flatten().filter(is_inside).copied().collect();
    let mut parts = mmapped_parts(&inside, names, backed);
    let mut taken: Vec<(u64, u64)> = inside.iter().map(|chunk| (chunk.start, chunk.end)).collect();
    let mut heaps: Vec<_> = seen.heaps().filter(|(_, of)| segment.start <= of.0 && of.1 <= segment.end).collect();
    heaps.sort_unstable_by_key(|(_, range)| *range);
    for (index, range) in heaps {
        let walked = seen.walk.iter().flat_map(|walk| &walk.heaps).find(|heap| heap.index == index);
        match walked {
            Some(heap) => parts.extend(heap_parts(heap, range, names)),
            None => parts.push(LedgerEntry::of(&unsplit(range.0, range.1), backed(range.0, range.1))),
        }
        taken.push(range);
    }
    if let Some(walk) = seen.musl_walk() {
        let (found, ranges) = musl_parts(walk, segment, names, unsplit, backed);
        parts.extend(found);
        taken.extend(ranges);
    }
    taken.sort_unstable();
    // The resident stretches between claims have no owner.
    for (start, end) in gaps(segment.start, segment.end, taken) {
        let (resident, swapped) = backed(start, end);
        if resident > 0 || swapped > 0 {
            parts.push(LedgerEntry::of(&Claim::new(start, end, Owner::Unexplained, "", ""), (resident, swapped)));
        }
    }
    parts
}

/// Present and swapped bytes in `[start, end)`.
pub fn backed(runs: &[Run], start: u64, end: u64) -> (u64, u64) {
    let from = runs.partition_point(|run| run.end <= start);
    pagemap::sum(runs[from..].iter(), start, end)
}

/// Names of NMT's tags, if chunks in use carry tags.
fn tag_names(said: &Said, seen: &ProcessReadings) -> Option<TagNames> {
    let summary = said.nmt.as_ref()?;
    let of_heaps = seen.walk.iter().flat_map(|walk| &walk.heaps).flat_map(|heap| &heap.tagged);
    let of_groups = seen.musl_walk().into_iter().flat_map(|walk| &walk.groups).flat_map(|group| &group.tagged);
    let within = of_heaps.chain(of_groups).map(|(number, chunks)| Tag { number: *number, asked: chunks.asked });
    let alone = seen.chunks.values().flatten().filter_map(|chunk| chunk.tag);
    let mut sums: BTreeMap<u8, u64> = BTreeMap::new();
    for Tag { number, asked } in within.chain(alone) {
        let sum = sums.entry(number).or_default();
        *sum = sum.saturating_add(asked);
    }
    (!sums.is_empty()).then(|| TagNames::align(sums, summary))
}

#[cfg(test)]
#[path = "closing_tests.rs"]
mod tests;
