//! The code and objects that hold memory, most important first, each with the path to its allocation.

use super::cells::{mib, signed, told_mark};
use crate::chart;
use crate::diagnosis;
use crate::page::{Depth, Fold, Part, Section, Topic};
use crate::record::{
    AccountDocument, AccountRecord, AllocatedRecord, CallPurpose, CallRecord, Document, ExplanationRecord, Finding,
    FindingRecord, HolderRecord, LiveGrowthRecord, Mark, NativeHolder, SiteRecord, Trial,
};
use crate::table::Table;
use crate::units::{Bytes, grouped, several, shortened};
use crate::words::pairs;
use loadline_base::java_names::is_of_jdk;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

/// The anchor of a single result's section.
pub(super) const ID: &str = "code";
/// Maximum sites and holders shown on a screen, taken together; a page shows all of them.
const SHOWN_MAX: usize = 5;
/// A screen omits entries below this fraction of the largest one (reciprocal).
const SHARE_MIN: u64 = 20;
/// A peak that is gone after the load is shown if it is at least this fraction of RSS (reciprocal).
const PEAK_SHARE_MIN: u64 = 10;
/// Steps of a path on a screen.
const STEPS_MAX: usize = 4;
/// Smaller memory needs no line next to larger entries.
const SMALL_BYTES: u64 = 1 << 20;
/// Smaller memory prints as 0.0 MiB in a table.
const ROW_BYTES_MIN: u64 = SMALL_BYTES / 20;
/// Maximum length of a step or name.
const NAME_MAX: usize = 160;

/// The result of a trial's second start, if there was one.
pub(super) fn of_trial(trial: &Trial, depth: Depth) -> Option<Section> {
    trial.explanation.as_ref().map(|found| section(found, told_mark(trial), trial.index, depth))
}

/// The code and objects that hold memory, with their owners' memory at a mark of this trial.
pub(super) fn section(found: &ExplanationRecord, mark: Option<&Mark>, trial: u32, depth: Depth) -> Section {
    let lines = lines(found, mark);
    let least = lines.first().map_or(0, |first| first.bytes / SHARE_MIN);
    let most = if depth.whole { usize::MAX } else { SHOWN_MAX };
    let shown = lines.iter().filter(|line| line.bytes >= least).take(most).cloned();
    let (held, gone): (Vec<SiteLine>, Vec<SiteLine>) = shown.partition(|line| line.held_bytes >= ROW_BYTES_MIN);
    let held = Part::Doubts(held.into_iter().map(|line| (line.text, line.way)).collect());
    let mut parts: Vec<Part> = held.filled().into_iter().collect();
    // Freed memory matters only for a limit.
    parts.extend(gone.into_iter().map(|line| Part::Text(line.sentence())));
    if lines.is_empty() && found.missing.is_empty() {
        parts.push(Part::Text("No line of code or object holds 1 MiB or more.".to_owned()));
    }
    parts.extend(coverage(found).map(Part::Text));
    parts.extend(found.missing.iter().map(|why| Part::Text(shortened(why, 4 * NAME_MAX))));
    if depth.whole {
        parts.extend((!found.sites.is_empty()).then(|| Part::on_demand(sites(found))));
        parts.extend((!found.objects.is_empty()).then(|| Part::on_demand(objects(&found.objects))));
        parts.extend((!found.calls.is_empty()).then(|| Part::on_demand(calls(&found.calls))));
        parts.extend(found.heap.as_ref().map(|heap| Part::on_demand(holders(&heap.holders))));
        parts.extend(chart::flames(found, trial).into_iter().map(|figure| {
            let title = figure.chart.title.clone();
            Part::Section(Section::titled(Topic::Answer, title, [Part::figure(figure)]).folded(Fold::Closed))
        }));
    }
    Section::new(Topic::Answer, "which code holds memory", parts).id(ID)
}

