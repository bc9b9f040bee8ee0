//! One measurement of a process, usually a JVM, shared by marks and `loadline account`. Reads sources that do not
//! affect the JVM first, then attaches, then builds the account.

use super::account_record;
use super::beside;
use super::watched::{Watched, charge_by_owner};
use super::{thread_list, thread_pools};
use crate::account::{Owner, Reason, Said};
use crate::doubt::Doubt;
use crate::observe::Unavailable;
use crate::observe::addresses::Purpose;
use crate::observe::glibc::WalkError;
use crate::observe::heap_info::HeapInfo;
use crate::observe::hotspot::{netty_pools, statics, thread_buffers, thread_names, thread_values};
use crate::observe::hsperfdata::Counters;
use crate::observe::maps::Allocator;
use crate::observe::nmt::{Category, NativeMemory};
use crate::observe::{smaps, thread_stats};
use crate::record::{
    AccountRecord, CodeHeapRecord, DirectRecord, Heap, Mark, NmtCategory, NmtRecord, ToldBy, ToldRecord,
};
use crate::scenario::{Asking, Kind, MarkPoint};
use crate::units::Growth;
use loadline_jvm::accounting::{self, Accounted, Allocation, TablesRead, Wanted};
use std::collections::BTreeMap;

/// Why a full collection is impossible in a program that is not a JVM.
pub(crate) const NO_JVM: &str = "the process is not a JVM";

/// Shares of RSS above which an account is doubtful.
const UNEXPLAINED_MAX: f64 = 0.005;
const MOVED_MAX: f64 = 0.005;

/// The state of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Live objects and garbage.
    Running,
    /// Right after a full collection: used heap is live.
    Collected,
}

/// How to query Native Memory Tracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskNmt {
    /// Not at all: it is off.
    No,
    /// It is on; growth is relative to the first measurement, which sets the JVM's baseline.
    WithGrowth,
    /// It may be on; if not, that is not reported.
    IfOn,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkSettings {
    pub(crate) moment: Moment,
    /// Whether and how to query Native Memory Tracking.
    pub(crate) nmt: AskNmt,
    /// Whether threads may be paused.
    pub(crate) stop: bool,
    /// Whether the account lists every mapping and every thread.
    pub(crate) regions: bool,
}

#[derive(Debug, Default)]
pub(crate) struct MarkReading {
    pub(crate) mark: Mark,
    pub(crate) allocator: Option<String>,
    /// According to the JVM's heap information.
    pub(crate) collector: Option<String>,
    pub(crate) rss_bytes_peak: Option<u64>,
    pub(crate) failed: Vec<String>,
}

