//! The facts that rules use, from a trial or from an account.

use super::flags::Flags;
use crate::doubt::{Doubt, MemoryPool};
use crate::owner::Owner;
use crate::record::{
    AccountDocument, AccountRecord, CompilationRecord, DoubtRecord, Jvm, Mark, ObjectsRecord, PhaseRecord, Trial,
};
use crate::scenario::MarkPoint;
use crate::units::{Millicpus, unix_s};

/// A smaller weight, or share of RSS, is not worth a finding.
const LEAST_BYTES: u64 = 1 << 20;
const LEAST_SHARE: f64 = 0.01;

/// Spans are alike if a request adds the same amount in each, within this factor.
const ALIKE_WITHIN: f64 = 2.0;
/// If a collection frees this share of what such spans added, nothing retains that memory.
pub(super) const COLLECTED_SHARE: f64 = 0.5;

/// Marks after a rest, or whose preparation changed the memory.
const AFTER_LOAD: [MarkPoint; 3] = [MarkPoint::Rested, MarkPoint::Collected, MarkPoint::Trimmed];

/// The known facts about a JVM.
pub(super) struct Facts<'a> {
    /// Its marks in time order.
    pub(super) marks: &'a [Mark],
    /// Work and rest phases; empty for an account.
    pub(super) phases: &'a [PhaseRecord],
    pub(super) jvm: Option<&'a Jvm>,
    /// The process, if it is still running.
    pid: Option<u32>,
    pub(super) flags: Flags<'a>,
    /// The smallest limit that applies to it.
    pub(super) limit: Option<u64>,
    /// The machine's memory; `None` for a trial, whose limit is set before it starts.
    pub(super) machine_bytes: Option<u64>,
    /// CPUs that it may use, if it is pinned.
    pub(super) cpus: Option<u64>,
    pub(super) doubts: &'a [DoubtRecord],
    /// The highest RSS seen.
    pub(super) rss_peak: Option<u64>,
    /// Compilations during which RSS grew; empty for an account.
    pub(super) compilations: &'a [CompilationRecord],
    /// The live objects, if requested.
    pub(super) objects: Option<&'a ObjectsRecord>,
    /// Its age at the time of measurement.
    age_s: Option<f64>,
    /// Its known environment variables, `NAME=value`.
    env: Vec<String>,
}

impl<'a> Facts<'a> {
    pub(super) fn of_trial(trial: &'a Trial) -> Self {
        let pinned = trial.subject_cpus.as_ref().map(|cpus| cpus.len() as u64);
        let facts = Self {
            marks: &trial.marks,
            phases: &trial.phases,
            jvm: trial.jvm.as_ref(),
            pid: None,
            flags: Flags::of_trial(trial),
            limit: trial.limit_bytes,
            machine_bytes: None,
            cpus: [pinned, trial.cpu_limit().map(Millicpus::processors)].into_iter().flatten().min(),
            doubts: &trial.doubts,
            rss_peak: trial.rss_bytes_peak,
            compilations: &trial.compilations,
            objects: None,
            age_s: None,
            env: trial.env.iter().flatten().map(|(name, value)| format!("{name}={value}")).collect(),
        };
        Self { age_s: facts.weighed().map(|(mark, _)| mark.at_s), ..facts }
    }

    pub(super) fn of_account(document: &'a AccountDocument) -> Self {
        let started = document.identity.as_ref().and_then(|identity| unix_s(identity.started.as_deref()?));
        let age_s = unix_s(&document.taken).zip(started).map(|(now, then)| now.saturating_sub(then) as f64);
        Self {
            marks: std::slice::from_ref(&document.mark),
            phases: &[],
            jvm: Some(&document.jvm),
            pid: Some(document.jvm.pid),
            flags: Flags::of_account(document),
            limit: document.mark.charge.as_ref().and_then(|charge| charge.limit_bytes),
            machine_bytes: Some(document.machine.memory_bytes).filter(|bytes| *bytes > 0),
            cpus: None,
            doubts: &document.doubts,
            rss_peak: None,
            compilations: &[],
            objects: document.objects.as_ref(),
            age_s,
            env: Vec::new(),
        }
    }

    /// A diagnostic command as the user would enter it: with the pid of a running JVM, or `jcmd PID` for a trial.
    pub(super) fn jcmd(&self, command: &str) -> String {
        self.pid.map_or_else(|| format!("`jcmd PID {command}`"), |pid| format!("`jcmd {pid} {command}`"))
    }