/// The largest holder as a sentence, with the effect of a collection; `None` if no code or object holds a MiB at the
/// end. A recording includes the compilation peak that any JVM has.
pub(super) fn largest(found: &ExplanationRecord, mark: Option<&Mark>) -> Option<String> {
    let is_cause = |line: &SiteLine| line.held_bytes >= SMALL_BYTES && !line.only_loads_classes;
    lines(found, mark).into_iter().find(is_cause).map(SiteLine::sentence)
}

/// Whether the code in the only trial holds more memory than the first finding explains.
pub(super) fn outweighs(document: &Document) -> bool {
    let [Trial { explanation: Some(found), .. }] = document.trials.as_slice() else { return false };
    let most = lines(found, told_mark(&document.trials[0])).iter().map(|line| line.held_bytes).max();
    most.unwrap_or(0) > document.findings.first().map_or(0, FindingRecord::worth_bytes)
}

/// The holder that keeps at least half of the live heap.
pub(super) fn main_holder(found: &ExplanationRecord) -> Option<&HolderRecord> {
    let heap = found.heap.as_ref()?;
    heap.holders.iter().find(|holder| holder.retained_bytes >= (heap.live_bytes / 2).max(SMALL_BYTES))
}

/// The Java heap with its size, if there is a recording without a heap dump.
pub(super) fn heap_unseen(document: &AccountDocument) -> Option<String> {
    let found = document.explanation.as_ref().filter(|found| found.heap.is_none() && !found.misses_objects())?;
    let heap = document.mark.heap;
    let left = heap.left_by_gc_bytes.map(|left| format!(", {} after the last GC", mib(Some(left))));
    let used = heap.used_bytes.map(|used| format!(" ({} in use{})", Bytes(used), left.unwrap_or_default()));
    let also = if found.sites.is_empty() { "" } else { " This shows native memory only." };
    Some(format!(
        "The Java heap{} was not examined; add `--objects` to see which objects fill it.{also}",
        used.unwrap_or_default()
    ))
}

/// Whether the live heap still grows under load, and the limits of that evidence. `warmed`: an earlier phase warmed up
/// the server.
pub(super) fn growth(found: &LiveGrowthRecord, warmed: bool) -> String {
    let (collections, seconds) = (several(u64::from(found.collections), "full GC"), found.seconds.round());
    let ends = found.bytes_per_request_low.zip(found.bytes_per_request_high);
    if let (Some(slope), Some((low, high))) = (found.bytes_per_request, ends) {
        let a_minute = Bytes((found.requests as f64 * 60.0 / found.seconds.max(1.0) * slope.max(0.0)) as u64);
        let [slope, low, high] = [slope, low, high].map(amount);
        return format!(
            "The live heap keeps growing under load: by {slope} per request ({low} to {high}, 95% confidence), or \
             {a_minute} per minute, measured with {collections} in {seconds} s of load on a third run."
        );
    }
    if found.collections < found.needed {
        return format!(
            "There is too little data to tell whether the live heap grows: the load had time for only {collections}, \
             and a verdict needs {} (use `-d` for a longer load).",
            found.needed
        );
    }
    let (first, last) = (found.live_bytes_first, found.live_bytes_last);
    let (least, most) = (found.live_bytes_min, found.live_bytes_max);
    let per_request = |bytes: u64| amount(bytes as f64 / found.requests.max(1) as f64);
    let range = |least: u64, most: u64| match (mib(least), Bytes(most).to_string()) {
        (from, to) if to.starts_with(&from) => to,
        (from, to) => format!("{from} to {to}"),
    };
    if is_steady(found) {
        let (least, most) = (least.min(first), most.max(last));
        let pages = if found.load.is_empty() { String::new() } else { format!(", for {} only", found.load) };
        let (after, warm) = match warmed {
            true => (" after the warm-up", "growth during the warm-up (`--warmup none` includes it), "),
            false => ("", ""),
        };
        return format!(
            "No leak in the Java heap{after}{pages}: {collections} in {seconds} s of load on a third run ({}) left {} \
             of live objects. This does not rule out a leak of less than {} per request, {warm}or a leak of native \
             memory.",
            several(found.requests, "request"),
            range(least, most),
            per_request((most - least).max(2 * found.requests))
        );
    }
    let (from, to) = (mib(first), Bytes(last));
    match moves(most - least, most) {
        true => format!(
            "The live heap grew from {from} to {to} in {seconds} s of load on a third run, {} per request. It is too \
             early to tell a leak from a cache that is filling up; use `-d` for a longer load.",
            per_request(last - first)
        ),
        false => format!(
            "The live heap grew from {from} to {to} early in {seconds} s of load on a third run and then stopped \
             growing: later full GCs left {}. Something filled up to a limit; a leak would have kept growing.",
            range(least, most)
        ),
    }
}

