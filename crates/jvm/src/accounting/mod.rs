//! Takes the readings for an account, in the order that costs the JVM least.
//!
//! First, the JVM is queried, and its mappings are weighed while it runs. Then, if requested and allowed, its threads
//! are paused while malloc's heaps are walked a few at a time. The remaining pages are read last.

mod allocation;
mod musl_malloc;
mod native_libraries;
mod tables;
mod turns;

pub use allocation::{AllocatedBy, AllocatedSoFar, Allocation, told as allocated_as_told};
pub use tables::{JvmTables, Look, TablesRead};

use crate::account::{self, Account, AccountPlan, Owner, Prediction, ProcessReadings, Question, Said};
use crate::kernel::mapping::Mapping;
use crate::kernel::process::page_size;
use crate::observe::addresses::JvmAddresses;
use crate::observe::glibc::{self, HEAP_MAX, HeapCandidate, Layout};
use crate::observe::heap_info::HeapInfo;
use crate::observe::hold::Held;
use crate::observe::hsperfdata::Counters;
use crate::observe::maps::{self, Allocator};
use crate::observe::memory::ProcessMemory;
use crate::observe::pagemap::{PageMap, Run};
use crate::observe::procfs::Process;
use crate::observe::ranges::gaps;
use crate::observe::smaps::{self, Smaps};
use crate::observe::stacks::ThreadStack;
use crate::observe::{Unavailable, class_loaders, code_heaps, elf, metaspace_nodes, stacks};
use loadline_base::clock::Clock;
use loadline_base::units::Bytes;
use musl_malloc::{MuslMalloc, sources};
use std::collections::BTreeMap;
use std::time::Duration;
use turns::Turns;

/// The only commands that the JVM answers in a safepoint, which takes about a millisecond.
pub const IN_SAFEPOINT: [&str; 2] = [METASPACE, CLASS_LOADERS];
const METASPACE: &str = "VM.metaspace vslist";
const CLASS_LOADERS: &str = "VM.classloader_stats";

/// A request for an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Whether threads may be paused.
    pub stop: bool,
    /// Whether a full collection has just finished, so all used memory is live.
    pub live: bool,
}

/// An account with its related data.
#[derive(Debug)]
pub struct Accounted {
    /// The owners, which add up to the RSS.
    pub account: Account,
    /// The readings that it is based on.
    pub seen: ProcessReadings,
    /// The effect that a full collection would have.
    pub gc: Prediction,
    /// The effect that trimming malloc would have.
    pub trim: Prediction,
    /// How long the threads were paused; `None` if they were not.
    pub pause: Option<Duration>,
    /// The time from the first query to the last.
    pub took: Duration,
    /// The sources that could not be read, with the consequences.
    pub failed: Vec<Unavailable>,
}

/// `ask` sends a diagnostic command and is `None` if the JVM cannot be asked; failures are added to `failed`. `heap` is
/// the reply to `GC.heap_info`, as text and as values.
///
/// `VM.info` would name more ranges but makes HotSpot load its own symbols, which permanently adds 4.1 MB (JDK 17) to
/// 5.0 MB (25) to the subject.
pub fn read_vm_state(
    ask: impl Fn(&str) -> Option<Result<String, String>>,
    heap: Option<(String, HeapInfo)>,
    failed: &mut Vec<String>,
) -> Said {
    let mut reply = |command: &str| {
        let reply = ask(command)?;
        reply.map_err(|why| failed.push(why)).ok()
    };
    let code = reply("Compiler.codecache");
    let nodes = reply(METASPACE).map(|text| metaspace_nodes::parse(&text));
    let loaders = reply(CLASS_LOADERS);
    let mut note = |why: Unavailable| failed.push(why.to_string());
    let (heap_text, heap) = heap.unzip();
    let nodes = nodes.and_then(|nodes| nodes.map_err(&mut note).ok()).unwrap_or_default();
    let committed = Bytes(nodes.iter().map(|node| node.committed.0).fold(0, u64::saturating_add));
    let loaders = loaders.map(|text| class_loaders::in_bytes(class_loaders::parse(&text), committed));
    let unloadable = loaders.as_ref().map(|loaders| class_loaders::leaves(loaders));
    let loaders = loaders.filter(|_| committed.0 > 0);
    let is_told = heap.is_some() || code.is_some();
    let code = code.unwrap_or_default();
    let text = format!("{}\n{code}", heap_text.unwrap_or_default());
    let info = is_told.then(|| JvmAddresses::parse(&text, page_size().0).map_err(&mut note).ok()).flatten();
    let (unanswered, code_heaps) = (!is_told && nodes.is_empty(), code_heaps::parse(&code));
    Said { info, nodes, unloadable, loaders, code_heaps, heap, unanswered, ..Said::default() }
}

