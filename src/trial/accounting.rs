//! Reads what an account needs, in the order that costs the JVM least, and closes it.
//!
//! The JVM is asked first, while it runs. Then its threads are held, if that is allowed, for as long as the mappings,
//! the pages in question and the heaps of malloc are read. What is only computed comes after that.

use crate::account::{self, Account, Claim, Claims, Ledger, Owner, Part, Plan, Question, TagNames, TagSum};
use crate::clock::Clock;
use crate::observe::elf::{self, Image};
use crate::observe::glibc::{self, Candidate, Walk};
use crate::observe::heap_info::HeapInfo;
use crate::observe::hold::Held;
use crate::observe::maps::{self, Allocator};
use crate::observe::memory::ProcessMemory;
use crate::observe::metaspace_nodes::MetaspaceNode;
use crate::observe::nmt::NativeMemory;
use crate::observe::pagemap::{PageMap, Run};
use crate::observe::procfs::Process;
use crate::observe::smaps::{self, Smaps};
use crate::observe::stacks::{self, ThreadStack};
use crate::observe::vm_info::{Purpose, VmInfo};
use crate::observe::{Unavailable, metaspace_nodes};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the JVM said when it was asked; each is `None` where it did not.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) info: Option<VmInfo>,
    pub(super) nodes: Vec<MetaspaceNode>,
    pub(super) heap: Option<HeapInfo>,
    pub(super) nmt: Option<NativeMemory>,
}

impl Said {
    /// Asks by `ask`, which sends a diagnostic command; what fails is said in words.
    pub(super) fn by(ask: impl Fn(&str) -> Option<Result<String, String>>, failed: &mut Vec<String>) -> Self {
        let mut said = Self::default();
        let mut reply = |command: &str| match ask(command)? {
            Ok(text) => Some(text),
            Err(why) => {
                failed.push(why);
                None
            }
        };
        said.info = reply("VM.info").and_then(|text| VmInfo::parse(&text).ok());
        said.nodes = reply("VM.metaspace vslist").and_then(|text| metaspace_nodes::parse(&text).ok()).unwrap_or_default();
        said
    }
}

/// What was read while nothing moved, or as good as that went.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) smaps: Smaps,
    pub(super) plan: Plan,
    pub(super) pages: BTreeMap<usize, Vec<Run>>,
    pub(super) walk: Option<Walk>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) candidate_mappings: Vec<Vec<usize>>,
    pub(super) chunks: BTreeMap<usize, Vec<glibc::MmappedChunk>>,
    pub(super) stacks: Vec<ThreadStack>,
    pub(super) held: Option<Duration>,
    pub(super) failed: Vec<Unavailable>,
}

