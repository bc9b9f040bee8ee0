//! The next command of an answer, in a line below it.

use super::comparison::undecided;
use crate::page::Part;
use crate::record::{Document, GrowthWord, Outcome, Trial, WatchedJvm};
use crate::words::pairs;

/// More blocks for what is open; the limit of a server that was weighed; an interval for trials that were not repeated.
pub(super) fn of_trials(document: &Document) -> Option<Part> {
    let trials = &document.trials;
    let is_complete = |trial: &Trial| trial.outcome == Outcome::Completed;
    if document.comparisons.iter().any(|row| row.blocks > 1) {
        let rows = pairs(document, true).into_iter().flat_map(|pair| pair.rows).collect::<Vec<_>>();
        // Archives get no more blocks.
        let is_open = document.archives.is_empty() && undecided(&rows).next().is_some();
        return is_open.then(|| line("`--until-sure 30` adds blocks until these metrics are decided, 30 at most."));
    }
    let text = match trials.as_slice() {
        [one] if is_complete(one) && one.marks.iter().any(|mark| mark.account.is_some()) => {
            "`loadline find` with the same arguments searches the smallest limit that holds."
        }
        [_, _, ..] if trials.iter().all(is_complete) => {
            "`loadline compare` with the same arguments repeats them, for an interval of each difference."
        }
        _ => return None,
    };
    Some(line(text))
}

/// Whether a JVM grows.
pub(super) fn of_account(pid: u32) -> Part {
    line(&format!("`loadline watch {pid}` tells whether it grows."))
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
