//! The code and the objects that hold memory: the first ones to look at, each with the way to its allocation.

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
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

/// Names the section of one result.
pub(super) const ID: &str = "code";
/// Sites and holders that a screen shows together; a page has all of them.
const SHOWN_MAX: usize = 5;
/// A screen leaves out entries that hold less than this part of the largest one: its reciprocal.
const SHARE_MIN: u64 = 20;
/// A peak that is gone after the load is shown from this part of RSS on: its reciprocal.
const PEAK_SHARE_MIN: u64 = 10;
/// Steps of a way that a screen shows.
const STEPS_MAX: usize = 4;
/// Anything smaller needs no line next to larger entries.
const SMALL_BYTES: u64 = 1 << 20;
/// Anything smaller prints as 0.0 MiB in a table.
const ROW_BYTES_MIN: u64 = SMALL_BYTES / 20;
/// A step or a name, in characters.
const NAME_MAX: usize = 160;

/// Returns the findings of a trial's second start; `None` if there was no second start.
pub(super) fn of_trial(trial: &Trial, depth: Depth) -> Option<Section> {
    trial.explanation.as_ref().map(|found| section(found, told_mark(trial), trial.index, depth))
}

/// The code and the objects that hold memory, together with the owners' memory at a mark of this trial.
pub(super) fn section(found: &ExplanationRecord, mark: Option<&Mark>, trial: u32, depth: Depth) -> Section {
    let lines = lines(found, mark);
    let least = lines.first().map_or(0, |first| first.bytes / SHARE_MIN);
    let most = if depth.whole { usize::MAX } else { SHOWN_MAX };
    let shown = lines.iter().filter(|line| line.bytes >= least).take(most).cloned();
    let shown = Part::Doubts(shown.map(|line| (line.text, line.way)).collect());
    let mut parts: Vec<Part> = shown.filled().into_iter().collect();
    if lines.is_empty() && found.missing.is_empty() {
        parts.push(Part::Text("No line of code and no object holds 1 MiB.".to_owned()));
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

/// The largest holder in a sentence, with what a collection does to it; `None` if no code and no object holds a MiB at
/// the end: a recording sees the peak of compilations, which any JVM has.
pub(super) fn largest(found: &ExplanationRecord, mark: Option<&Mark>) -> Option<String> {
    lines(found, mark).into_iter().find(|line| line.held_bytes >= SMALL_BYTES).map(SiteLine::sentence)
}

/// Whether the code of the only trial holds more than its first finding is about.
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

/// The Java heap, which a recording without a heap dump leaves out, with its size.
pub(super) fn heap_unseen(document: &AccountDocument) -> Option<String> {
    let found = document.explanation.as_ref().filter(|found| found.heap.is_none() && !found.misses_objects())?;
    let heap = document.mark.heap;
    let left = heap.left_by_gc_bytes.map(|left| format!(", {} after the last GC", mib(Some(left))));
    let used = heap.used_bytes.map(|used| format!(" ({} in use{})", Bytes(used), left.unwrap_or_default()));
    let also = if found.sites.is_empty() { "" } else { " This shows native memory only." };
    Some(format!("The Java heap{} was not examined: `--objects` names what keeps it.{also}", used.unwrap_or_default()))
}

/// Whether the live heap still grows under load, and what these collections do not show. `warmed` says that an earlier
/// phase warmed the server up.
pub(super) fn growth(found: &LiveGrowthRecord, warmed: bool) -> String {
    let (collections, seconds) = (several(u64::from(found.collections), "full GC"), found.seconds.round());
    let ends = found.bytes_per_request_low.zip(found.bytes_per_request_high);
    if let (Some(slope), Some((low, high))) = (found.bytes_per_request, ends) {
        let a_minute = Bytes((found.requests as f64 * 60.0 / found.seconds.max(1.0) * slope.max(0.0)) as u64);
        let [slope, low, high] = [slope, low, high].map(amount);
        return format!(
            "The live heap still grows under load: {slope} a request ({low} to {high}, 95 % confidence), {a_minute} a \
             minute, by {collections} in {seconds} s."
        );
    }
    if found.collections < found.needed {
        return format!(
            "Loadline cannot tell whether the live heap grows: only {collections} fit into the load, and a verdict \
             needs {} (`-d` makes the load longer).",
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
        let warm = if warmed { "growth during the warm-up (`--warmup none` includes it), " } else { "" };
        return format!(
            "No leak in the Java heap: {collections} in {seconds} s of load ({} requests) left {}. This does not rule \
             out a leak of less than {} a request, {warm}or a leak of native memory.",
            grouped(found.requests),
            range(least, most),
            per_request((most - least).max(2 * found.requests))
        );
    }
    let (from, to) = (mib(first), Bytes(last));
    match moves(most - least, most) {
        true => format!(
            "The live heap grew from {from} to {to} in {seconds} s of load, {} a request. A cache that fills and a \
             leak look alike so far: `-d` makes the load longer.",
            per_request(last - first)
        ),
        false => format!(
            "The live heap grew from {from} to {to} early in {seconds} s of load and then stopped growing: later full \
             GCs left {}. Something filled up to a bound; a leak would have gone on.",
            range(least, most)
        ),
    }
}

/// Whether the live heap did not grow over as many collections as a verdict needs.
pub(super) fn is_steady(found: &LiveGrowthRecord) -> bool {
    let (first, last) = (found.live_bytes_first, found.live_bytes_last);
    let is_judged = found.bytes_per_request.is_none() && found.collections >= found.needed;
    is_judged && !moves(last.saturating_sub(first), first)
}

/// A live heap that varies by less than this part of it is still: its reciprocal.
const STILL_SHARE: u64 = 20;

fn moves(by: u64, of: u64) -> bool {
    by > SMALL_BYTES.max(of / STILL_SHARE)
}

/// The commands that show whether the live heap of a running JVM grows, which a recording of it does not.
pub(super) fn growth_unmeasured(pid: u32) -> String {
    format!(
        "Whether the live heap grows was not measured: run `loadline account {pid} --classes --json > before.json`, \
         and after more load `loadline account {pid} --classes --against before.json`."
    )
}

/// Bytes of a request: `180 bytes`, `4.4 KiB`.
fn amount(bytes: f64) -> String {
    if bytes.abs() < 1024.0 { format!("{bytes:.0} bytes") } else { format!("{:.1} KiB", bytes / 1024.0) }
}

/// The code or the object behind a finding, in words that follow it; `None` if it holds less than a MiB.
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
            makers.max_by_key(|site| site.made).map(|site| format!("made at {}", line_and_call(site)))
        }
        Finding::MetaspaceKeepsGrowing { .. } | Finding::ClassesGenerated { .. } => of_owner("metaspace", "loaded"),
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
                true => format!("{} with everything that it keeps alive", Bytes(holder.retained_bytes)),
                false => format!("kept by {}", shortened(&deepest(holder), NAME_MAX)),
            };
            let made = allocated(holder, &found.objects).map(|site| format!(", allocated at {site}"));
            (holder.retained_bytes >= SMALL_BYTES).then(|| kept + &made.unwrap_or_default())
        }
        _ => None,
    }
}

