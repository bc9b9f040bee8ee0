//! A search's trials as table rows: purpose, results, and verdict.

use super::cells::mib;
use super::drivers;
use crate::doubt::Doubt;
use crate::record::{
    CgroupRecord, FailureCause, PhaseRecord, ProbeRecord, ProbeStage, ProbeVerdict, Trial, TuneStage, TuneTrialRecord,
};
use crate::search::cpu_per_request;
use crate::table::Table;
use crate::units::{Bytes, grouped, milliseconds, per_second};
use crate::words::{NONE, dash, name_of};

/// A search trial's results over all measured phases.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Reached {
    /// Correct responses.
    pub(crate) rate_per_s: Option<f64>,
    /// The 99th percentile of the worst phase.
    pub(crate) p99_ms: Option<f64>,
    /// The subject's CPU time per correct response.
    pub(crate) cpu_us: Option<f64>,
    /// The peak charge; if the kernel does not record it, the known part of it, or peak RSS.
    pub(crate) peak_bytes: Option<u64>,
}

pub(crate) fn reached(trial: &Trial) -> Reached {
    let measured = || trial.phases.iter().filter(|phase| phase.works() && !phase.is_warmup() && phase.is_counted());
    let (answers, seconds) = measured().fold((0.0, 0.0), |(answers, seconds), phase| {
        (answers + phase.achieved_per_s * phase.seconds, seconds + phase.seconds)
    });
    let p99 = |phase: &PhaseRecord| {
        let usual = phase.usual_ms().map(|times| times.p99);
        usual.or_else(|| drivers::times(phase)?.p99)
    };
    let known = |cgroup: CgroupRecord| {
        let sum = cgroup.anon_peak_bytes.map(|anon| anon.saturating_add(cgroup.file_bytes.unwrap_or(0)));
        cgroup.peak_bytes.or(sum)
    };
    Reached {
        rate_per_s: (seconds > 0.0).then(|| answers / seconds),
        p99_ms: measured().filter_map(p99).reduce(f64::max),
        cpu_us: cpu_per_request(trial).map(|cpu_s| cpu_s * 1e6),
        peak_bytes: trial.cgroup.and_then(known).or(trial.rss_bytes_peak),
    }
}

/// Whether a doubt in a failed trial only repeats that it failed. A failure is a result, not a reason for distrust.
pub(crate) fn is_answer(trial: &Trial, doubt: &Doubt) -> bool {
    let verdict = trial.probe.as_ref().map(|of| of.verdict).or(trial.tuned.as_ref().map(|of| of.verdict));
    let failed = verdict == Some(ProbeVerdict::Fails);
    let says_so = matches!(
        doubt,
        Doubt::CutShort { .. }
            | Doubt::AchievedBelowOffered { .. }
            | Doubt::LoadFailures { .. }
            | Doubt::OperationsFailed { .. }
            | Doubt::OutOfMemoryError { .. }
    );
    failed && says_so
}

/// The verdict on the target: as an answer, and in words that follow a trial's purpose.
fn held_words(verdict: ProbeVerdict) -> (&'static str, &'static str) {
    match verdict {
        ProbeVerdict::Holds => ("yes", ": passed"),
        ProbeVerdict::Fails => ("no", ": failed"),
        ProbeVerdict::Discarded => ("discarded", ": discarded"),
    }
}

/// Every trial of a search, in execution order.
pub(crate) fn tried(trials: &[Trial]) -> Table {
    let probe = || trials.iter().filter_map(|trial| Some((trial, trial.probe.as_ref()?)));
    let mut notes = vec![
        "charge: the peak, including file pages, so never above the limit. rate and CPU: over all measured phases. \
            p99: in the worst phase."
            .to_owned(),
    ];
    if probe().any(|(_, of)| of.verdict == ProbeVerdict::Discarded) {
        notes.push("discarded: other activity on the machine disturbed the trial, so it was repeated.".to_owned());
    }
    if probe().any(|(_, of)| of.stage == ProbeStage::HeapStart) {
        notes.push("heap_start: a start without load, which passed if the server became ready.".to_owned());
    }
    let asked = probe().any(|(_, of)| of.rate_per_s.is_some());
    // A search for rates shows the offered rate instead of the constant heap.
    let varied = if asked { "offered" } else { "Xmx" };
    let head = ["#", "for", varied, "limit", "rate", "p99", "CPU", "charge", "met", "cause"];
    let rows = probe().map(|(trial, of)| row(trial, of));
    Table::new("trials, sizes in MiB, p99 in ms, CPU in us per request", head, rows).worded(2, 2).noted(notes)
}