impl MarkSettings {
    /// Measures; reports unreadable parts as missing.
    pub(crate) fn weigh(self, watched: &mut Watched, name: &str, doubts: &mut Vec<Doubt>) -> MarkReading {
        let clock = watched.clock;
        let begin_ns = clock.now_ns();
        let mut taken = MarkReading::default();
        taken.mark.name = name.to_owned();
        taken.read_outside(watched);
        let tables = watched.tables();
        let suffices = |tables: &TablesRead| tables.missing.is_none() && (self.nmt == AskNmt::No || !tables.tracks());
        if !tables.as_ref().is_ok_and(suffices) {
            watched.attach(doubts);
        }
        let nmt = native_memory(watched, self.nmt, &mut taken.failed);
        let (mut said, told) = taken.read_vm_state(watched, tables);
        taken.mark.heap = heap(watched, said.heap, self.moment);
        taken.collector = said.heap.map(|info| info.collector.title().to_owned());
        let sample = watched.sample();
        taken.mark.heap.collections = sample.and_then(|sample| sample.gc).map(|gc| gc.count);
        taken.mark.heap.old_collections = sample.and_then(|sample| sample.old_collections);
        taken.mark.nmt = nmt.as_ref().map(|(memory, since_baseline)| record(memory, *since_baseline));
        taken.mark.heap.humongous = said.humongous.take().filter(|found| found.objects > 0);
        taken.mark.direct = taken.direct(watched);
        taken.mark.thread_buffers = watched.look(thread_buffers::read).filter(|found| found.buffers > 0);
        let has_netty = taken.mark.direct.is_some_and(|direct| direct.netty_loaded);
        if has_netty && taken.mark.direct_bytes() >= NETTY_BYTES_MIN {
            taken.mark.netty_chunks = watched.look(netty_pools::read).filter(|found| found.chunks > 0);
        }
        said.nmt = nmt.map(|(memory, _)| memory);
        let counters = watched.counters();
        said.left_by_last_gc = counters.as_ref().and_then(accounting::left_by_last_gc);
        taken.mark.heap.left_by_gc_bytes = said.left_by_last_gc;
        said.heap_sizes = counters.as_ref().map(Counters::heap_sizes);
        said.full_collections = counters.as_ref().and_then(accounting::full_collections);
        said.release = counters.as_ref().and_then(Counters::release);
        taken.mark.classes = counters.and_then(|counters| counters.classes());
        said.sizing = watched.sizing;
        said.direct = taken.mark.direct.map(|_| taken.mark.direct_bytes());
        taken.mark.loaders = said.loaders.take().map(|loaders| watched.loaders.record(&loaders));
        watched.count_answering();
        let code = code_heaps(&said);
        let stacks = taken.account(self, watched, said, doubts);
        if let Some(account) = &mut taken.mark.account {
            account.told = told;
            // Reading from outside the JVM adds nothing.
            let asked_nothing = account.told.as_ref().is_some_and(|told| told.by == ToldBy::Tables);
            account.observer_bytes = account.observer_bytes.or(asked_nothing.then_some(0));
        }
        taken.inside(watched, code, stacks.filter(|_| self.regions));
        taken.mark.beside = beside::look(watched);
        taken.mark.charge = watched.cgroup.as_ref().and_then(|cgroup| {
            let memory = cgroup.read(&clock).ok()?.value;
            Some(charge_by_owner(cgroup, &memory, &clock))
        });
        if self.moment == Moment::Collected {
            taken.mark.static_collections = watched.look(statics::collections).unwrap_or_default();
            taken.mark.thread_values = watched.look(thread_values::read).filter(|found| found.threads > 0);
            if is_worth_listing(&taken.mark) {
                taken.mark.live_classes = watched.live_classes();
            }
        }
        taken.mark.took_ms = (clock.now_ns() - begin_ns) as f64 / 1e6;
        taken
    }
}

/// Pools with at least this many threads get full names.
const NAMED_IN_FULL_MIN: u64 = 8;

/// Less direct memory is not a finding, so its chunks are not queried.
const NETTY_BYTES_MIN: u64 = 8 << 20;

/// With at least this much live heap or live native memory, a class histogram may reveal the cause, at the cost of a
/// collection.
const LISTED_HEAP_MIN: u64 = 16 << 20;
const LISTED_MALLOC_MIN: u64 = 32 << 20;

fn is_worth_listing(mark: &Mark) -> bool {
    let holds = |owner: Owner| mark.account.as_ref().map_or(0, |account| account.holds(owner.name()));
    let malloc = [Owner::MallocLive, Owner::MallocNonHotspot, Owner::MallocMmapped, Owner::MallocDirect];
    let native = malloc.into_iter().map(holds).fold(0, u64::saturating_add);
    let live = mark.heap.live_bytes.unwrap_or(0);
    mark.name == MarkPoint::Collected.word() && (live >= LISTED_HEAP_MIN || native >= LISTED_MALLOC_MIN)
}

impl MarkReading {
    /// Direct memory; if unreadable, the failure names what the tables lack.
    fn direct(&mut self, watched: &Watched) -> Option<DirectRecord> {
        let direct = watched.direct()?;
        direct.map_err(|why| self.failed.push(format!("direct memory is not shown separately: {why}"))).ok()
    }