/// The line that allocated most of a holder's objects, as far as they were recorded; `None` if no line did. A line with
/// far more objects of these classes than the holder keeps allocates for others, too.
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

/// The line with the most calls of a purpose, and its share of all such calls.
fn most_calls(found: &ExplanationRecord, purpose: CallPurpose, word: &str) -> Option<String> {
    let of_purpose = || found.calls.iter().filter(|site| site.purpose == purpose);
    let most = of_purpose().max_by_key(|site| site.calls)?;
    let all: u64 = of_purpose().map(|site| site.calls).sum();
    let share = if all == most.calls { grouped(all) } else { format!("{} of {}", grouped(most.calls), grouped(all)) };
    Some(format!("{word} at {} ({share} calls)", shortened(&most.site, NAME_MAX)))
}

/// The line of a site, and the function that it calls: `A.a(A.java:1) by Deflater.<init>`.
fn line_and_call(site: &SiteRecord) -> String {
    let call = site.frames.get(1).filter(|frame| !frame.contains('`'));
    let call = call.and_then(|frame| frame.split('(').next()).map(|name| format!(" by {name}"));
    shortened(&format!("{}{}", site.site, call.unwrap_or_default()), NAME_MAX)
}

/// The fields in which the objects of a holder gather. Earlier fields belong to the code that serves requests.
fn deepest(holder: &HolderRecord) -> String {
    let fields = holder.path.get(1..).unwrap_or_default();
    match &fields[fields.len().saturating_sub(2)..] {
        [] => holder.name.clone(),
        last => last.join(" > "),
    }
}