/// Returns the bytes that the last collection left in the heap, from the counters for the old generation and the
/// survivors. `None` before the first collection. (With G1, eden's counter also changes between collections.)
pub fn left_by_last_gc(counters: &Counters) -> Option<u64> {
    counters.sample().gc.filter(|gc| gc.count > 0)?;
    let used = |generation: u32, space: u32| {
        let name = format!("sun.gc.generation.{generation}.space.{space}.used");
        counters.number(&name).and_then(|bytes| u64::try_from(bytes).ok())
    };
    // Young: eden, then the survivors. Old: one space.
    Some(used(1, 0)? + used(0, 1).unwrap_or(0) + used(0, 2).unwrap_or(0))
}

/// Full collections so far, for the collectors that count them separately (Serial, Parallel, G1).
pub fn full_collections(counters: &Counters) -> Option<u64> {
    counters.collections().get(1).map(|kind| kind.count)
}

/// Reads the process and closes its account. Fails if not even the mappings can be read.
pub fn account(process: &Process, mut said: Said, wanted: Wanted, clock: &Clock) -> Result<Accounted, Unavailable> {
    let begin_ns = clock.now_ns();
    let maps = maps::read(process, clock)?.value;
    if said.unanswered {
        said.info = said.heap_sizes.and_then(|sizes| account::located_by_size(&maps, &sizes));
    }
    said.images = elf::images(process, &maps);
    said.thread_names = stacks::names(process).unwrap_or_default().into_iter().collect();
    let (mut account, (seen, pause, mut failed)) = close_at_rest(process, &said, wanted.stop, clock)?;
    let heap_runs = heap_runs(process, &said, &seen.smaps).map_err(|why| failed.push(why)).unwrap_or_default();
    let heap = account.holding(Owner::JavaHeap).map(|holding| (holding.rss, holding.pss));
    if let Some(used) = heap.and_then(|heap| account::used_resident(&said, &heap_runs, seen.smaps.page(), heap)) {
        account::split_heap(&mut account, used, wanted.live);
    }
    if let Some(direct) = said.direct.filter(|direct| *direct > 0) {
        account::split_direct(&mut account, direct);
    }
    let gc = account::gc(&said, &seen.smaps, &heap_runs, account.rss_of(Owner::Gc));
    let trim = account::trim(&seen);
    let took = Duration::from_nanos(clock.now_ns().saturating_sub(begin_ns));
    Ok(Accounted { account, seen, gc, trim, pause, took, failed })
}

/// An account is repeated if more than this share of RSS disappears during it.
const GONE_MAX: f64 = 0.0005;
/// Maximum number of readings for one account: if memory keeps disappearing, the last one counts.
const LOOKS_MAX: u32 = 3;

/// Reads the process and closes the account. Repeats both if too much unowned memory disappears in between.
fn close_at_rest(process: &Process, said: &Said, stop: bool, clock: &Clock) -> Result<(Account, Sight), Unavailable> {
    let mut looks = 1;
    loop {
        let sight = see(process, said, stop, clock)?;
        let account = account::close(said, &sight.0);
        let now = maps::read(process, clock)?.value;
        let gone = account.gone(&sight.0.smaps, &now);
        if looks == LOOKS_MAX || gone as f64 <= account.rss as f64 * GONE_MAX {
            return Ok((account, sight));
        }
        looks += 1;
    }
}