    /// The mark that is judged, with its account: the end of the load, or else the last mark before the rest. `None`
    /// for several processes, because rules do not apply to their sums.
    pub(super) fn weighed(&self) -> Option<(&'a Mark, &'a AccountRecord)> {
        let of = |mark: &'a Mark| {
            let account = mark.account.as_ref().filter(|account| !account.owners.is_empty())?;
            mark.processes.is_empty().then_some((mark, account))
        };
        let is_after = |mark: &&Mark| AFTER_LOAD.iter().any(|point| mark.name == point.word());
        let loaded = self.at(MarkPoint::Loaded).and_then(of);
        let before = || self.marks.iter().rev().filter(|mark| !is_after(mark)).find_map(of);
        loaded.or_else(before).or_else(|| self.marks.iter().rev().find_map(of))
    }

    pub(super) fn at(&self, point: MarkPoint) -> Option<&'a Mark> {
        self.marks.iter().find(|mark| mark.name == point.word())
    }

    /// Its age in seconds at the time of measurement; `None` if unknown or very low.
    pub(super) fn age_s(&self) -> Option<f64> {
        self.age_s.filter(|age| age.is_finite() && *age >= 1.0)
    }

    /// RSS at the mark that is judged; 0 without an account.
    pub(super) fn rss(&self) -> u64 {
        self.weighed().map_or(0, |(_, account)| account.total_bytes)
    }

    /// Work phases after the warm-up.
    pub(super) fn loads(&self) -> impl DoubleEndedIterator<Item = &'a PhaseRecord> {
        self.phases.iter().filter(|phase| phase.works() && !phase.is_warmup() && phase.seconds > 0.0)
    }

    /// Pairs of successive marks with the number of responses between them, if any.
    pub(super) fn worked(&self) -> Vec<(&'a Mark, &'a Mark, u64)> {
        let span = |pair: &'a [Mark]| {
            let [from, to] = pair else { return None };
            let between = self.phases.iter().filter(|phase| (from.at_s..to.at_s).contains(&phase.at_s));
            let ok = sum(between.map(|phase| phase.ok));
            (ok > 0).then_some((from, to, ok))
        };
        self.marks.windows(2).filter_map(span).collect()
    }

    pub(super) fn collector(&self) -> &'a str {
        self.jvm.and_then(|jvm| jvm.collector.as_deref()).unwrap_or_default()
    }

    pub(super) fn heap_max(&self) -> Option<u64> {
        self.flags.number("MaxHeapSize").or_else(|| self.weighed()?.0.heap.max_bytes)
    }

    pub(super) fn release(&self) -> Option<[u64; 3]> {
        self.jvm?.release()
    }

    /// Whether an environment variable is known to be set.
    pub(super) fn is_set(&self, name: &str) -> bool {
        let malloc = self.weighed().and_then(|(_, account)| account.malloc.as_ref());
        let settings = malloc.and_then(|malloc| malloc.settings.as_ref()).into_iter().flatten();
        let mut set = self.env.iter().chain(settings);
        set.any(|set| set.split_once('=').is_some_and(|(known, _)| known == name))
    }

    /// The first printed `OutOfMemoryError`, if it was for this pool.
    pub(super) fn error_of(&self, wanted: MemoryPool) -> Option<String> {
        self.doubts.iter().find_map(|of| match &of.doubt {
            Doubt::OutOfMemoryError { error, pool } if *pool == wanted => Some(error.clone()),
            _ => None,
        })
    }

    /// The live set, if a full collection showed it.
    pub(super) fn live_after_gc(&self) -> Option<u64> {
        let collected = self.at(MarkPoint::Collected).and_then(|mark| mark.heap.live_bytes);
        collected.or(self.objects.map(|objects| objects.total.bytes)).filter(|live| *live > 0)
    }
}

/// The minimum worth a finding at this RSS.
pub(super) fn least(rss: u64) -> u64 {
    LEAST_BYTES.max((rss as f64 * LEAST_SHARE) as u64)
}

/// A part's share of a whole; 0 if the whole is 0.
pub(super) fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// The spans in which a request adds about as much as in the last one; `None` for fewer than two.
pub(super) fn alike<S>(mut spans: Vec<S>, rate: impl Fn(&S) -> f64) -> Option<Vec<S>> {
    let last = rate(spans.last()?);
    spans.retain(|span| (1.0 / ALIKE_WITHIN..=ALIKE_WITHIN).contains(&(rate(span) / last)));
    (spans.len() >= 2).then_some(spans)
}

/// The saturating sum.
pub(super) fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

pub(super) fn holds(account: &AccountRecord, owner: Owner) -> u64 {
    account.holds(owner.name())
}

/// Bytes that malloc holds for a category of Native Memory Tracking. They come from chunk headers, which an account of
/// a running JVM lists. Otherwise, the bytes that the JVM committed for the category; `None` if neither is known.
pub(super) fn tagged(mark: &Mark, tag: &str) -> Option<u64> {
    let details = mark.account.iter().flat_map(|account| &account.owners).flat_map(|owner| &owner.detail);
    let held = details.filter(|detail| detail.kind == "tag" && detail.name == tag);
    let held = sum(held.map(|part| part.rss_bytes.max(part.allocated_bytes.unwrap_or(0))));
    let category = || mark.nmt.as_ref()?.categories.iter().find(|category| category.name == tag);
    Some(held).filter(|held| *held > 0).or_else(|| Some(category()?.committed_bytes)).filter(|held| *held > 0)
}