    /// The VM's state from its tables, or from commands if the tables lack something; with the source and the reason.
    fn read_vm_state(
        &mut self,
        watched: &Watched,
        tables: Result<TablesRead, Unavailable>,
    ) -> (Said, Option<ToldRecord>) {
        if watched.kind == Kind::Native {
            return (Said::default(), None);
        }
        let (read, why) = match tables {
            Ok(TablesRead { said, missing: None, .. }) => {
                return (said, Some(ToldRecord { by: ToldBy::Tables, why: String::new() }));
            }
            Ok(TablesRead { said, missing: Some(why), .. }) => (Some(said), why.to_string()),
            Err(_) if watched.asking == Asking::Always => (None, String::new()),
            Err(why) => (None, why.to_string()),
        };
        // Partial data is better than none.
        if let Some(said) = read.filter(|_| watched.attached().is_none()) {
            self.failed.push(why.clone());
            return (said, Some(ToldRecord { by: ToldBy::Tables, why }));
        }
        let info = heap_info(watched, &mut self.failed);
        let mut said = accounting::read_vm_state(|command| watched.ask(command), info, &mut self.failed);
        if let Some(info) = &mut said.info {
            info.ranges.extend(watched.region_table());
        }
        let by = if said.unanswered { ToldBy::Counters } else { ToldBy::Attach };
        (said, Some(ToldRecord { by, why }))
    }

    fn read_outside(&mut self, watched: &Watched) {
        match watched.process.status(&watched.clock) {
            Ok(status) => {
                let (status, mark) = (status.value, &mut self.mark);
                mark.rss_bytes = status.rss.0;
                mark.anon_bytes = Some(status.rss_anon.0);
                mark.file_bytes = Some(status.rss_file.0 + status.rss_shmem.0);
                mark.swap_bytes = Some(status.swap.0);
                mark.threads = Some(status.threads);
                self.rss_bytes_peak = Some(status.rss_peak.0);
            }
            Err(cause) => self.failed.push(cause.to_string()),
        }
        if let Some(cgroup) = &watched.cgroup {
            self.mark.charge_bytes = cgroup.usage(&watched.clock).ok().map(|usage| usage.value.0);
        }
    }

    /// The parts of some owners: code cache segments, thread pools, and, given `stacks`, the threads.
    fn inside(&mut self, watched: &mut Watched, mut code: Vec<CodeHeapRecord>, stacks: Option<BTreeMap<u32, u64>>) {
        let account = self.mark.account.as_ref();
        let details = || account.iter().flat_map(|account| &account.owners).flat_map(|owner| &owner.detail);
        for heap in &mut code {
            let found = details().find(|detail| detail.kind == "code_heap" && detail.name == heap.name);
            heap.rss_bytes = account.map(|_| found.map_or(0, |detail| detail.rss_bytes));
        }
        let threads = thread_stats::all(&watched.process).unwrap_or_default();
        let allocated = watched.allocation.as_mut().map(Allocation::by_thread).unwrap_or_default();
        self.mark.pools = thread_pools::pools(&threads, &allocated, account);
        // Names that the kernel did not truncate need not be read.
        if self.mark.pools.iter().any(|pool| pool.threads >= NAMED_IN_FULL_MIN) {
            let names = watched.look(thread_names::read).unwrap_or_default();
            thread_pools::name_in_full(&mut self.mark.pools, &threads, &names);
        }
        self.mark.code = code;
        if let Some(account) = &mut self.mark.account {
            account.threads = stacks.map(|stacks| thread_list::threads(&threads, &allocated, &stacks));
        }
    }