/// Whether there were enough collections for a verdict, and the live heap did not grow over them.
pub(super) fn is_steady(found: &LiveGrowthRecord) -> bool {
    let (first, last) = (found.live_bytes_first, found.live_bytes_last);
    let is_judged = found.bytes_per_request.is_none() && found.collections >= found.needed;
    is_judged && !moves(last.saturating_sub(first), first)
}

/// A live heap that varies by less is constant (reciprocal).
const STILL_SHARE: u64 = 20;

fn moves(by: u64, of: u64) -> bool {
    by > SMALL_BYTES.max(of / STILL_SHARE)
}

/// Commands that show whether a running JVM's live heap grows, which a recording does not.
pub(super) fn growth_unmeasured(pid: u32) -> String {
    format!(
        "This does not show whether the live heap grows. To find out, run `loadline account {pid} --classes --json > \
         before.json`, and after more load `loadline account {pid} --classes --against before.json`."
    )
}

/// Bytes per request: `180 bytes`, `4.4 KiB`.
fn amount(bytes: f64) -> String {
    if bytes.abs() < 1024.0 { format!("{bytes:.0} bytes") } else { format!("{:.1} KiB", bytes / 1024.0) }
}

/// The code or object behind a finding, as a continuation of its text; `None` if it holds less than a MiB.
pub(super) fn code_behind(finding: &FindingRecord, found: &ExplanationRecord) -> Option<String> {
    let largest = |is_of: &dyn Fn(&SiteRecord) -> bool, bytes: fn(&SiteRecord) -> u64, word: &str| {
        let sites = found.sites.iter().filter(|site| is_code(site) && is_of(site));
        let site = sites.max_by_key(|site| bytes(site)).filter(|site| bytes(site) >= SMALL_BYTES)?;
        Some(format!("{word} at {}", line_and_call(site)))
    };
    let of_owner = |owner: &'static str, word: &str| {
        let sites = |site: &SiteRecord| site.owner == owner;
        largest(&sites, |site| site.loaded_bytes, word)
    };
    let of_library = |name: &str| {
        // `libduckdb_java.so (jemalloc)` was unpacked as `libduckdb_java134.so`.
        let stem = name.split(".so").next().unwrap_or(name);
        let sites = |site: &SiteRecord| site.kind.contains(stem);
        largest(&sites, |site| site.loaded_bytes, "called")
    };
    match &finding.finding {
        Finding::DirectMemoryLives { .. }
        | Finding::DirectMemoryWaits { .. }
        | Finding::DirectMemoryAtCeiling { .. }
        | Finding::NettyChunksFree { .. } => of_owner("malloc.direct", "allocated"),
        Finding::NativeHeldByGarbage { .. } => {
            largest(&|_| true, |site| site.loaded_bytes.saturating_sub(site.kept_bytes), "allocated")
        }
        Finding::NativeMemoryLives { by: NativeHolder::Library { name }, .. } => {
            of_library(name).or_else(|| of_owner("malloc.live", "allocated"))
        }
        Finding::NativeMemoryLives { .. } => of_owner("malloc.live", "allocated"),
        Finding::LibraryMemory { library, .. } => of_library(library),
        Finding::ChildProcesses { .. } => most_calls(found, CallPurpose::StartsProcess, "started"),
        Finding::FilesInMemory { .. } | Finding::PageCacheOfFiles { .. } => {
            most_calls(found, CallPurpose::OpensFile, "opened")
        }
        Finding::LoadersMany { .. } | Finding::LoadersKeepComing { .. } => {
            let makers = found.sites.iter().filter(|site| site.owner == "metaspace" && site.made > 0);
            makers.max_by_key(|site| site.made).map(|site| format!("created at {}", line_and_call(site)))
        }
        Finding::MetaspaceKeepsGrowing { .. } | Finding::ClassesGenerated { .. } => {
            let loads = |site: &SiteRecord| site.owner == "metaspace" && !is_of_jdk(&site.site);
            largest(&loads, |site| site.loaded_bytes, "loaded")
        }
        Finding::ThreadsPileUp { .. } | Finding::ThreadsIdle { .. } => {
            let starters = found.sites.iter().filter(|site| site.owner == "thread_stacks" && site.made > 0);
            starters.max_by_key(|site| site.made).map(|site| format!("started at {}", line_and_call(site)))
        }
        Finding::HumongousTails { .. }
        | Finding::HeapHeldByStatics { .. }
        | Finding::HeapHeldByThreadLocals { .. }
        | Finding::VirtualThreadsParked { .. }
        | Finding::FinalizersWait { .. }
        | Finding::HeapLives { .. }
        | Finding::HeapExhausted { .. } => {
            let holders = &found.heap.as_ref()?.holders;
            let holder = holders.iter().max_by_key(|holder| holder.retained_bytes)?;
            let kept = match finding.text.contains(&holder.name) {
                true => format!("{}, including everything it keeps alive", Bytes(holder.retained_bytes)),
                false => format!("kept by {}", shortened(&deepest(holder), NAME_MAX)),
            };
            let made = allocated(holder, &found.objects).map(|site| format!(", allocated at {site}"));
            (holder.retained_bytes >= SMALL_BYTES).then(|| kept + &made.unwrap_or_default())
        }
        _ => None,
    }
}