type Sight = (ProcessReadings, Option<Duration>, Vec<Unavailable>);

/// Reads the process. Only malloc's heaps must not change while they are read; they are walked a few at a time with all
/// threads paused, which keeps each pause short.
fn see(process: &Process, said: &Said, stop: bool, clock: &Clock) -> Result<Sight, Unavailable> {
    let mut failed = Vec::new();
    let smaps = smaps::read(process, clock)?.value;
    let maps: Vec<_> = smaps.maps().cloned().collect();
    let mut allocator = smaps.allocator();
    let musl = MuslMalloc::find(process, &smaps, allocator, &mut failed);
    if musl.is_some() {
        allocator = Allocator::Musl;
    }
    let before = AccountPlan::new(&smaps, &account::claims(said, &maps, &[], &[]));
    let mut heaps = Heaps { musl, ..Heaps::new(process, &smaps, &before, allocator, &mut failed) };
    // Whatever the result, every thread that the reader thread has seized is released when it ends.
    let (stacks, pause) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| heaps.walk(process, stop, clock, &mut failed));
        reader.join().map_err(|_| Unavailable::new("account", "its reader failed: a bug in Loadline"))
    })?;
    let musl = heaps.musl.take().map(MuslMalloc::finish);
    let mut seen = ProcessReadings { smaps, allocator: Some(allocator), stacks, musl, ..ProcessReadings::default() };
    musl_malloc::enter_mmapped(&mut seen);
    let memory = heaps.finish(&mut seen);
    let malloc = seen.malloc_ranges();
    let plan = AccountPlan::new(&seen.smaps, &account::claims(said, &maps, &seen.stacks, &malloc));
    seen.pages = pages_in_question(process, &seen.smaps, &plan, &mut failed);
    if let Some(memory) = memory {
        enter_mmapped(&memory, &plan, &malloc, &mut seen);
    }
    seen.native = native_libraries::look(process, said, &seen);
    Ok((seen, pause, failed))
}

/// The longest pause, unless a single heap of up to [`HEAP_MAX`] takes longer.
const PAUSE_MAX: Duration = Duration::from_millis(4);
/// Between two pauses, threads run for this many times the duration of the last one.
const RUN_TIMES: u32 = 2;

/// malloc's heaps during the walk.
struct Heaps {
    /// `None` if memory or pages cannot be read, or malloc is not glibc's.
    sources: Option<(ProcessMemory, PageMap)>,
    candidates: Vec<HeapCandidate>,
    /// The mappings of each candidate.
    mappings: Vec<Vec<usize>>,
    turns: Turns,
    layout: Option<Layout>,
    /// Used instead if malloc is musl's.
    musl: Option<MuslMalloc>,
}

impl Heaps {
    fn new(
        process: &Process,
        smaps: &Smaps,
        plan: &AccountPlan,
        allocator: Allocator,
        failed: &mut Vec<Unavailable>,
    ) -> Self {
        let readable = matches!(allocator, Allocator::Glibc | Allocator::Unknown) && !process.is_copied();
        let sources = readable.then(|| sources(process).map_err(|why| failed.push(why)).ok()).flatten();
        let (candidates, mappings) = candidates(smaps, plan);
        let turns = Turns::of(if sources.is_some() { candidates.len() } else { 0 });
        Self { sources, candidates, mappings, turns, layout: None, musl: None }
    }