    /// Builds the account; returns each thread's stack. RSS and PSS are the account's sums, or come from `smaps`
    /// without one.
    fn account(
        &mut self,
        weigh: MarkSettings,
        watched: &Watched,
        said: Said,
        doubts: &mut Vec<Doubt>,
    ) -> Option<BTreeMap<u32, u64>> {
        let (process, clock) = (&watched.process, &watched.clock);
        let wanted = Wanted { stop: weigh.stop, live: weigh.moment == Moment::Collected };
        match accounting::account(process, said, wanted, clock) {
            Ok(accounted) => {
                let mut account = account_record::record(&accounted, weigh.regions);
                account.observer_bytes = watched.observer.attach_rss_bytes;
                if let Some(malloc) = &mut account.malloc {
                    malloc.settings = watched.process.environ().ok().map(|environ| tuning(&environ));
                    let words = watched.compiler_words();
                    let theirs = words.and_then(|words| account_record::arenas_of_compilers(&accounted, &words));
                    (malloc.compilers_retained_bytes, malloc.compilers_live_bytes) = theirs.unzip();
                }
                if watched.kind == Kind::Native {
                    account.would_return.gc_reason = Reason::NoJvm.name().to_owned();
                    account.would_return.gc_why = NO_JVM.to_owned();
                }
                doubts_of(&self.mark.name, &accounted, &account, doubts);
                if accounted.seen.allocator == Some(Allocator::Musl) {
                    doubts_of_musl(watched, doubts);
                }
                self.allocator = accounted.seen.allocator.map(|allocator| allocator.name().to_owned());
                self.mark.rss_bytes = account.total_bytes;
                self.mark.pss_bytes = Some(account.pss_bytes);
                self.mark.account = Some(account);
                Some(thread_list::stacks(&accounted))
            }
            Err(why) => {
                self.failed.push(format!("no account: {why}"));
                if let Ok(smaps) = smaps::read(process, clock) {
                    let total = smaps.value.total();
                    self.mark.rss_bytes = total.rss.0;
                    self.mark.pss_bytes = Some(total.pss.0);
                    self.allocator = Some(smaps.value.allocator().name().to_owned());
                }
                None
            }
        }
    }
}

/// The usage of the code cache; the account adds resident bytes.
fn code_heaps(said: &Said) -> Vec<CodeHeapRecord> {
    let ranges = || said.info.iter().flat_map(|info| &info.ranges).filter(|of| of.purpose == Purpose::CodeCache);
    let committed = |name: &str| {
        let range = ranges().find(|range| range.name == name)?;
        Some(range.committed_end?.saturating_sub(range.start))
    };
    let heaps = said.code_heaps.iter();
    heaps.map(|heap| CodeHeapRecord { committed_bytes: committed(&heap.name), ..heap.clone() }).collect()
}

/// Adds doubts of new kinds only: one covers all processes and marks.
pub(super) fn add_news(doubts: &mut Vec<Doubt>, found: impl IntoIterator<Item = Doubt>) {
    let mut news: Vec<Doubt> = found.into_iter().collect();
    news.retain(|doubt| !doubts.iter().any(|known| known.is_like(doubt)));
    doubts.append(&mut news);
}

/// Doubts about gaps in an account.
fn doubts_of(mark: &str, accounted: &Accounted, record: &AccountRecord, doubts: &mut Vec<Doubt>) {
    let account = &accounted.account;
    let seen = &accounted.seen;
    let share = |bytes: u64| bytes as f64 / account.rss.max(1) as f64;
    let mut add = |doubt: Doubt| add_news(doubts, [doubt]);
    let mark = || mark.to_owned();
    for why in &accounted.failed {
        add(Doubt::AccountPartial { mark: mark(), why: why.to_string() });
    }
    let unsplit_bytes = account.rss_of(Owner::MallocUnsplit);
    if unsplit_bytes > 0 {
        let why = match seen.allocator {
            Some(Allocator::Musl) => match &seen.musl {
                None => "the allocator is musl's, and its memory could not be read".to_owned(),
                Some(Err(why)) => format!("the allocator is musl's, and {why}"),
                Some(Ok(walk)) => format!("{} of its groups could not be walked", walk.broken.len()),
            },
            Some(allocator) if allocator != Allocator::Glibc => format!("the allocator is {}", allocator.name()),
            _ => match &seen.walk {
                None => "malloc's heaps could not be read".to_owned(),
                Some(walk) => walk.unknown_layout.clone().unwrap_or_else(|| broken(&walk.errors)),
            },
        };
        add(Doubt::MallocUnsplit { mark: mark(), unsplit_bytes, why });
    }
    if share(record.unexplained_bytes) > UNEXPLAINED_MAX {
        add(Doubt::Unexplained {
            mark: mark(),
            unexplained_bytes: record.unexplained_bytes,
            share: share(record.unexplained_bytes),
        });
    }
    if share(account.moved) > MOVED_MAX {
        add(Doubt::AccountMoved { mark: mark(), moved_bytes: account.moved });
    }
    let heap = [Owner::JavaHeapUsed, Owner::JavaHeapLive, Owner::JavaHeapFree, Owner::JavaHeap];
    let held = heap.into_iter().filter_map(|owner| account.holding(owner));
    let (heap_rss, heap_pss) = held.fold((0, 0), |sum, holding| (sum.0 + holding.rss, sum.1 + holding.pss));
    if heap_rss > 3 * heap_pss / 2 {
        add(Doubt::HeapMultiMapped { rss_bytes: heap_rss, pss_bytes: heap_pss });
    }
    let total = seen.smaps.total();
    if total.anon_huge.0 > 0 {
        add(Doubt::HugePagesInUse { huge_bytes: total.anon_huge.0 });
    }
}

