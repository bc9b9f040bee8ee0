//! Observations of a JVM, from an account or from the trials of a run, to base advice on.

use crate::advice::{HeapSeen, PartSeen, Seen};
use crate::doubt::Doubt;
use crate::record::{
    AccountDocument, AccountRecord, ChargeKind, ChargeRecord, Mark, Outcome, Trial, allocated_per_s_max,
};
use crate::units::unix_s;
use loadline_jvm::owner::Owner::MallocRetained;

/// The collector whose heap is an in-memory file.
const HEAP_IN_FILES: &str = "Z";

impl Seen {
    /// A running JVM in a single account.
    pub fn of_account(document: &AccountDocument) -> Self {
        let mark = &document.mark;
        let started = document.identity.as_ref().and_then(|identity| unix_s(identity.started.as_deref()?));
        let age_s = unix_s(&document.taken).zip(started).map(|(now, then)| now.saturating_sub(then).max(1) as f64);
        let threads = mark.account.iter().flat_map(|account| &account.threads).flatten();
        let allocated = threads.filter_map(|thread| thread.allocated_bytes).reduce(u64::saturating_add);
        let mut seen = Self::of_mark(mark, document.jvm.pid, document.jvm.collector.as_deref());
        seen.heap.allocated_per_s = allocated.zip(age_s).map(|(bytes, age)| bytes as f64 / age);
        seen.peak = seen.peak.max(document.rss_bytes_peak.unwrap_or(0).saturating_add(seen.kernel));
        seen.age_s = age_s;
        seen
    }

    /// A JVM in the trials of one configuration; `None` if none of them was measured completely.
    pub fn of_trials<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> Option<Self> {
        let is_whole = |trial: &&Trial| trial.outcome == Outcome::Completed;
        trials.into_iter().filter(is_whole).filter_map(Self::of_trial).reduce(Self::with)
    }

    fn of_trial(trial: &Trial) -> Option<Self> {
        let jvm = trial.jvm.as_ref();
        let (pid, collector) = (jvm.map_or(0, |jvm| jvm.pid), jvm.and_then(|jvm| jvm.collector.as_deref()));
        let weighed = trial.marks.iter().filter(|mark| mark.account.is_some());
        let mut seen = weighed.map(|mark| Self::of_mark(mark, pid, collector)).reduce(Self::with)?;
        // The mark `collected` has the live set; the others have upper bounds.
        if let Some(live) = trial.marks.iter().filter_map(|mark| mark.heap.live_bytes).max() {
            (seen.heap.left, seen.heap.old_collections) = (Some(live), seen.heap.old_collections.max(1));
            seen.trials = 1;
        }
        seen.heap.allocated_per_s = allocated_per_s_max(&trial.phases);
        let charged = trial.cgroup.as_ref().and_then(|cgroup| cgroup.anon_peak_bytes).unwrap_or(0);
        let rss = trial.rss_bytes_peak.unwrap_or(0).saturating_add(seen.kernel);
        seen.peak = seen.peak.max(rss).max(charged);
        seen.watched_s = trial.phases.iter().map(|phase| phase.seconds).sum();
        seen.limit_now = trial.limit_bytes;
        seen.doubts = trial.doubts.iter().map(|of| of.doubt.clone()).filter(shows_less).collect();
        seen.doubts.dedup_by(|one, before| one.is_like(before));
        Some(seen)
    }

    fn of_mark(mark: &Mark, pid: u32, collector: Option<&str>) -> Self {
        let heap = &mark.heap;
        let none = AccountRecord::default();
        let account = mark.account.as_ref().unwrap_or(&none);
        let part = |(owner, bytes): (&String, u64)| PartSeen { owner: owner.clone(), bytes, growth: None };
        let parts = account.outside_heap().map(|owner| (&owner.name, owner.rss_bytes + owner.swap_bytes));
        let heap_bytes = account.heap_bytes();
        // Without a limit, the cgroup may contain all processes.
        let charge = mark.charge.as_ref().filter(|charge| charge.limit_bytes.is_some());
        let in_files = if collector.is_some_and(|name| name.starts_with(HEAP_IN_FILES)) { heap_bytes } else { 0 };
        let by_process = Self::kernel_of(mark.threads.unwrap_or(0), mark.rss_bytes);
        let kernel = charge.and_then(|charge| charge.kernel_bytes).map_or(by_process, |kernel| kernel.max(by_process));
        let charged = charge.map_or(0, |of| of.anon_bytes.saturating_add(of.shmem_bytes).saturating_add(kernel));
        let kept_cache = |of: &ChargeRecord| of.shmem_bytes.saturating_sub(in_files) + of.dirty_file_bytes.unwrap_or(0);
        let shmem = charge.map_or(0, |of| of.shmem_bytes).max(in_files);
        let files = mark.file_bytes.unwrap_or(0).saturating_sub(shmem);
        Self {
            heap: HeapSeen {
                left: heap.left_by_gc_bytes.or(heap.used_bytes).filter(|left| *left > 0),
                old_collections: heap.old_collections.unwrap_or(0),
                allocated_per_s: None,
                committed: heap.committed_bytes,
                max: heap.max_bytes,
            },
            parts: parts.filter(|(_, bytes)| *bytes > 0).map(part).collect(),
            kernel,
            kept_cache: charge.map_or(0, kept_cache),
            others: charge.map_or(0, |charge| others(charge, pid)),
            spare: files.saturating_add(account.holds(MallocRetained.name())),
            peak: charged.max(mark.rss_bytes.saturating_add(kernel)),
            heap_at_peak: heap_bytes,
            direct: mark.direct_bytes(),
            collector: collector.map(str::to_owned),
            limit_now: charge.and_then(|charge| charge.limit_bytes),
            ..Self::default()
        }
    }
}

/// Whether a trial with this doubt may have needed less memory than the server will.
fn shows_less(doubt: &Doubt) -> bool {
    use Doubt::{CutShort, LoadFailures, NeverWarm, NoisyMachine, ServerGone, SwapInUse};
    matches!(
        doubt,
        NoisyMachine { .. }
            | NeverWarm { .. }
            | LoadFailures { .. }
            | ServerGone { .. }
            | CutShort { .. }
            | SwapInUse { .. }
    )
}

/// Anonymous memory of other processes in the container.
fn others(charge: &ChargeRecord, pid: u32) -> u64 {
    let rows = charge.rows.iter().filter(|row| row.kind == ChargeKind::Anonymous);
    let others = rows.filter(|row| row.pid.is_some_and(|of| of != pid));
    others.map(|row| u64::try_from(row.bytes).unwrap_or(0)).fold(0, u64::saturating_add)
}
