//! Recommends sizes for a running JVM from measurements, without trials.
//!
//! ```text
//! -Xmx   live set + room (`heap_with_room`), but no more than the heap's largest size so far
//! limit  -Xmx + each other owner with its growth + kernel + kept page cache + other processes + headroom; no headroom
//!        for memory that itself leaves room: mapped file pages, which the kernel can drop, and memory retained by
//!        malloc, which malloc reuses
//!        at least the measured peak, without the heap above -Xmx unless the JVM is younger than two minutes
//! ```

use crate::doubt::Doubt;
use crate::record::{AdviceConfidence, AdvicePart, AdviceRecord, AdviceRow, heap_with_room, to_set, whole};
use crate::rules::rules;
use crate::scenario::{RamShare, shell_word, shell_words};
use crate::units::{Bytes, MIB, roughly, several};

/// HotSpot accepts no smaller heap (`gc_globals.hpp`, JDK 11 to 27).
const HEAP_LEAST: u64 = 2 * MIB;
/// One day shows one daily peak; a week shows all of its peaks.
const DAY_S: f64 = 86_400.0;
const WEEK_S: f64 = 7.0 * DAY_S;
/// The number of old collections after which a live set counts as well known.
const OLD_COLLECTIONS_MIN: u64 = 3;
/// A younger JVM is still loading classes and compiling.
const FRESH_S: f64 = 600.0;
/// An even younger JVM has not yet shown which part of its heap it can do without.
const YOUNG_S: f64 = 120.0;
/// The same margin for direct memory as in a search.
const DIRECT_ROOM: f64 = 1.25;
const DIRECT_ROOM_MIB: u64 = 4;
const DIRECT_MAX: &str = "-XX:MaxDirectMemorySize=";
/// With less memory than this, a JVM chooses Serial by default (`os::is_server_class_machine`, JDK 11 to 26).
const SERVER_CLASS: u64 = 1792 * MIB;
/// A kernel stack (`THREAD_SIZE`, x86-64 and arm64), and a page table entry per page.
const KERNEL_STACK: u64 = 16 << 10;
const PAGE: u64 = 4096;
const PAGE_ENTRY: u64 = 8;
/// Longer commands are left to the user.
const COMMAND_CHARS_MAX: usize = 400;

/// A JVM as observed once, in a history, or in trials; [`Seen::with`] combines several observations.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// The heap.
    pub heap: HeapSeen,
    /// Maximum memory outside the heap, by owner.
    pub parts: Vec<PartSeen>,
    /// Kernel memory charged for it.
    pub kernel: u64,
    /// Page cache that the kernel cannot reclaim.
    pub kept_cache: u64,
    /// Anonymous memory of other processes in its container.
    pub others: u64,
    /// Resident memory that itself leaves room: file pages, which the kernel can drop, and freed memory, which malloc
    /// reuses.
    pub spare: u64,
    /// The largest RSS or unreclaimable charge.
    pub peak: u64,
    /// The minimum heap at that peak.
    pub heap_at_peak: u64,
    /// Maximum direct memory.
    pub direct: u64,
    /// How long it was watched; 0 for a single observation.
    pub watched_s: f64,
    /// Its age; `None` if unknown.
    pub age_s: Option<f64>,
    /// Number of watched lives with this name.
    pub lives: u64,
    /// Number of days whose peak was near the highest one.
    pub peaks: u64,
    /// Number of trials under load that ended with a full collection.
    pub trials: u64,
    /// The current limit.
    pub limit_now: Option<u64>,
    /// The collector's name in the account.
    pub collector: Option<String>,
    /// Whether a history shows that it grows without bound.
    pub grows: bool,
    /// Reasons to distrust the trials, each kind once.
    pub doubts: Vec<Doubt>,
    /// The archive of its trials, as an argument of `find`; empty without trials.
    pub scenario: String,
}

/// The observed heap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HeapSeen {
    /// The maximum that the last collections left; `None` if nothing is known about the heap.
    pub left: Option<u64>,
    /// How many of these collections were of the old generation; if none, `left` is an upper bound.
    pub old_collections: u64,
    /// Maximum bytes allocated per second.
    pub allocated_per_s: Option<f64>,
    /// Maximum committed heap.
    pub committed: Option<u64>,
    /// The maximum size of the heap.
    pub max: Option<u64>,
}

/// An observed owner outside the heap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartSeen {
    /// Its name in the account.
    pub owner: String,
    /// Its maximum bytes.
    pub bytes: u64,
    /// Growth in the second half of the observed time; `None` if unknown.
    pub growth: Option<u64>,
}