/// The table of [`tried`] with the reasons for failures, for wide pages.
pub(crate) fn tried_told(trials: &[Trial]) -> Table {
    let mut table = tried(trials);
    table.head.push("why".to_owned());
    let probe = trials.iter().filter_map(|trial| trial.probe.as_ref());
    for (row, of) in table.rows.iter_mut().zip(probe) {
        row.push(if of.why.is_empty() { NONE.into() } else { of.why.join("; ").into() });
    }
    table.words += 1;
    table
}

fn row(trial: &Trial, probe: &ProbeRecord) -> Vec<String> {
    let reached = reached(trial);
    let per_s = |rate: f64| if rate < 100.0 { per_second(rate) } else { grouped(rate.round() as u64) };
    vec![
        (trial.index + 1).to_string(),
        name_of(probe.stage),
        probe.rate_per_s.map_or_else(|| mib(probe.heap_bytes), per_s),
        mib(trial.limit_bytes),
        reached.rate_per_s.map_or_else(dash, per_s),
        reached.p99_ms.map_or_else(dash, milliseconds),
        reached.cpu_us.map_or_else(dash, |us| format!("{us:.0}")),
        mib(reached.peak_bytes),
        held_words(probe.verdict).0.to_owned(),
        probe.cause.map_or(NONE, |cause| cause_words(cause).0).to_owned(),
    ]
}

/// The cause of a failure in a word or two, and as part of a sentence.
pub(crate) fn cause_words(cause: FailureCause) -> (&'static str, &'static str) {
    match cause {
        FailureCause::OomKill => ("OOM kill", "the kernel killed it because it ran out of memory"),
        FailureCause::OutOfMemoryError => ("OutOfMemoryError", "the JVM threw an OutOfMemoryError"),
        FailureCause::Start => ("start", "it did not start or was not ready in time"),
        FailureCause::Died => ("died", "it exited on its own"),
        FailureCause::Collections => ("collector", "GC took too much of the time"),
        FailureCause::FilePages => ("file pages", "file pages were repeatedly evicted and reread"),
        FailureCause::Times => ("times", "response times exceeded the target"),
        FailureCause::Rate => ("rate", "too few responses came back"),
        FailureCause::Failures => ("failures", "requests failed"),
        FailureCause::Other => ("target", "the target was missed"),
    }
}

pub(crate) fn trial_text(trial: &Trial) -> Option<String> {
    if let Some(tuned) = &trial.tuned {
        return Some(tuned_text(tuned));
    }
    let probe = trial.probe.as_ref()?;
    let stage = match probe.stage {
        ProbeStage::Reference => "with ample memory",
        ProbeStage::HeapStart => "for the heap, startup only",
        ProbeStage::Heap => "for the heap",
        ProbeStage::Limit => "for the limit",
        ProbeStage::Warm => "for the limit with a warm page cache",
        ProbeStage::Soak => "limit to set, under a longer load",
        ProbeStage::Rate => "for the rate",
    };
    let with = [
        trial.limit_bytes.map(|limit| format!(", limit {}", Bytes(limit))),
        probe.heap_bytes.map(|heap| format!(", -Xmx{}", Bytes(heap).java())),
        probe.rate_per_s.map(|rate| format!(", {}/s offered", per_second(rate))),
    ];
    let with: String = with.into_iter().flatten().collect();
    let cause = probe.cause.map_or(String::new(), |cause| format!(", {}", cause_words(cause).1));
    Some(format!("{stage}{with}{}{cause}", held_words(probe.verdict).1))
}

/// A tuning trial: its settings, and those that had no effect.
fn tuned_text(tuned: &TuneTrialRecord) -> String {
    let set = if tuned.remedies.is_empty() { "baseline".to_owned() } else { tuned.remedies.join(", ") };
    let stage = match tuned.stage {
        TuneStage::Reference => "to set the rate, ",
        TuneStage::Baseline | TuneStage::Bundle | TuneStage::LeaveOut | TuneStage::Race => "",
        TuneStage::Training => "to create a class archive, ",
        TuneStage::Confirmation => "to confirm, ",
    };
    let absent = match tuned.not_in_force.is_empty() {
        true => String::new(),
        false => format!(", without {}", tuned.not_in_force.join(" ")),
    };
    format!("{stage}{set}{absent}{}", held_words(tuned.verdict).1)
}