/// The line that allocated most of a holder's recorded objects, if any. A line with far more objects of these classes
/// than the holder keeps also allocates for others.
fn allocated(holder: &HolderRecord, objects: &[AllocatedRecord]) -> Option<String> {
    let mut sites: BTreeMap<&str, u64> = BTreeMap::new();
    for of in objects.iter().filter(|of| holder.classes.iter().any(|class| class.name == of.class)) {
        *sites.entry(of.site.as_str()).or_default() += of.bytes;
    }
    let recorded: u64 = sites.values().sum();
    let (site, bytes) = sites.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    let is_most = bytes >= SMALL_BYTES && bytes >= recorded.min(holder.retained_bytes) / 2;
    (is_most && bytes / 2 <= holder.retained_bytes).then(|| shortened(site, NAME_MAX))
}

/// The line with the most calls of a purpose, and its share of them.
fn most_calls(found: &ExplanationRecord, purpose: CallPurpose, word: &str) -> Option<String> {
    let of_purpose = || found.calls.iter().filter(|site| site.purpose == purpose);
    let most = of_purpose().max_by_key(|site| site.calls)?;
    let all: u64 = of_purpose().map(|site| site.calls).sum();
    let share = if all == most.calls { grouped(all) } else { format!("{} of {}", grouped(most.calls), grouped(all)) };
    Some(format!("{word} at {} ({share} calls)", shortened(&most.site, NAME_MAX)))
}

/// A site's line, and the function that it calls: `A.a(A.java:1) by Deflater.<init>`.
fn line_and_call(site: &SiteRecord) -> String {
    let call = site.frames.get(1).filter(|frame| !frame.contains('`'));
    let call = call.and_then(|frame| frame.split('(').next()).map(|name| format!(" by {name}"));
    shortened(&format!("{}{}", site.site, call.unwrap_or_default()), NAME_MAX)
}