/// Variables that only glibc's malloc reads (mallopt(3), `GLIBC_TUNABLES` in its manual).
const OF_GLIBC: [&str; 7] = [
    "GLIBC_TUNABLES",
    "MALLOC_ARENA_MAX",
    "MALLOC_ARENA_TEST",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
];
/// Prefixes of other allocators' variables (jemalloc, mimalloc, tcmalloc).
const OF_OTHERS: [&str; 3] = ["MALLOC_CONF", "MIMALLOC_", "TCMALLOC_"];
const SETTINGS_MAX: usize = 16;
/// Characters kept per variable.
const SETTING_CHARS_MAX: usize = 200;

/// The number of glibc heaps that could not be walked, and the first error.
fn broken(errors: &[WalkError]) -> String {
    let heaps = format!("{} of its heaps could not be walked", errors.len());
    errors.first().map_or(heaps.clone(), |first| format!("{heaps}: {} at {:#x}", first.why, first.at))
}

/// The variables in an environment that tune a C allocator.
fn tuning(environ: &[String]) -> Vec<String> {
    let tunes = |name: &str| OF_GLIBC.contains(&name) || OF_OTHERS.iter().any(|begin| name.starts_with(begin));
    let set = environ.iter().filter(|set| set.split_once('=').is_some_and(|(name, _)| tunes(name)));
    set.take(SETTINGS_MAX).map(|set| set.chars().take(SETTING_CHARS_MAX).collect()).collect()
}

/// HotSpot trims only with glibc.
const TRIM_OPTION: &str = "-XX:TrimNativeHeapInterval";

/// A doubt about glibc malloc variables that have no effect with musl; once per trial.
fn doubts_of_musl(watched: &Watched, doubts: &mut Vec<Doubt>) {
    let (environ, words) =
        (watched.process.environ().unwrap_or_default(), watched.process.cmdline().unwrap_or_default());
    let options = for_glibc(&environ, &words);
    if !options.is_empty() {
        add_news(doubts, [Doubt::AllocatorIgnores { allocator: Allocator::Musl.name().to_owned(), options }]);
    }
}

/// The names of glibc malloc settings in an environment and a command line.
fn for_glibc(environ: &[String], words: &[String]) -> Vec<String> {
    let is_set = |name: &str| environ.iter().any(|set| set.split_once('=').is_some_and(|(known, _)| known == name));
    let mut options: Vec<String> = OF_GLIBC.into_iter().filter(|name| is_set(name)).map(str::to_owned).collect();
    // Variables can contain JVM options, too.
    if words.iter().chain(environ).any(|text| text.contains(TRIM_OPTION)) {
        options.push(TRIM_OPTION.to_owned());
    }
    options
}

