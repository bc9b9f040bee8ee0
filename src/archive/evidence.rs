//! The data for a report's plots from trial directories: timeline, response times, individual requests. It is thinned
//! as it is read, which bounds memory. Damaged or missing parts are reported and do not affect the rest.

use super::lines::Gaps;
use super::thinned::Thinned;
use super::{evidence_times, requests};
use crate::record::{Evidence, PhaseRecord, RequestDot, Sample, Trial};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The file of a trial's samples.
const TIMELINE: &str = "timeline.jsonl";
/// Samples kept per trial: more than a wide plot has columns.
const SAMPLES_MAX: usize = 1200;
/// Maximum number of dots per trial.
const DOTS_MAX: usize = 5000;
/// Maximum number of failed requests among the dots.
const DOTS_FAILED_MAX: usize = 2000;
/// Trials are read in parallel; each takes a few megabytes.
const THREADS_MAX: usize = 4;
/// Items held while reading, for each item that is finally kept.
const HELD: usize = 4;
/// A sample takes about 300 bytes; later versions may have more fields.
const SAMPLE_BYTES_MAX: usize = 64 << 10;

/// Reads the plot data of these trials, in order. `folder` is the archive's directory, or its `archive.jsonl`.
pub fn evidence(folder: &Path, trials: &[Trial]) -> Vec<Evidence> {
    let next = AtomicUsize::new(0);
    let read = || -> Vec<(usize, Evidence)> {
        let mut found = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(trial) = trials.get(at) else { return found };
            found.push((at, of_trial(folder, trial)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(THREADS_MAX).min(trials.len());
    let mut found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
        let mut found = read();
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        found
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, evidence)| evidence).collect()
}

fn of_trial(folder: &Path, trial: &Trial) -> Evidence {
    let mut evidence = Evidence { trial: trial.index, ..Evidence::default() };
    let Some(folder) = super::trial_folder(folder, trial) else {
        evidence.missing.push("the trial has no directory in the archive".to_owned());
        return evidence;
    };
    read_timeline(&folder, &mut evidence);
    let times = evidence_times::read(&folder, trial);
    evidence.missing.extend(times.missing);
    (evidence.intervals, evidence.spectra) = (times.intervals, times.spectra);
    read_requests(&folder, trial, &mut evidence);
    evidence
}

fn read_timeline(folder: &Path, evidence: &mut Evidence) {
    let mut gaps = Gaps::of(TIMELINE);
    let mut samples = Thinned::new(HELD * SAMPLES_MAX, join);
    if let Some(mut lines) = gaps.open(&folder.join(TIMELINE), SAMPLE_BYTES_MAX) {
        while let Some(line) = gaps.next(&mut lines) {
            match serde_json::from_slice::<Sample>(line.bytes) {
                Ok(sample) => samples.push(sample),
                Err(_) => gaps.damaged(line.number),
            }
        }
    }
    evidence.missing.extend(gaps.words());
    evidence.timeline = samples.finish(SAMPLES_MAX);
    // Lines are already in order, unless a damaged one still parses.
    evidence.timeline.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
}

/// Merges a later sample into an earlier one: maxima of sizes, latest values of counters.
fn join(into: &mut Sample, later: Sample) {
    *into = Sample {
        rss_bytes: into.rss_bytes.max(later.rss_bytes),
        pss_bytes: into.pss_bytes.max(later.pss_bytes),
        anon_bytes: into.anon_bytes.max(later.anon_bytes),
        charge_bytes: into.charge_bytes.max(later.charge_bytes),
        direct_bytes: into.direct_bytes.max(later.direct_bytes),
        heap_used_bytes: later.heap_used_bytes.or(into.heap_used_bytes),
        heap_committed_bytes: later.heap_committed_bytes.or(into.heap_committed_bytes),
        metaspace_used_bytes: later.metaspace_used_bytes.or(into.metaspace_used_bytes),
        gc_count: later.gc_count.or(into.gc_count),
        allocated_bytes: later.allocated_bytes.or(into.allocated_bytes),
        gc_ms: later.gc_ms.or(into.gc_ms),
        ..later
    };
}

fn read_requests(folder: &Path, trial: &Trial, evidence: &mut Evidence) {
    let sent = |phase: &&PhaseRecord| phase.is_sent() && phase.requests > 0;
    let mut unseen: Vec<&str> = trial.phases.iter().filter(sent).map(|phase| phase.name.as_str()).collect();
    // Drops the later of two neighbors. Rows are sorted by start, so all times stay represented.
    let mut ok = Thinned::new(HELD * DOTS_MAX, |_, _| {});
    let mut failed = Thinned::new(HELD * DOTS_FAILED_MAX, |_, _| {});
    let gaps = requests::read(&folder.join(requests::FILE), &mut |row| {
        unseen.retain(|name| *name != row.phase);
        let ms = row.response_ms.unwrap_or(row.service_ms);
        let dot = RequestDot { at_s: row.started_s, ms, failed: row.failure.is_some() };
        if dot.failed { &mut failed } else { &mut ok }.push(dot);
    });
    if gaps.unopened().is_none() {
        let none_of = |name| format!("{}: it has no requests from {name}", requests::FILE);
        evidence.missing.extend(gaps.words());
        evidence.missing.extend(unseen.into_iter().map(none_of));
    } else if !unseen.is_empty() {
        evidence.missing.extend(gaps.words());
    }
    evidence.requests = failed.finish(DOTS_FAILED_MAX);
    let left = DOTS_MAX - evidence.requests.len();
    evidence.requests.extend(ok.finish(left));
    evidence.requests.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