    /// Walks all heaps and finds the stacks; returns the longest pause.
    fn walk(
        &mut self,
        process: &Process,
        stop: bool,
        clock: &Clock,
        failed: &mut Vec<Unavailable>,
    ) -> (Vec<ThreadStack>, Option<Duration>) {
        let (mut pause, mut stop, mut stacks) = (None::<Duration>, stop, None);
        loop {
            // A heap that would take a long time is walked without a pause; if it changes, its walk fails.
            let hold = stop && !(stacks.is_some() && self.next_is_large());
            let held = hold.then(|| Held::all_threads(process, clock).map_err(|why| failed.push(why)).ok()).flatten();
            // If pausing fails once, it is not tried again.
            stop = stop && (held.is_some() || !hold);
            if stacks.is_none() {
                stacks = Some(stacks::pointers(process).map_err(|why| failed.push(why)).unwrap_or_default());
                self.find_layout();
            }
            while !self.is_done() {
                let large = self.next_is_large();
                if large && held.is_some() {
                    break;
                }
                self.walk_next(process, clock);
                let is_long = held.as_ref().is_some_and(|held| held.lasted() > PAUSE_MAX);
                if large && stop || is_long || !self.run_on().is_zero() {
                    break;
                }
            }
            let lasted = held.map(|held| held.lasted());
            pause = pause.max(lasted);
            if self.is_done() {
                return (stacks.unwrap_or_default(), pause);
            }
            clock.sleep((lasted.unwrap_or_default() * RUN_TIMES).max(self.run_on()));
        }
    }

    fn is_done(&self) -> bool {
        self.musl.as_ref().map_or(self.turns.next().is_none(), MuslMalloc::is_done)
    }

    /// How long threads should run before a failed walk is repeated.
    fn run_on(&self) -> Duration {
        self.musl.as_ref().map_or_else(|| self.turns.run_on(), MuslMalloc::run_on)
    }

    /// Whether the next heap is larger than any heap except the main one can be.
    fn next_is_large(&self) -> bool {
        self.musl.is_none()
            && self.turns.next().is_some_and(|next| {
                let next = &self.candidates[next];
                next.end.saturating_sub(next.start) > HEAP_MAX
            })
    }

    /// Finds the layout of this glibc from the candidates' contents, and drops those that are not heaps.
    fn find_layout(&mut self) {
        let Some((memory, map)) = self.sources.as_mut() else { return };
        for candidate in &mut self.candidates {
            refresh(map, candidate, candidate.start + page_size().0);
            if !candidate.main && glibc::accessible(memory, candidate).is_some() {
                refresh(map, candidate, candidate.end);
            }
        }
        self.layout = Layout::find(memory, &self.candidates);
    }

    fn walk_next(&mut self, process: &Process, clock: &Clock) {
        if let Some(musl) = &mut self.musl {
            return musl.walk_next();
        }
        let (Some(index), Some((memory, map))) = (self.turns.next(), self.sources.as_mut()) else { return };
        let candidate = &mut self.candidates[index];
        let most = match candidate.main {
            true => end_of_main(process, clock, candidate.start).unwrap_or(candidate.end),
            false => candidate.start.saturating_add(HEAP_MAX),
        };
        refresh(map, candidate, most);
        let accessible = glibc::accessible(memory, candidate).filter(|_| !candidate.main);
        candidate.end = accessible.map_or(most, |bytes| candidate.start.saturating_add(bytes));
        if let Some(base) = glibc::arena_base(memory, &self.candidates[index]) {
            let owner = self.candidates.iter_mut().enumerate().find(|(n, owner)| *n != index && owner.start == base);
            if let Some((_, owner)) = owner {
                refresh(map, owner, owner.start + page_size().0);
            }
        }
        let walked = glibc::walk_one(memory, &self.candidates, self.layout, index);
        self.turns.take(walked);
    }

    /// Adds the results to the evidence; returns the memory, if it can be read.
    fn finish(self, seen: &mut ProcessReadings) -> Option<ProcessMemory> {
        if let Some((memory, _)) = &self.sources {
            seen.walk = Some(glibc::conclude(memory, &self.candidates, self.layout, self.turns.finish()));
        }
        seen.candidates = self.candidates.into_iter().zip(self.mappings).collect();
        self.sources.map(|(memory, _)| memory)
    }
}