/// The fields where a holder's objects accumulate. Earlier fields belong to request-handling code.
fn deepest(holder: &HolderRecord) -> String {
    let fields = holder.path.get(1..).unwrap_or_default();
    match &fields[fields.len().saturating_sub(2)..] {
        [] => holder.name.clone(),
        last => last.join(" > "),
    }
}

/// The code and objects behind the difference between two explained configurations.
pub(super) fn of_comparison(document: &Document) -> Option<Section> {
    let explained = |name: &str| {
        let trials = document.trials.iter().filter(|trial| trial.configuration == name);
        trials.filter_map(|trial| trial.explanation.as_ref()).next()
    };
    let differences = pairs(document, true).into_iter().flat_map(|pair| {
        let (before, after) = (explained(pair.baseline), explained(pair.candidate));
        let told = before.zip(after).map(|(before, after)| differences(before, after)).unwrap_or_default();
        told.into_iter().map(|(change, text)| (format!("{}: {change}", pair.candidate), text)).collect::<Vec<_>>()
    });
    let part = Part::Doubts(differences.collect()).filled()?;
    Some(Section::new(Topic::Answer, "code behind the difference", [part]).id(ID))
}

/// Sites and holders that changed, largest change first.
fn differences(before: &ExplanationRecord, after: &ExplanationRecord) -> Vec<(String, String)> {
    // Additional bytes and path, by kind and name.
    let mut changes: BTreeMap<(String, String), (i64, String)> = BTreeMap::new();
    for (name, bytes, way) in held(after) {
        let (change, _) = changes.entry(name).or_insert((0, way));
        *change = change.saturating_add_unsigned(bytes);
    }
    for (name, bytes, way) in held(before) {
        let (change, _) = changes.entry(name).or_insert((0, way));
        *change = change.saturating_sub_unsigned(bytes);
    }
    let mut changes: Vec<_> = changes.into_iter().filter(|(_, (by, _))| by.unsigned_abs() >= SMALL_BYTES).collect();
    changes.largest_first(|(_, (by, _))| by.unsigned_abs());
    let told = |((kind, name), (by, way))| (format!("{} MiB {kind}{name}", signed(by, mib)), way);
    changes.into_iter().take(SHOWN_MAX).map(told).collect()
}

/// Sites and holders with kind, name, bytes, and path.
fn held(found: &ExplanationRecord) -> impl Iterator<Item = ((String, String), u64, String)> {
    let sites = found.sites.iter().map(|site| ((site.kind.clone(), at(site)), site.loaded_bytes, via(&site.frames)));
    let holders = found.heap.iter().flat_map(|heap| &heap.holders).map(|holder| {
        let by = format!(", kept by {}", shortened(&holder.name, NAME_MAX));
        (("Java heap".to_owned(), by), holder.retained_bytes, down_to(&holder.path))
    });
    sites.chain(holders).map(|(name, bytes, way)| (name, bytes, way.unwrap_or_default()))
}

/// Whether application or library code requested this memory.
pub(super) fn is_code(site: &SiteRecord) -> bool {
    line_of(site).is_some()
}

/// A site's line; the JVM's own activity has only a name.
fn line_of(site: &SiteRecord) -> Option<String> {
    (site.site != site.kind).then(|| shortened(&site.site, NAME_MAX))
}

/// The line within a sentence.
fn at(site: &SiteRecord) -> String {
    line_of(site).map_or(String::new(), |line| format!(", allocated at {line}"))
}

#[derive(Debug, Clone, PartialEq)]
struct SiteLine {
    /// Its weight for sorting.
    bytes: u64,
    /// Memory held after the load.
    held_bytes: u64,
    /// Whether it loads classes without creating a class loader. Every program does that at startup, so it is not a
    /// cause.
    only_loads_classes: bool,
    text: String,
    way: String,
    /// The effect of a collection, or its earlier peak.
    more: String,
}

