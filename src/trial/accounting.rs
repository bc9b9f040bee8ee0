//! Reads what an account needs, in the order that costs the JVM least.
//!
//! The JVM is asked first, while it runs. Then its threads are held, if that is wanted and allowed, for as long as the
//! mappings, the pages in question and the heaps of malloc are read. Pages of the Java heap are looked at after that.

use crate::account::{self, Account, Claims, Owner, Plan, Prediction, Question, Said, Seen};
use crate::clock::Clock;
use crate::observe::glibc::{self, Candidate, MmappedChunk, Walk};
use crate::observe::heap_info::HeapInfo;
use crate::observe::hold::Held;
use crate::observe::hsperfdata::HsPerf;
use crate::observe::maps::{self, Allocator};
use crate::observe::memory::ProcessMemory;
use crate::observe::nmt::NativeMemory;
use crate::observe::pagemap::{PageMap, Run};
use crate::observe::procfs::Process;
use crate::observe::smaps::{self, Smaps};
use crate::observe::vm_info::VmInfo;
use crate::observe::{Unavailable, elf, metaspace_nodes, stacks};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is wanted of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Whether threads may be held.
    pub(super) stop: bool,
    /// Whether a full collection has just happened, so that what is used is live.
    pub(super) live: bool,
}

/// An account with all that goes with it.
#[derive(Debug)]
pub(super) struct Accounted {
    pub(super) account: Account,
    pub(super) seen: Seen,
    pub(super) gc: Prediction,
    pub(super) trim: Prediction,
    /// For how long the threads stood still; `None` where they were not held.
    pub(super) pause: Option<Duration>,
    /// From the first question to the last.
    pub(super) took: Duration,
    /// What could not be read, and what that means.
    pub(super) failed: Vec<Unavailable>,
}

/// Asks by `ask`, which sends a diagnostic command and is `None` where the JVM cannot be asked; what fails is added to
/// `failed`. `heap` is the reply to `GC.heap_info`, as text and as values.
///
/// Not `VM.info`, which would name more ranges: it makes HotSpot load its own symbols, which adds 4.1 MB (JDK 17) to
/// 5.0 MB (25) to the subject for good.
pub(super) fn hear(
    ask: impl Fn(&str) -> Option<Result<String, String>>,
    heap: Option<(String, HeapInfo)>,
    nmt: Option<NativeMemory>,
    failed: &mut Vec<String>,
) -> Said {
    let mut reply = |command: &str| {
        let reply = ask(command)?;
        reply.map_err(|why| failed.push(why)).ok()
    };
    let code = reply("Compiler.codecache").unwrap_or_default();
    let nodes = reply("VM.metaspace vslist").map(|text| metaspace_nodes::parse(&text));
    let mut note = |why: Unavailable| failed.push(why.to_string());
    let (heap_text, heap) = heap.unzip();
    Said {
        info: VmInfo::parse(&format!("{}\n{code}", heap_text.unwrap_or_default())).map_err(&mut note).ok(),
        nodes: nodes.and_then(|nodes| nodes.map_err(&mut note).ok()).unwrap_or_default(),
        heap,
        nmt,
        ..Said::default()
    }
}

/// What the last collection left in the heap, from the counters, which move only then; `None` before the first.
pub(super) fn left_by_last_gc(counters: Option<&mut HsPerf>, clock: &Clock) -> Option<u64> {
    let sample = counters?.sample(clock).ok()?.value;
    sample.gc.filter(|gc| gc.count > 0).map(|_| sample.heap_used.0)
}

/// Reads the process and closes its account.
///
/// # Errors
/// Where not even the mappings can be read.
pub(super) fn account(
    process: &Process,
    mut said: Said,
    wanted: Wanted,
    clock: &Clock,
) -> Result<Accounted, Unavailable> {
    let begin_ns = clock.now_ns();
    let maps = maps::read(process, clock)?.value;
    said.images = elf::images(process, &maps);
    said.thread_names = stacks::names(process).unwrap_or_default().into_iter().collect();
    let (seen, pause, mut failed) = see(process, &said, wanted.stop, clock)?;
    let mut account = account::close(&said, &seen);
    let heap_runs = heap_runs(process, &said, &seen.smaps).unwrap_or_else(|why| {
        failed.push(why);
        Vec::new()
    });
    let heap = account.holding(Owner::JavaHeap).map(|holding| (holding.rss, holding.pss));
    if let Some(used) = heap.and_then(|(rss, pss)| account::used_resident(&said, &heap_runs, rss, pss)) {
        account::split_heap(&mut account, used, wanted.live);
    }
    let (gc, trim) = (account::gc(&said, &heap_runs), account::trim(&seen));
    let took = Duration::from_nanos(clock.now_ns().saturating_sub(begin_ns));
    Ok(Accounted { account, seen, gc, trim, pause, took, failed })
}

type Sight = (Seen, Option<Duration>, Vec<Unavailable>);

/// Reads the process, with its threads held where that is wanted and allowed.
fn see(process: &Process, said: &Said, stop: bool, clock: &Clock) -> Result<Sight, Unavailable> {
    // Whatever becomes of it: the end of this thread lets go of every thread it has seized.
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut failed = Vec::new();
            let held = stop.then(|| Held::all_threads(process, clock).map_err(|why| failed.push(why)).ok()).flatten();
            let seen = read(process, said, clock, &mut failed)?;
            let pause = held.map(|held| held.lasted());
            Ok((seen, pause, failed))
        });
        reader.join().unwrap_or_else(|_| Err(Unavailable::new("account", "its reader failed: a bug in Loadline")))
    })
}