/// Debugging aid until the account is whole.
pub fn dump(pid: u32, stop: bool) {
    let clock = Clock::start();
    let process = Process::open(pid).expect("process");
    let attach = crate::observe::attach::Attach::connect(&process, &clock).expect("attach").value;
    let t0 = clock.now_ns();
    let mut failed = Vec::new();
    let ask = |command: &str| Some(attach.jcmd(command).map(|reply| reply.value).map_err(|e| e.to_string()));
    let mut said = Said::by(ask, &mut failed);
    said.nmt = ask("VM.native_memory summary scale=KB").and_then(|r| r.ok()).and_then(|t| NativeMemory::parse(&t).ok());
    said.heap = ask("GC.heap_info").and_then(|r| r.ok()).and_then(|t| HeapInfo::parse(&t).ok());
    let t1 = clock.now_ns();
    let seen = see(&process, &said, stop, &clock).expect("see");
    let t2 = clock.now_ns();
    let account = close(&said, &seen);
    let t3 = clock.now_ns();
    eprintln!("ask {:.2} see {:.2} (held {:?}) close {:.2} ms; failed {:?} {:?}", (t1 - t0) as f64 / 1e6, (t2 - t1) as f64 / 1e6, seen.held, (t3 - t2) as f64 / 1e6, failed, seen.failed);
    if let Some(walk) = &seen.walk {
        eprintln!("heaps {} errors {:?} others {} unknown {:?}", walk.heaps.len(), walk.errors, walk.others.len(), walk.unknown_layout);
        let system: u64 = walk.heaps.iter().map(|h| h.system).sum();
        let trim: u64 = walk.heaps.iter().map(|h| h.trimmable).sum();
        eprintln!("system {} trimmable {}", system >> 10, trim >> 10);
    }
    for holding in &account.holdings {
        eprintln!("{:22} {:9} {:9} KB {:6.2} %", holding.owner.name(), holding.rss >> 10, holding.pss >> 10, 100.0 * holding.rss as f64 / account.rss as f64);
    }
    eprintln!("{:22} {:9} {:9} moved {}", "RSS", account.rss >> 10, account.pss >> 10, account.moved);
    for r in account.remainders.iter().take(25) {
        let at = |i: usize| seen.smaps.mappings.get(i).map(|w| format!("{} {:x}-{:x} {}", w.mapping.perms, w.mapping.start, w.mapping.end, w.mapping.file_name())).unwrap_or_default();
        eprintln!("  {:x}-{:x} {} KB   in {} | before {} | behind {}", r.start, r.end, r.rss >> 10, at(r.index), at(r.index.wrapping_sub(1)), at(r.index + 1));
    }
    if std::env::args().any(|a| a == "-v") {
        for holding in &account.holdings {
            for d in holding.detail.iter().take(40) {
                eprintln!("  {} {} {} n {} rss {} alloc {:?}", holding.owner.name(), d.kind, d.name, d.count, d.rss >> 10, d.allocated.map(|a| a >> 10));
            }
        }
    }
}

/// Reads the process, with its threads held where `stop` says so and it is allowed.
pub(super) fn see(process: &Process, said: &Said, stop: bool, clock: &Clock) -> Result<Seen, Unavailable> {
    let maps = maps::read(process, clock)?.value;
    let images = elf::images(process, &maps);
    let names = stacks::names(process).unwrap_or_default();
    // Whatever becomes of it, the end of this thread lets go of all it has seized.
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut failed = Vec::new();
            let held = stop.then(|| Held::all_threads(process, clock).map_err(|why| failed.push(why)).ok()).flatten();
            let mut seen = read(process, said, &images, &names, clock)?;
            seen.held = held.map(|held| held.lasted());
            seen.failed.append(&mut failed);
            Ok(seen)
        });
        reader.join().unwrap_or_else(|_| Err(Unavailable::new("account", "the reader panicked")))
    })
}

fn read(
    process: &Process,
    said: &Said,
    images: &[Image],
    names: &[(u32, String)],
    clock: &Clock,
) -> Result<Seen, Unavailable> {
    let mut failed = Vec::new();
    let stacks = stacks::pointers(process).unwrap_or_else(|why| {
        failed.push(why);
        Vec::new()
    });
    let smaps = smaps::read(process, clock)?.value;
    let claims = claims(said, images, &smaps, &stacks, names);
    let plan = Plan::new(&smaps, &claims);
    let mut pages = BTreeMap::new();
    let mut map = PageMap::open(process)?;
    for planned in plan.mappings.iter().filter(|planned| planned.question != Question::None) {
        let mapping = &smaps.mappings[planned.index].mapping;
        let mut runs = Vec::new();
        map.runs(mapping.start, mapping.end, &mut |run| runs.push(run))?;
        pages.insert(planned.index, runs);
    }
    let (candidates, candidate_mappings) = candidates(&smaps, &plan, &pages);
    let mut walk = None;
    let mut chunks = BTreeMap::new();
    match ProcessMemory::open(process) {
        Ok(memory) if Allocator::of(smaps.maps()) == Allocator::Glibc => {
            let walked = glibc::walk(&memory, &candidates);
            let others = walked.others.iter().flat_map(|n| candidate_mappings[*n].iter().copied());
            let asked = plan.mappings.iter().filter(|p| p.question == Question::Chunks).map(|p| p.index);
            for index in asked.chain(others) {
                let Some(planned) = plan.mappings.iter().find(|planned| planned.index == index) else { continue };
                let mut found = Vec::new();
                for segment in planned.segments.iter().filter(|segment| segment.claim.is_none()) {
                    found.extend(glibc::mmapped(&memory, segment.start, segment.end, &pages[&index]));
                }
                chunks.insert(index, found);
            }
            walk = Some(walked);
        }
        Ok(_) => {}
        Err(why) => failed.push(why),
    }
    Ok(Seen { smaps, plan, pages, walk, candidates, candidate_mappings, chunks, stacks, held: None, failed })
}