/// The code and the objects behind the difference between configurations that were both explained.
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

/// Lists the sites and holders that have more or less than before, the largest change first.
fn differences(before: &ExplanationRecord, after: &ExplanationRecord) -> Vec<(String, String)> {
    // By kind and name: bytes more, and the way.
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

/// Sites and holders: each with its kind and its name, its bytes and the way to it.
fn held(found: &ExplanationRecord) -> impl Iterator<Item = ((String, String), u64, String)> {
    let sites = found.sites.iter().map(|site| ((site.kind.clone(), at(site)), site.loaded_bytes, via(&site.frames)));
    let holders = found.heap.iter().flat_map(|heap| &heap.holders).map(|holder| {
        let by = format!(", kept by {}", shortened(&holder.name, NAME_MAX));
        (("Java heap".to_owned(), by), holder.retained_bytes, down_to(&holder.path))
    });
    sites.chain(holders).map(|(name, bytes, way)| (name, bytes, way.unwrap_or_default()))
}

/// Whether code of the application or a library asked for this memory.
pub(super) fn is_code(site: &SiteRecord) -> bool {
    line_of(site).is_some()
}

/// The line of a site; the JVM's own activity has only a name.
fn line_of(site: &SiteRecord) -> Option<String> {
    (site.site != site.kind).then(|| shortened(&site.site, NAME_MAX))
}

/// The same line within a sentence.
fn at(site: &SiteRecord) -> String {
    line_of(site).map_or(String::new(), |line| format!(", allocated at {line}"))
}

/// A site or a holder in words.
#[derive(Debug, Clone, PartialEq)]
struct SiteLine {
    /// Its weight in the order of lines.
    bytes: u64,
    /// Memory that it holds after the load.
    held_bytes: u64,
    text: String,
    /// The way to the code, and the remark.
    way: String,
    /// The effect of a collection, or how much larger it once was.
    more: String,
}

impl SiteLine {
    /// A line with the way to the code, and a further remark.
    fn new(bytes: u64, text: String, way: Option<String>, more: Option<String>) -> Self {
        let way: Vec<String> = way.into_iter().chain(more.clone()).collect();
        Self { bytes, held_bytes: bytes, text, way: way.join("; "), more: more.unwrap_or_default() }
    }

    fn sentence(self) -> String {
        let sure = if self.more.is_empty() { String::new() } else { format!("; {}", self.more) };
        format!("{}{sure}.", self.text)
    }
}

/// Sites and holders, the heaviest first.
fn lines(found: &ExplanationRecord, mark: Option<&Mark>) -> Vec<SiteLine> {
    let account = mark.and_then(|mark| mark.account.as_ref());
    let peak_min = mark.map_or(0, |mark| mark.rss_bytes / PEAK_SHARE_MIN);
    // The owner has a larger part, which does not come from malloc.
    let has_more = |site: &SiteRecord| ["thread_stacks", "metaspace"].contains(&site.owner.as_str());
    let sites = found.sites.iter().map(|site| match account.and_then(|account| with_it(site, found, account)) {
        Some(held) => line_of_makers(site, held),
        None => line_of_site(site, found, account.filter(|_| !has_more(site)), peak_min),
    });
    let holders = found.heap.iter().flat_map(|heap| &heap.holders).map(|holder| line_of_holder(holder, found));
    let mut lines: Vec<SiteLine> = sites.chain(holders).filter(|line| line.bytes >= SMALL_BYTES).collect();
    // A peak that is gone comes after all that is still held.
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
        0 => format!("{} at its peak, freed by the end of the load", Bytes(site.peak_bytes)),
        loaded if site.peak_bytes > loaded + loaded / 4 => {
            format!("{held} after the load, {} at its peak", Bytes(site.peak_bytes))
        }
        _ => held,
    };
    let freed = site.loaded_bytes.saturating_sub(site.kept_bytes);
    let is_line = is_code(site);
    let collected = match (site.loaded_bytes, freed) {
        // The JVM's own memory comes and goes without the application.
        (loaded, _) if loaded < SMALL_BYTES || !is_line => None,
        // Without a heap dump there was no collection.
        _ if found.heap.is_none() => {
            found.missing.is_empty().then(|| "`--objects` says how much of it a full GC frees".to_owned())
        }
        (_, freed) if freed < SMALL_BYTES => Some("a full GC frees none of it".to_owned()),
        (loaded, freed) if loaded - freed < SMALL_BYTES => {
            Some("a full GC frees all of it: garbage held it".to_owned())
        }
        (_, freed) => Some(format!("a full GC frees {}, which garbage held", Bytes(freed))),
    };
    // Half as urgent as memory that stays, because only a limit feels it.
    let peak = if site.peak_bytes >= peak_min { site.peak_bytes / 2 } else { 0 };
    let text = format!("{}: {held}{}", site.kind, at(site));
    let via = via(&site.frames).map(|via| format!("{via}; {}", several(site.allocations, "allocation")));
    let line = SiteLine::new(site.loaded_bytes.max(peak), text, via.filter(|_| is_line), collected);
    SiteLine { held_bytes: site.loaded_bytes, ..line }
}