/// Everything that must not move while it is read.
fn read(process: &Process, said: &Said, clock: &Clock, failed: &mut Vec<Unavailable>) -> Result<Seen, Unavailable> {
    let stacks = stacks::pointers(process).unwrap_or_else(|why| {
        failed.push(why);
        Vec::new()
    });
    let smaps = smaps::read(process, clock)?.value;
    let maps: Vec<_> = smaps.maps().cloned().collect();
    let claims: Claims = account::claims(said, &maps, &stacks);
    let plan = Plan::new(&smaps, &claims);
    let pages = pages_in_question(process, &smaps, &plan, failed);
    let candidates = candidates(&smaps, &plan, &pages);
    let allocator = smaps.allocator();
    let mut seen = Seen { smaps, plan, allocator: Some(allocator), pages, candidates, stacks, ..Seen::default() };
    if matches!(allocator, Allocator::Glibc | Allocator::Unknown) {
        match ProcessMemory::open(process) {
            Ok(memory) => read_malloc(&memory, &mut seen),
            Err(why) => failed.push(why),
        }
    }
    Ok(seen)
}

/// The present pages of every mapping that has more than one owner, or none that is known.
fn pages_in_question(
    process: &Process,
    smaps: &Smaps,
    plan: &Plan,
    failed: &mut Vec<Unavailable>,
) -> BTreeMap<usize, Vec<Run>> {
    let mut pages = BTreeMap::new();
    let read = |pages: &mut BTreeMap<usize, Vec<Run>>| {
        let mut map = PageMap::open(process)?;
        for planned in plan.mappings.iter().filter(|planned| planned.question != Question::None) {
            let mapping = &smaps.mappings[planned.index].mapping;
            let runs: &mut Vec<Run> = pages.entry(planned.index).or_default();
            map.runs(mapping.start, mapping.end, &mut |run| runs.push(run))?;
        }
        Ok(())
    };
    if let Err(why) = read(&mut pages) {
        failed.push(why);
    }
    pages
}

/// Stretches that may be heaps of malloc; neighbouring parts of `[heap]` are one.
fn candidates(smaps: &Smaps, plan: &Plan, pages: &BTreeMap<usize, Vec<Run>>) -> Vec<(Candidate, Vec<usize>)> {
    let mut candidates: Vec<(Candidate, Vec<usize>)> = Vec::new();
    for planned in plan.mappings.iter().filter(|planned| planned.question == Question::Heap) {
        let mapping = &smaps.mappings[planned.index].mapping;
        let main = mapping.path == "[heap]";
        let runs = pages.get(&planned.index).cloned().unwrap_or_default();
        match candidates.last_mut().filter(|(last, _)| main && last.main && last.end == mapping.start) {
            Some((last, indices)) => {
                last.end = mapping.end;
                last.runs.extend(runs);
                indices.push(planned.index);
            }
            None => {
                let candidate = Candidate { start: mapping.start, end: mapping.end, main, runs };
                candidates.push((candidate, vec![planned.index]));
            }
        }
    }
    candidates
}

/// Walks malloc's heaps, and looks for its chunks in what nobody claims.
fn read_malloc(memory: &ProcessMemory, seen: &mut Seen) {
    let only: Vec<Candidate> = seen.candidates.iter().map(|(candidate, _)| candidate.clone()).collect();
    let walk: Walk = glibc::walk(memory, &only);
    let no_heaps = walk.others.iter().flat_map(|n| seen.candidates[*n].1.iter().copied());
    let asked = seen.plan.mappings.iter().filter(|planned| planned.question == Question::Chunks);
    let indices: Vec<usize> = asked.map(|planned| planned.index).chain(no_heaps).collect();
    for planned in seen.plan.mappings.iter().filter(|planned| indices.contains(&planned.index)) {
        let runs = seen.pages.get(&planned.index).map(Vec::as_slice).unwrap_or_default();
        let unclaimed = planned.segments.iter().filter(|segment| segment.claim.is_none());
        let found = unclaimed.flat_map(|segment| glibc::mmapped(memory, segment.start, segment.end, runs));
        seen.chunks.insert(planned.index, found.collect::<Vec<MmappedChunk>>());
    }
    seen.walk = Some(walk);
}

/// The resident pages of the Java heap.
fn heap_runs(process: &Process, said: &Said, smaps: &Smaps) -> Result<Vec<Run>, Unavailable> {
    let mut runs = Vec::new();
    let Some((start, end)) = said.info.as_ref().and_then(|info| info.heap_reserved) else { return Ok(runs) };
    let mut map = PageMap::open(process)?;
    let holding = smaps.mappings.iter().filter(|weighed| weighed.weight.rss.0 > 0).map(|weighed| &weighed.mapping);
    for mapping in holding.filter(|mapping| mapping.start < end && mapping.end > start) {
        map.runs(mapping.start.max(start), mapping.end.min(end), &mut |run| runs.push(run))?;
    }
    Ok(runs)
}
