//! The next command of an answer, in a line below it.

use super::comparison::undecided;
use crate::page::Part;
use crate::record::{
    AccountDocument, ChargedJvm, Document, FleetDocument, GrowthWord, LoadDocument, Outcome, Trial, WatchedJvm,
};
use crate::words::pairs;

/// More blocks for what is open; the limit of a server that was weighed; an interval for trials that were not repeated.
pub(super) fn of_trials(document: &Document) -> Option<Part> {
    let trials = &document.trials;
    let is_complete = |trial: &Trial| trial.outcome == Outcome::Completed;
    if document.comparisons.iter().any(|row| row.blocks > 1) {
        let rows = pairs(document, true).into_iter().flat_map(|pair| pair.rows).collect::<Vec<_>>();
        // Archives get no more blocks.
        let is_open = document.archives.is_empty() && undecided(&rows).next().is_some();
        return is_open
            .then(|| line("`--until-sure 30` repeats it with more blocks, until these metrics are decided."));
    }
    let text = match trials.as_slice() {
        [one] if is_complete(one) && one.marks.iter().any(|mark| mark.account.is_some()) => {
            "`loadline find` with the same arguments finds the smallest limit that holds."
        }
        [_, _, ..] if trials.iter().all(is_complete) => {
            "`loadline compare` with the same arguments repeats them, for an interval of each difference."
        }
        _ => return None,
    };
    Some(line(text))
}

/// A steady rate after a closed load; a check after an open one.
pub(super) fn of_load(document: &LoadDocument) -> Option<Part> {
    let phase = document.phases.iter().rfind(|phase| phase.works())?;
    let text = match &phase.response_ms {
        Some(times) if document.thresholds.is_empty() => {
            let bound = rounded_up(times.p99 * CHECK_ROOM)?;
            format!("`--require 'p99<{bound}ms'` makes it a check, with an exit code.")
        }
        None => {
            let rate = rounded_up(phase.achieved_per_s * STEADY_SHARE)?;
            format!("`--rate {rate}` offers 70 % of that rate, and times each request from when it was due.")
        }
        Some(_) => return None,
    };
    Some(line(&text))
}

/// The share of the rate of a closed load that a server carries without a growing queue.
const STEADY_SHARE: f64 = 0.7;
/// The room of a check above the p99 of one load.
const CHECK_ROOM: f64 = 1.5;

/// Rounds to two digits; `None` below 1.
fn rounded_up(value: f64) -> Option<u64> {
    let step = 10f64.powf(value.log10().floor() - 1.0).max(1.0);
    (value >= 1.0).then(|| ((value / step).ceil() * step) as u64)
}

/// The next look at the same services.
pub(super) fn of_fleet(document: &FleetDocument) -> Option<Part> {
    let all_answered = document.standing.missing.is_empty() && document.standing.failed.is_empty();
    let text = "`--json fleet.json` keeps these lines; `loadline plan FLEET --last fleet.json` plans to check them.";
    (all_answered && !document.services.is_empty()).then(|| line(text))
}

/// Whether a JVM grows.
pub(super) fn of_account(document: &AccountDocument) -> Part {
    match &document.bundle {
        Some(_) => line("`--json > FILE` keeps it; with `--against FILE`, a later bundle tells what grew."),
        None => line(&format!("`loadline watch {}` tells whether it grows.", document.jvm.pid)),
    }
}

/// A JVM of a container.
pub(super) fn of_charged(jvm: &ChargedJvm) -> Part {
    line(&format!(
        "`loadline account {}` says who holds the memory of {}, and what its helpers add.",
        jvm.pid, jvm.name
    ))
}

/// One JVM of many.
pub(super) fn of_accounts(pid: u32) -> Part {
    line(&format!("`loadline account {pid}` says who holds the memory of the largest."))
}

/// The holder of memory that grows.
pub(super) fn of_watched(jvm: &WatchedJvm) -> Option<Part> {
    let pid = jvm.pid;
    let grows = jvm.growth.verdict == GrowthWord::Grows;
    grows.then(|| line(&format!("`loadline account {pid}` says who holds it; `loadline explain`, which code.")))
}

fn line(text: &str) -> Part {
    Part::Text(format!("Next: {text}"))
}