/// Returns the bytes that a site's threads or loaded classes hold in addition to malloc's memory: a part of the owner,
/// and the whole of it. Stacks are divided by the number of threads. Metaspace is divided by the bytes of malloc that
/// loading took, since nothing records who asked for it.
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
            let loaded = if made == 1 { "classes of a loader made" } else { "classes loaded" };
            format!("metaspace: {share}, {loaded} at {place}")
        }
        (_, made) => format!("metaspace: {share}, classes of {} made at {place}", several(made, "class loader")),
    };
    let more = (site.loaded_bytes >= ROW_BYTES_MIN).then(|| format!("plus {} of malloc", Bytes(site.loaded_bytes)));
    SiteLine::new(part.saturating_add(site.loaded_bytes), text, via(&site.frames), more)
}

fn line_of_holder(holder: &HolderRecord, found: &ExplanationRecord) -> SiteLine {
    let mostly = holder.classes.first();
    let mostly =
        mostly.map(|class| format!(", mostly {} {}", grouped(class.instances), shortened(&class.name, NAME_MAX)));
    let (held, by) = (Bytes(holder.retained_bytes), shortened(&holder.name, NAME_MAX));
    let made = allocated(holder, &found.objects).map(|site| format!(", allocated at {site}")).unwrap_or_default();
    let text = format!("Java heap: {held} kept by {by}{}{made}", mostly.unwrap_or_default());
    let objects = format!("{} objects", grouped(holder.objects));
    let cure = diagnosis::cure_of_holder(&holder.name);
    let more = cure.map_or_else(|| objects.clone(), |cure| format!("{objects}; {cure}"));
    SiteLine { more: objects, ..SiteLine::new(holder.retained_bytes, text, down_to(&holder.path), Some(more)) }
}

/// The steps below a site: those of Java code, if there are any.
fn via(steps: &[String]) -> Option<String> {
    let is_native = |step: &&String| step.contains('`');
    let below = steps.iter().skip(1);
    let java: Vec<&String> = below.clone().take_while(|step| !is_native(step)).collect();
    let below: Vec<&String> = if java.is_empty() { below.collect() } else { java };
    let mut shown: Vec<String> = below.iter().take(STEPS_MAX).map(|step| shortened(step, NAME_MAX)).collect();
    shown.extend((below.len() > STEPS_MAX).then(|| "…".to_owned()));
    (!shown.is_empty()).then(|| format!("via {}", shown.join(" > ")))
}

/// The last steps from a holder to the place where objects gather. Earlier steps belong to the code that serves
/// requests.
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
    let live = Bytes(heap.live_bytes);
    Some(format!("The holders that were found keep {:.0} % of the {live} of live objects.", 100.0 * share))
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
    Table::new("live objects by what keeps them, MiB", head, holders.iter().map(row)).worded(1, 1)
}

#[cfg(test)]
#[path = "explanation_tests.rs"]
mod tests;