/// Records glibc's chunks with their own mappings in memory that has no other owner.
fn enter_mmapped(memory: &ProcessMemory, plan: &AccountPlan, heaps: &[(u64, u64)], seen: &mut ProcessReadings) {
    for planned in plan.mappings.iter().filter(|planned| planned.question != Question::None) {
        let runs = seen.pages.get(&planned.index).map(Vec::as_slice).unwrap_or_default();
        let mut found = Vec::new();
        for segment in planned.segments.iter().filter(|segment| segment.claim.is_none()) {
            let inside = heaps.iter().copied().filter(|heap| segment.start <= heap.0 && heap.1 <= segment.end);
            let free = gaps(segment.start, segment.end, inside);
            found.extend(free.flat_map(|(start, end)| glibc::mmapped(memory, start, end, runs)));
        }
        if !found.is_empty() {
            seen.chunks.insert(planned.index, found);
        }
    }
}

/// Rereads the pages of a candidate up to `end`. If the pages cannot be read, the candidate has none.
fn refresh(map: &mut PageMap, candidate: &mut HeapCandidate, end: u64) {
    candidate.runs = map.list(candidate.start, end).unwrap_or_default();
}

/// Returns the current end address of the main heap.
fn end_of_main(process: &Process, clock: &Clock, start: u64) -> Option<u64> {
    let maps = maps::read(process, clock).ok()?.value;
    let end = end_of(start, maps.iter().filter(|mapping| &*mapping.path == "[heap]"));
    (end > start).then_some(end)
}

/// The end of the contiguous mappings that begin at `start`; `start` if none begins there.
fn end_of<'m>(start: u64, maps: impl Iterator<Item = &'m Mapping>) -> u64 {
    maps.fold(start, |end, mapping| if mapping.start == end { mapping.end } else { end })
}

/// The present pages of every mapping with several owners or no known owner.
fn pages_in_question(
    process: &Process,
    smaps: &Smaps,
    plan: &AccountPlan,
    failed: &mut Vec<Unavailable>,
) -> BTreeMap<usize, Vec<Run>> {
    let mut pages = BTreeMap::new();
    let mut read = || {
        let mut map = PageMap::open(process)?;
        for planned in plan.mappings.iter().filter(|planned| planned.question != Question::None) {
            let mapping = &smaps.mappings[planned.index].mapping;
            pages.insert(planned.index, map.list(mapping.start, mapping.end)?);
        }
        Ok(())
    };
    failed.extend(read().err());
    pages
}

/// Stretches that may be malloc heaps, and their mappings; adjacent parts of `[heap]` are merged. Other heaps may grow
/// up to [`HEAP_MAX`] during the walk. The kernel may show one as part of a mapping that began earlier: a stack
/// below it, or a full heap.
fn candidates(smaps: &Smaps, plan: &AccountPlan) -> (Vec<HeapCandidate>, Vec<Vec<usize>>) {
    let mut found: Vec<(HeapCandidate, Vec<usize>)> = Vec::new();
    for planned in &plan.mappings {
        let mapping = &smaps.mappings[planned.index].mapping;
        let candidate = |start, end, main| (HeapCandidate { start, end, main, runs: Vec::new() }, vec![planned.index]);
        let main = planned.question == Question::Heap && &*mapping.path == "[heap]";
        match found.last_mut() {
            Some((last, mappings)) if main && last.main && last.end == mapping.start => {
                last.end = mapping.end;
                mappings.push(planned.index);
            }
            _ if main => found.push(candidate(mapping.start, mapping.end, true)),
            _ => {
                let starts = planned.heap_starts(mapping).into_iter();
                found.extend(starts.map(|start| candidate(start, start.saturating_add(HEAP_MAX), false)));
            }
        }
    }
    found.into_iter().unzip()
}

fn heap_runs(process: &Process, said: &Said, smaps: &Smaps) -> Result<Vec<Run>, Unavailable> {
    let mut runs = Vec::new();
    let Some((start, end)) = said.info.as_ref().and_then(|info| info.heap_reserved) else { return Ok(runs) };
    let mut map = PageMap::open(process)?;
    let holding = smaps.mappings.iter().filter(|weighed| weighed.weight.rss.0 > 0).map(|weighed| &weighed.mapping);
    for mapping in holding.filter(|mapping| mapping.start < end && mapping.end > start) {
        runs.extend(map.list(mapping.start.max(start), mapping.end.min(end))?);
    }
    Ok(runs)
}