fn heap_info(watched: &Watched, failed: &mut Vec<String>) -> Option<(String, HeapInfo)> {
    let reply = watched.ask("GC.heap_info")?;
    let parsed = reply.and_then(|text| match HeapInfo::parse(&text) {
        Ok(info) => Ok((text, info)),
        Err(cause) => Err(cause.to_string()),
    });
    parsed.map_err(|why| failed.push(why)).ok()
}

/// `GC.heap_info` is current; counters are as of the last collection, and replace it if it is missing.
fn heap(watched: &mut Watched, info: Option<HeapInfo>, moment: Moment) -> Heap {
    if let Some(info) = info {
        let used = Some(info.used.0);
        let live_bytes = if moment == Moment::Collected { used } else { None };
        let (committed_bytes, max_bytes) = (Some(info.committed.0), Some(info.capacity_max.0));
        return Heap { used_bytes: used, committed_bytes, live_bytes, max_bytes, ..Heap::default() };
    }
    let sample = watched.sample();
    Heap {
        used_bytes: sample.map(|sample| sample.heap_used.0),
        committed_bytes: sample.map(|sample| sample.heap_committed.0),
        ..Heap::default()
    }
}

/// The summary, and whether it shows growth since a baseline.
fn native_memory(watched: &mut Watched, ask: AskNmt, failed: &mut Vec<String>) -> Option<(NativeMemory, bool)> {
    let command = match (ask, watched.baseline) {
        (AskNmt::No, _) => return None,
        (AskNmt::WithGrowth, true) => "VM.native_memory summary.diff scale=KB",
        _ => "VM.native_memory summary scale=KB",
    };
    let since_baseline = ask == AskNmt::WithGrowth && watched.baseline;
    let mut reply = |command: &str| watched.ask(command)?.map_err(|why| failed.push(why)).ok();
    let text = reply(command)?;
    if ask == AskNmt::WithGrowth {
        let baseline = watched.baseline || reply("VM.native_memory baseline").is_some();
        watched.baseline = baseline;
    }
    match NativeMemory::parse(&text) {
        Ok(memory) => Some((memory, since_baseline)),
        Err(_) if ask == AskNmt::IfOn => None,
        Err(cause) => {
            failed.push(cause.to_string());
            None
        }
    }
}

/// The reply as recorded. A difference that the JVM omits is 0 if there is a baseline.
fn record(memory: &NativeMemory, since_baseline: bool) -> NmtRecord {
    let growth = |growth: Option<Growth>| growth.map(|growth| growth.0).or(since_baseline.then_some(0));
    let category = |category: &Category| NmtCategory {
        name: category.name.clone(),
        committed_bytes: category.amount.committed.0,
        reserved_bytes: category.amount.reserved.0,
        growth_bytes: growth(category.amount.committed_growth),
    };
    NmtRecord {
        total_committed_bytes: memory.total.committed.0,
        total_reserved_bytes: memory.total.reserved.0,
        total_growth_bytes: growth(memory.total.committed_growth),
        categories: memory.categories.iter().map(category).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_for_glibc_are_listed() {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let environ = ["MALLOC_ARENA_MAX=1", "MALLOC_CONF=narenas:1", "XMALLOC_TOP_PAD_=1", "GLIBC_TUNABLES"];
        assert_eq!(for_glibc(&list(&environ), &list(&["java", "-Xmx8m"])), ["MALLOC_ARENA_MAX"]);
        let command = list(&["java", "-XX:TrimNativeHeapInterval=5000"]);
        assert_eq!(for_glibc(&[], &command), [TRIM_OPTION]);
        let through = list(&["JAVA_TOOL_OPTIONS=-Xmx8m -XX:TrimNativeHeapInterval=1", "MALLOC_TRIM_THRESHOLD_=0"]);
        assert_eq!(for_glibc(&through, &[]), ["MALLOC_TRIM_THRESHOLD_", TRIM_OPTION]);
        assert!(for_glibc(&[], &[]).is_empty());
        assert_eq!(tuning(&list(&environ)), ["MALLOC_ARENA_MAX=1", "MALLOC_CONF=narenas:1"]);
    }
}