impl SiteLine {
    /// A line with the path to the code, and another remark.
    fn new(bytes: u64, text: String, way: Option<String>, more: Option<String>) -> Self {
        let way: Vec<String> = way.into_iter().chain(more.clone()).collect();
        Self {
            bytes,
            held_bytes: bytes,
            only_loads_classes: false,
            text,
            way: way.join("; "),
            more: more.unwrap_or_default(),
        }
    }

    fn sentence(self) -> String {
        let sure = if self.more.is_empty() { String::new() } else { format!("; {}", self.more) };
        format!("{}{sure}.", self.text)
    }
}

/// Sites and holders, heaviest first.
fn lines(found: &ExplanationRecord, mark: Option<&Mark>) -> Vec<SiteLine> {
    let account = mark.and_then(|mark| mark.account.as_ref());
    let peak_min = mark.map_or(0, |mark| mark.rss_bytes / PEAK_SHARE_MIN);
    // The owner has another, larger part that is not from malloc.
    let has_more = |site: &SiteRecord| ["thread_stacks", "metaspace"].contains(&site.owner.as_str());
    // Without application or library frames, the JVM itself loaded these classes.
    let told = found.sites.iter().filter(|site| site.owner != "metaspace" || !is_of_jdk(&site.site));
    let sites = told.map(|site| match account.and_then(|account| with_it(site, found, account)) {
        Some(held) => line_of_makers(site, held),
        None => line_of_site(site, found, account.filter(|_| !has_more(site)), peak_min),
    });
    let holders = found.heap.iter().flat_map(|heap| &heap.holders).map(|holder| line_of_holder(holder, found));
    let mut lines: Vec<SiteLine> = sites.chain(holders).filter(|line| line.bytes >= SMALL_BYTES).collect();
    // Peaks that are gone come after memory that is still held.
    lines.largest_first(|line| (line.held_bytes >= SMALL_BYTES, line.bytes));
    lines
}

fn line_of_site(
    site: &SiteRecord,
    found: &ExplanationRecord,
    account: Option<&AccountRecord>,
    peak_min: u64,
) -> SiteLine {
    let owner = account.map(|account| account.holds(&site.owner));
    let held = match owner.filter(|owner| *owner > site.loaded_bytes && site.loaded_bytes > 0) {
        Some(owner) => format!("{} of {} MiB", mib(site.loaded_bytes), mib(owner)),
        None => Bytes(site.loaded_bytes).to_string(),
    };
    let held = match site.loaded_bytes {
        ..ROW_BYTES_MIN => format!("{} at its peak, freed by the end of the load", Bytes(site.peak_bytes)),
        loaded if site.peak_bytes > loaded + loaded / 4 => {
            format!("{held} after the load, {} at its peak", Bytes(site.peak_bytes))
        }
        _ => held,
    };
    let freed = site.loaded_bytes.saturating_sub(site.kept_bytes);
    let is_line = is_code(site);
    let collected = match (site.loaded_bytes, freed) {
        // The JVM's own memory comes and goes independently of the application.
        (loaded, _) if loaded < SMALL_BYTES || !is_line => None,
        // Without a heap dump, there was no collection.
        _ if found.heap.is_none() => {
            found.missing.is_empty().then(|| "`--objects` shows how much of it a full GC frees".to_owned())
        }
        (_, freed) if freed < SMALL_BYTES => Some("a full GC frees none of it".to_owned()),
        (loaded, freed) if loaded - freed < SMALL_BYTES => {
            Some("a full GC frees all of it, so it was held by garbage".to_owned())
        }
        (_, freed) => Some(format!("a full GC frees {}, which was held by garbage", Bytes(freed))),
    };
    // Counts half as much as memory that stays, because a peak matters only for a limit.
    let peak = if site.peak_bytes >= peak_min { site.peak_bytes / 2 } else { 0 };
    let text = format!("{}: {held}{}", site.kind, at(site));
    let via = via(&site.frames).map(|via| format!("{via}; {}", several(site.allocations, "allocation")));
    let line = SiteLine::new(site.loaded_bytes.max(peak), text, via.filter(|_| is_line), collected);
    SiteLine { held_bytes: site.loaded_bytes, ..line }
}