/// Stretches that may be heaps of malloc; the parts of `[heap]` are one.
fn candidates(smaps: &Smaps, plan: &Plan, pages: &BTreeMap<usize, Vec<Run>>) -> (Vec<Candidate>, Vec<Vec<usize>>) {
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut indices: Vec<Vec<usize>> = Vec::new();
    for planned in plan.mappings.iter().filter(|planned| planned.question == Question::Heap) {
        let mapping = &smaps.mappings[planned.index].mapping;
        let main = mapping.path == "[heap]";
        let runs = pages.get(&planned.index).cloned().unwrap_or_default();
        match candidates.last_mut().filter(|last| main && last.main && last.end == mapping.start) {
            Some(last) => {
                last.end = mapping.end;
                last.runs.extend(runs);
                if let Some(indices) = indices.last_mut() {
                    indices.push(planned.index);
                }
            }
            None => {
                candidates.push(Candidate { start: mapping.start, end: mapping.end, main, runs });
                indices.push(vec![planned.index]);
            }
        }
    }
    (candidates, indices)
}

/// Everything that is known of ranges of addresses.
fn claims(said: &Said, images: &[Image], smaps: &Smaps, stacks: &[ThreadStack], names: &[(u32, String)]) -> Claims {
    let mut claims = Vec::new();
    let mut claim = |start, end, owner, kind, name: &str| {
        claims.push(Claim { start, end, owner, kind, name: name.to_owned() });
    };
    for range in said.info.iter().flat_map(|info| &info.ranges) {
        let (owner, kind) = match range.purpose {
            Purpose::JavaHeap => (Owner::JavaHeap, ""),
            Purpose::Cds => (Owner::Cds, "file"),
            Purpose::ClassSpace => (Owner::ClassSpace, "node"),
            Purpose::Metaspace => (Owner::Metaspace, "node"),
            Purpose::CodeCache => (Owner::CodeCache, "code_heap"),
            Purpose::GcTable => (Owner::Gc, "table"),
            Purpose::PollingPage => (Owner::Libjvm, "table"),
        };
        claim(range.start, range.end, owner, kind, &range.name);
    }
    for node in &said.nodes {
        let owner = if node.class_space { Owner::ClassSpace } else { Owner::Metaspace };
        claim(node.start, node.end, owner, "node", &format!("node at {:#x}", node.start));
    }
    for image in images {
        let libjvm = image.path.ends_with("/libjvm.so");
        claim(image.start, image.end, if libjvm { Owner::Libjvm } else { Owner::Libraries }, "file", &image.path);
    }
    for stack in stacks {
        let Some(pointer) = stack.pointer else { continue };
        let at = smaps.mappings.partition_point(|weighed| weighed.mapping.end <= pointer);
        let Some(weighed) = smaps.mappings.get(at).filter(|weighed| weighed.mapping.start <= pointer) else { continue };
        let name = names.iter().find(|(tid, _)| *tid == stack.tid).map_or("thread", |(_, name)| name.as_str());
        if weighed.mapping.inode == 0 && weighed.mapping.path != "[heap]" {
            claim(weighed.mapping.start, weighed.mapping.end, Owner::ThreadStacks, "thread", name);
        }
    }
    Claims::settle(claims)
}