impl Seen {
    /// Combines the two by taking the larger of each number, because a limit must be large enough for both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        // The limit must be large enough for the higher peak, and for the peak with more memory outside the heap.
        let above = |of: &Self| of.peak.saturating_sub(of.heap_at_peak);
        let (peak, above) = (self.peak.max(other.peak), above(&self).max(above(&other)));
        let mut doubts = self.doubts;
        for doubt in other.doubts {
            if !doubts.iter().any(|known| known.is_like(&doubt)) {
                doubts.push(doubt);
            }
        }
        let (mut parts, more) = (self.parts, other.parts);
        for part in more {
            match parts.iter_mut().find(|known| known.owner == part.owner) {
                Some(known) => {
                    known.bytes = known.bytes.max(part.bytes);
                    known.growth = known.growth.max(part.growth);
                }
                None => parts.push(part),
            }
        }
        Self {
            heap: self.heap.with(other.heap),
            parts,
            kernel: self.kernel.max(other.kernel),
            kept_cache: self.kept_cache.max(other.kept_cache),
            others: self.others.max(other.others),
            spare: self.spare.max(other.spare),
            peak,
            heap_at_peak: peak - above,
            direct: self.direct.max(other.direct),
            watched_s: self.watched_s + other.watched_s,
            age_s: self.age_s.into_iter().chain(other.age_s).reduce(f64::max),
            lives: self.lives + other.lives,
            peaks: self.peaks.max(other.peaks),
            trials: self.trials + other.trials,
            limit_now: self.limit_now.or(other.limit_now),
            collector: self.collector.or(other.collector),
            grows: self.grows || other.grows,
            doubts,
            scenario: self.scenario,
        }
    }

    /// Kernel memory of a process if no cgroup counts it: thread stacks and page tables.
    pub fn kernel_of(threads: u64, rss: u64) -> u64 {
        (threads.saturating_mul(KERNEL_STACK)).saturating_add(rss / PAGE * PAGE_ENTRY)
    }

    /// The confidence in these observations, and why it is not higher.
    fn confidence(&self) -> (AdviceConfidence, Vec<String>) {
        let (heap, mut why) = (&self.heap, Vec::new());
        let left = heap.left.map_or(String::new(), |left| format!(" {}", Bytes(left)));
        if heap.old_collections == 0 {
            why.push(format!(
                "no old GC ran, so the live set is unknown; the{left} in use after the last GC is an upper bound"
            ));
        } else if heap.old_collections < OLD_COLLECTIONS_MIN && self.trials == 0 {
            why.push(format!("only {} ran", several(heap.old_collections, "old GC")));
        }
        if heap.allocated_per_s.is_none() {
            why.push("the allocation rate is unknown, so the allocation headroom equals the live set".to_owned());
        }
        if self.trials == 0 {
            match self.watched_s {
                0.0 => why.push(
                    "the JVM was read only once, so peak RSS is the only peak known; `loadline watch` collects more \
                        data"
                        .to_owned(),
                ),
                watched if watched < DAY_S => {
                    why.push("the JVM was watched for less than a day, so its daily peak is unknown".to_owned())
                }
                watched if watched < WEEK_S => why.push("the JVM was watched for less than a week".to_owned()),
                _ => {}
            }
        } else {
            why.push("a trial is short, and its load differs from production load".to_owned());
        }
        if self.age_s.is_some_and(|age| age < FRESH_S) && self.trials == 0 {
            why.push("the JVM started recently: classes, compiled code, and caches are still growing".to_owned());
        }
        why.extend(self.doubts.iter().map(Doubt::text));
        let knows_live = heap.old_collections >= OLD_COLLECTIONS_MIN;
        let confidence = match () {
            () if !self.doubts.is_empty() => AdviceConfidence::Low,
            () if self.trials > 0 && heap.old_collections > 0 => AdviceConfidence::Medium,
            () if knows_live && self.watched_s >= WEEK_S => AdviceConfidence::High,
            () if knows_live && self.watched_s >= DAY_S => AdviceConfidence::Medium,
            () => AdviceConfidence::Low,
        };
        (confidence, why)
    }

    /// `7.0 days, 3 deployments, one peak, 41 old GCs`
    fn evidence(&self) -> String {
        let time = match self.watched_s {
            0.0 => "one reading".to_owned(),
            watched if watched >= DAY_S => format!("{:.1} days", watched / DAY_S),
            watched if watched >= 3600.0 => format!("{:.1} hours", watched / 3600.0),
            watched => format!("{watched:.0} s"),
        };
        let age = self.age_s.filter(|_| self.watched_s == 0.0);
        let age = age.map(|age| format!("{} after startup", roughly(age)));
        let lives = (self.lives > 0).then(|| several(self.lives, "deployment"));
        let trials = (self.trials > 0).then(|| format!("{} under load", several(self.trials, "trial")));
        let peaks =
            (self.peaks > 0).then(|| if self.peaks == 1 { "one peak".to_owned() } else { several(self.peaks, "peak") });
        let old = several(self.heap.old_collections, "old GC");
        [Some(time), age, lives, trials, peaks, Some(old)].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl HeapSeen {
    fn with(self, other: Self) -> Self {
        // The memory left by an old collection is closer to the truth than an upper bound.
        let left = match (self.old_collections, other.old_collections) {
            (0, 1..) => other.left,
            (1.., 0) => self.left,
            _ => self.left.max(other.left),
        };
        // If the other life's bound is unknown, that life may have exceeded this one's bound.
        let is_of_both = self.left.is_some() && other.left.is_some();
        let most =
            |own: Option<u64>, other: Option<u64>| if is_of_both { Some(own?.max(other?)) } else { own.max(other) };
        Self {
            left,
            old_collections: self.old_collections + other.old_collections,
            allocated_per_s: self.allocated_per_s.into_iter().chain(other.allocated_per_s).reduce(f64::max),
            committed: most(self.committed, other.committed),
            max: most(self.max, other.max),
        }
    }

    fn second(self) -> Option<u64> {
        self.allocated_per_s.map(|per_s| per_s.max(0.0) as u64)
    }

    /// The maximum heap to set, in whole MiB.
    fn to_set(self) -> Option<u64> {
        let left = self.left?;
        let wanted = heap_with_room(left, self.allocated_per_s);
        // The largest heap so far keeps the JVM working as before. Before any old collection, however, the JVM may have
        // been young.
        let most = if self.old_collections > 0 { self.committed.or(self.max) } else { self.max };
        let heap = most.map_or(wanted, |most| wanted.min(most)).max(left).max(HEAP_LEAST);
        Some(whole(heap))
    }
}

/// The headroom: that of a search at high confidence, otherwise more.
fn headroom(confidence: AdviceConfidence) -> f64 {
    match confidence {
        AdviceConfidence::High => 0.10,
        AdviceConfidence::Medium => 0.15,
        AdviceConfidence::Low => 0.25,
    }
}

/// Returns the sizes to set; `command` is the JVM's command line, if known.
pub fn advise(seen: &Seen, command: &[String]) -> AdviceRecord {
    let (confidence, why) = seen.confidence();
    let mut advice = AdviceRecord {
        limit_now_bytes: seen.limit_now,
        heap_max_now_bytes: seen.heap.max,
        confidence,
        evidence: seen.evidence(),
        why,
        ..AdviceRecord::default()
    };
    let Some(heap) = seen.heap.to_set() else {
        advice.refused = Some("its heap is unknown: the JVM has no counters, and its tables cannot be read".to_owned());
        return advice;
    };
    if seen.grows {
        advice.refused = Some(
            "its memory grows without bound, so no limit is large enough; `loadline watch --once` shows what \
                grows"
                .to_owned(),
        );
        return advice;
    }
    advice.rows = rows(seen, heap, headroom(confidence));
    let limit = advice.rows.iter().map(|row| row.bytes).fold(0, u64::saturating_add);
    advice.heap_bytes = Some(heap);
    advice.without = command.iter().filter(|word| sets_heap(word)).cloned().collect();
    (advice.limit_bytes, advice.request_bytes) = (Some(limit), Some(limit));
    // With its current maximum, the heap may grow beyond what was resident at the peak.
    let may_grow = seen.heap.max.map_or(0, |max| max.saturating_sub(seen.heap_at_peak));
    advice.limit_as_is_bytes = Some(to_set(seen.peak.saturating_add(may_grow), None, headroom(confidence)).0);
    advice.options = options(seen, heap, limit, command);
    advice.share_options = RamShare::options(heap, limit);
    advice.others = rules(heap, limit, None);
    advice.prove = prove(seen, limit, &advice.options, command);
    advice
}

/// The calculation; the rows add up to the limit, in whole MiB.
fn rows(seen: &Seen, heap: u64, headroom: f64) -> Vec<AdviceRow> {
    let left = seen.heap.left.unwrap_or(0);
    let live = if seen.heap.old_collections > 0 { AdvicePart::LiveSet } else { AdvicePart::LiveSetAtMost };
    let row = |kind, bytes| AdviceRow { kind, bytes, ..AdviceRow::default() };
    let seen_row = |kind, bytes| AdviceRow { seen_bytes: Some(bytes), ..row(kind, bytes) };
    let room = AdviceRow { seen_bytes: seen.heap.second(), ..row(AdvicePart::AllocationRoom, heap - left) };
    let mut rows = vec![seen_row(live, left), room];
    rows.extend(seen.parts.iter().map(|part| AdviceRow {
        kind: AdvicePart::Owner,
        owner: part.owner.clone(),
        seen_bytes: Some(part.bytes),
        growth_bytes: part.growth,
        bytes: part.bytes.saturating_add(part.growth.unwrap_or(0)),
    }));
    let others = [
        (AdvicePart::Kernel, seen.kernel),
        (AdvicePart::KeptPageCache, seen.kept_cache),
        (AdvicePart::OtherProcesses, seen.others),
    ];
    rows.extend(others.into_iter().filter(|(_, bytes)| *bytes > 0).map(|(kind, bytes)| seen_row(kind, bytes)));
    let sum = rows.iter().map(|row| row.bytes).fold(0, u64::saturating_add);
    // Heap that was resident at the peak but exceeds `-Xmx` was not needed.
    let is_young = seen.age_s.is_some_and(|age| age < YOUNG_S);
    let given_back = if is_young { 0 } else { seen.heap_at_peak.saturating_sub(heap) };
    let needed = seen.peak.saturating_sub(given_back);
    let above = needed.saturating_sub(sum);
    if above > 0 {
        rows.push(AdviceRow { seen_bytes: Some(seen.peak), ..row(AdvicePart::AtPeak, above) });
    }
    let sum = sum.saturating_add(above);
    let spare = seen.spare.min(sum.saturating_sub(heap));
    let limit = whole(to_set(sum - spare, None, headroom).0.saturating_add(spare));
    rows.push(row(AdvicePart::Headroom, limit.saturating_sub(sum)));
    rows
}

/// `-Xmx`; a direct memory ceiling if the default, `-Xmx`, is too low; and the current collector if the JVM would
/// choose Serial for such a small limit.
fn options(seen: &Seen, heap: u64, limit: u64, command: &[String]) -> Vec<String> {
    let needed = (seen.direct as f64 * DIRECT_ROOM / MIB as f64).ceil() as u64 + DIRECT_ROOM_MIB;
    let is_set = command.iter().any(|word| word.contains(DIRECT_MAX));
    let direct = (seen.direct > 0 && !is_set && needed * MIB > heap).then(|| format!("{DIRECT_MAX}{needed}m"));
    let has_collector = command.iter().any(|word| word.starts_with("-XX:+Use") && word.ends_with("GC"));
    let chose_g1 = seen.collector.as_deref() == Some("G1") && !has_collector;
    let gets_small = limit < SERVER_CLASS && seen.limit_now.is_none_or(|now| now >= SERVER_CLASS);
    let collector = (chose_g1 && gets_small).then(|| "-XX:+UseG1GC".to_owned());
    std::iter::once(format!("-Xmx{}", Bytes(heap).java())).chain(direct).chain(collector).collect()
}

/// Whether a word of the command sets the heap, and so overrides or contradicts `JAVA_TOOL_OPTIONS`.
fn sets_heap(word: &str) -> bool {
    ["-Xmx", "-Xms", "-XX:MaxHeapSize=", "-XX:InitialHeapSize="].iter().any(|head| word.starts_with(head))
}

/// The command that tests the limit. Without trials, the user must supply the rate and URL of the load.
fn prove(seen: &Seen, limit: u64, options: &[String], command: &[String]) -> String {
    let words: Vec<String> = command.iter().filter(|word| !sets_heap(word)).cloned().collect();
    let command = shell_words(&words);
    let is_known = !words.is_empty() && command.chars().count() <= COMMAND_CHARS_MAX;
    let command = if is_known { command } else { "COMMAND".to_owned() };
    let sizes = options.iter().map(|option| match option.strip_prefix("-Xmx") {
        Some(heap) => format!("--heap {heap}"),
        None => format!("--jvm={}", shell_word(option)),
    });
    let sizes = sizes.collect::<Vec<_>>().join(" ");
    let limit = Bytes(limit).java();
    match seen.scenario.as_str() {
        "" => format!("loadline find --prove {limit} {sizes} --rate RATE --url URL -- {command}"),
        archive => format!("loadline find {archive} --prove {limit} {sizes}"),
    }
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