/// The bytes that a site's threads or classes hold in addition to malloc memory: a part of the owner, and the whole
/// owner. Stacks are divided by thread count. Metaspace is divided by the malloc bytes of class loading, because
/// requesters are not recorded.
fn with_it(site: &SiteRecord, found: &ExplanationRecord, account: &AccountRecord) -> Option<(u64, u64)> {
    let of_owner = || found.sites.iter().filter(|other| other.owner == site.owner);
    let (part, all) = match site.owner.as_str() {
        "thread_stacks" => {
            let owner = account.owners.iter().find(|owner| owner.name == site.owner)?;
            let threads = owner.detail.iter().map(|detail| detail.count).sum::<u64>();
            (site.made, threads.max(of_owner().map(|other| other.made).sum()))
        }
        "metaspace" => (site.loaded_bytes, of_owner().map(|other| other.loaded_bytes).sum()),
        _ => return None,
    };
    let whole = account.holds(&site.owner);
    (part > 0).then(|| ((whole as f64 * part as f64 / all.max(1) as f64) as u64, whole))
}

/// A site that starts threads or loads classes.
fn line_of_makers(site: &SiteRecord, (part, whole): (u64, u64)) -> SiteLine {
    let place = shortened(&site.site, NAME_MAX);
    let [part_mib, whole_mib] = [part, whole].map(mib);
    let all = format!("all {whole_mib} MiB");
    let share = if part_mib == whole_mib { all } else { format!("about {part_mib} of {whole_mib} MiB") };
    let text = match (site.owner.as_str(), site.made) {
        ("thread_stacks", made) => format!("thread stacks: {share}, {} started at {place}", several(made, "thread")),
        (_, made @ 0..=1) => {
            let loaded = if made == 1 { "classes of a loader created" } else { "classes loaded" };
            format!("metaspace: {share}, {loaded} at {place}")
        }
        (_, made) => format!("metaspace: {share}, classes of {} created at {place}", several(made, "class loader")),
    };
    let more = (site.loaded_bytes >= ROW_BYTES_MIN).then(|| format!("plus {} of malloc", Bytes(site.loaded_bytes)));
    let only_loads_classes = site.owner != "thread_stacks" && site.made == 0;
    let bytes = part.saturating_add(site.loaded_bytes);
    SiteLine { only_loads_classes, ..SiteLine::new(bytes, text, via(&site.frames), more) }
}

fn line_of_holder(holder: &HolderRecord, found: &ExplanationRecord) -> SiteLine {
    let mostly = holder.classes.first().map(|class| {
        let count = if class.instances == 1 { "one".to_owned() } else { grouped(class.instances) };
        format!(", mostly {count} {}", shortened(&class.name, NAME_MAX))
    });
    let (held, by) = (Bytes(holder.retained_bytes), shortened(&holder.name, NAME_MAX));
    let made = allocated(holder, &found.objects).map(|site| format!(", allocated at {site}")).unwrap_or_default();
    let text = format!("Java heap: {held} kept by {by}{}{made}", mostly.unwrap_or_default());
    let objects = several(holder.objects, "object");
    let cure = diagnosis::cure_of_holder(&holder.name);
    let more = cure.map_or_else(|| objects.clone(), |cure| format!("{objects}; {cure}"));
    SiteLine { more: objects, ..SiteLine::new(holder.retained_bytes, text, down_to(&holder.path), Some(more)) }
}