/// Enters what was seen and closes the account.
pub(super) fn close(said: &Said, seen: &Seen) -> Account {
    let names = tag_names(said, seen);
    let mut ledger = Ledger::new(&seen.smaps);
    for planned in &seen.plan.mappings {
        let weighed = &seen.smaps.mappings[planned.index];
        match planned.question {
            Question::None => {
                let whole = planned.segments.first().and_then(|segment| segment.claim.as_ref());
                let part = whole.map(|claim| part_of(claim, weighed.weight.rss.0, weighed.weight.swap.0));
                ledger.enter(planned.index, part);
            }
            Question::Heap if entered_by_walk(seen, planned.index) => {}
            _ => {
                let runs = seen.pages.get(&planned.index).map(Vec::as_slice).unwrap_or_default();
                for segment in &planned.segments {
                    match &segment.claim {
                        Some(claim) => {
                            let (resident, swapped) = backed(runs, segment.start, segment.end);
                            ledger.enter(planned.index, [part_of(claim, resident, swapped)]);
                        }
                        None => {
                            let chunks = seen.chunks.get(&planned.index).map(Vec::as_slice).unwrap_or_default();
                            let inside = chunks.iter().filter(|c| segment.start <= c.start && c.end <= segment.end);
                            let inside: Vec<_> = inside.copied().collect();
                            ledger.enter(
                                planned.index,
                                account::mmapped_parts(&inside, names.as_ref(), |a, b| backed(runs, a, b)),
                            );
                            ledger.enter(planned.index, unexplained(runs, segment.start, segment.end, &inside));
                        }
                    }
                }
            }
        }
    }
    for walked in seen.walk.iter().flat_map(|walk| &walk.heaps) {
        let candidate = &seen.candidates[walked.index];
        let parts = account::heap_parts(walked, (candidate.start, candidate.end), names.as_ref());
        // The parts of a heap in several mappings are entered with the first; the weights of all are added there.
        ledger.enter(seen.candidate_mappings[walked.index][0], parts);
    }
    ledger.close()
}

fn entered_by_walk(seen: &Seen, index: usize) -> bool {
    let Some(walk) = &seen.walk else { return false };
    walk.heaps.iter().any(|heap| seen.candidate_mappings[heap.index].contains(&index))
}

fn part_of(claim: &Claim, resident: u64, swapped: u64) -> Part {
    Part {
        owner: claim.owner,
        kind: claim.kind,
        name: claim.name.clone(),
        count: 1,
        allocated: None,
        resident,
        swapped,
        range: (claim.start, claim.end),
    }
}

/// Bytes of `[start, end)` that are present, and that are swapped.
fn backed(runs: &[Run], start: u64, end: u64) -> (u64, u64) {
    let from = runs.partition_point(|run| run.end <= start);
    let (mut resident, mut swapped) = (0, 0);
    for run in runs[from..].iter().take_while(|run| run.start < end) {
        let part = run.end.min(end) - run.start.max(start);
        if run.swapped { swapped += part } else { resident += part }
    }
    (resident, swapped)
}

/// What lies between the chunks, without an owner.
fn unexplained(runs: &[Run], start: u64, end: u64, chunks: &[glibc::MmappedChunk]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = start;
    let bounds = chunks.iter().map(|chunk| (chunk.start, chunk.end)).chain([(end, end)]);
    for (next, behind) in bounds {
        let (resident, swapped) = backed(runs, at, next);
        if resident + swapped > 0 {
            parts.push(Part {
                owner: Owner::Unexplained,
                kind: "",
                name: String::new(),
                count: 1,
                allocated: None,
                resident,
                swapped,
                range: (at, next),
            });
        }
        at = behind;
    }
    parts
}

/// Names of NMT's tags, where live chunks carry them.
fn tag_names(said: &Said, seen: &Seen) -> Option<TagNames> {
    let summary = said.nmt.as_ref()?;
    let mut sums: BTreeMap<u8, u64> = BTreeMap::new();
    for (tag, chunks) in seen.walk.iter().flat_map(|walk| &walk.heaps).flat_map(|heap| &heap.tagged) {
        *sums.entry(*tag).or_default() += chunks.asked;
    }
    for chunk in seen.chunks.values().flatten() {
        if let Some(tag) = chunk.tag {
            *sums.entry(tag.number).or_default() += tag.asked;
        }
    }
    let sums: Vec<TagSum> = sums.into_iter().map(|(number, asked)| TagSum { number, asked }).collect();
    (!sums.is_empty()).then(|| TagNames::align(&sums, summary))
}