/// The steps below a site, preferably Java code.
fn via(steps: &[String]) -> Option<String> {
    let is_native = |step: &&String| step.contains('`');
    let below = steps.iter().skip(1);
    let java: Vec<&String> = below.clone().take_while(|step| !is_native(step)).collect();
    let below: Vec<&String> = if java.is_empty() { below.collect() } else { java };
    let mut shown: Vec<String> = below.iter().take(STEPS_MAX).map(|step| shortened(step, NAME_MAX)).collect();
    shown.extend((below.len() > STEPS_MAX).then(|| "…".to_owned()));
    (!shown.is_empty()).then(|| format!("via {}", shown.join(" > ")))
}

/// The last steps from a holder to where objects accumulate. Earlier steps belong to request-handling code.
fn down_to(steps: &[String]) -> Option<String> {
    let below = steps.get(1..).unwrap_or_default();
    let left_out = below.len().saturating_sub(STEPS_MAX);
    let shown = below[left_out..].iter().map(|step| shortened(step, NAME_MAX));
    let shown: Vec<String> = (left_out > 0).then(|| "…".to_owned()).into_iter().chain(shown).collect();
    (!below.is_empty()).then(|| format!("via {}", shown.join(" > ")))
}

/// How much of the heap the holders explain.
fn coverage(found: &ExplanationRecord) -> Option<String> {
    let heap = found.heap.as_ref().filter(|heap| heap.live_bytes > 0)?;
    let share = heap.covered_bytes.min(heap.live_bytes) as f64 / heap.live_bytes as f64;
    Some(format!("These holders account for {:.0}% of the heap dump.", 100.0 * share))
}

fn sites(found: &ExplanationRecord) -> Table {
    let row = |site: &SiteRecord| {
        let sizes = [site.loaded_bytes, site.kept_bytes, site.peak_bytes].map(mib);
        let name = vec![site.kind.clone(), line_of(site).unwrap_or_default()];
        [name, sizes.to_vec(), vec![grouped(site.allocations)]].concat()
    };
    let head = ["memory", "allocated at", "loaded", "after a full GC", "peak", "allocations"];
    let rows = found.sites.iter().filter(|site| site.loaded_bytes.max(site.peak_bytes) >= ROW_BYTES_MIN).map(row);
    Table::new("native memory by code, MiB", head, rows).worded(2, 0)
}

fn objects(objects: &[AllocatedRecord]) -> Table {
    let row = |of: &AllocatedRecord| {
        let (class, site) = (shortened(&of.class, NAME_MAX), shortened(&of.site, NAME_MAX));
        vec![class, site, mib(of.bytes), grouped(of.samples)]
    };
    let head = ["class", "allocated at", "MiB", "samples"];
    let rows = objects.iter().filter(|of| of.bytes >= ROW_BYTES_MIN).map(row);
    Table::new("live objects by code, estimated from samples, MiB", head, rows).worded(2, 0)
}

fn calls(calls: &[CallRecord]) -> Table {
    let row = |site: &CallRecord| {
        let purpose = match site.purpose {
            CallPurpose::StartsProcess => "child process",
            CallPurpose::OpensFile => "file",
        };
        let (line, way) = (shortened(&site.site, NAME_MAX), via(&site.frames).unwrap_or_default());
        vec![purpose.to_owned(), line, way, grouped(site.calls)]
    };
    let head = ["opened or started", "at", "via", "calls"];
    Table::new("child processes and files by code", head, calls.iter().map(row)).worded(3, 0)
}

fn holders(holders: &[HolderRecord]) -> Table {
    let row = |holder: &HolderRecord| {
        let classes = holder.classes.iter().map(|class| format!("{} {}", grouped(class.instances), class.name));
        let classes: Vec<String> = classes.collect();
        let name = shortened(&holder.name, NAME_MAX);
        vec![name, mib(holder.retained_bytes), grouped(holder.objects), shortened(&classes.join(", "), NAME_MAX)]
    };
    let head = ["kept by", "MiB", "objects", "mostly"];
    Table::new("live objects by holder, MiB", head, holders.iter().map(row)).worded(1, 1)
}

#[cfg(test)]
#[path = "explanation_tests.rs"]
mod tests;
