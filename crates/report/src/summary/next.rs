//! The next command of an answer, in a line below it.

use super::comparison::{seconds_of_a_block, undecided};
use crate::page::{Literal, Part};
use crate::record::{ChargedJvm, Document, FleetDocument, GrowthWord, LoadDocument, Outcome, Trial, WatchedJvm};
use crate::units::roughly;
use crate::words::pairs;

/// The command that makes more blocks for what is open, with its price.
pub(super) fn of_comparison(document: &Document) -> Option<Part> {
    let rows = pairs(document, true).into_iter().flat_map(|pair| pair.rows).collect::<Vec<_>>();
    let command = document.conditions.command.replacen("loadline run ", "loadline compare ", 1);
    // Archives get no more blocks.
    let is_open = document.archives.is_empty() && undecided(&rows).next().is_some();
    let most = BLOCKS_MORE.max(2 * document.blocks.len() as u32);
    let price = seconds_of_a_block(document).map(|seconds| format!(", at most {}", roughly(seconds * f64::from(most))));
    let title = format!("next: up to {most} blocks, until these metrics are decided{}", price.unwrap_or_default());
    let lines = vec![until_sure(&command, most)];
    (is_open && command.starts_with("loadline compare ")).then_some(Part::Literal(Literal { title, lines }))
}

/// The blocks of `--until-sure` without a number.
const BLOCKS_MORE: u32 = 30;

/// The same command until every metric is decided, in so many blocks at most. What follows `--` is the server's own.
fn until_sure(command: &str, most: u32) -> String {
    const OPTION: &str = "--until-sure";
    let (ours, server) = command.split_once(" -- ").map_or((command, None), |(ours, server)| (ours, Some(server)));
    let mut words: Vec<&str> = ours.split(' ').collect();
    if let Some(at) = words.iter().position(|word| word.starts_with(OPTION)) {
        let has_number = words.get(at + 1).is_some_and(|word| word.parse::<u32>().is_ok());
        words.drain(at..at + 1 + usize::from(words[at] == OPTION && has_number));
    }
    let server = server.map(|server| format!(" -- {server}")).unwrap_or_default();
    format!("{} {OPTION} {most}{server}", words.join(" "))
}

/// The limit of a server that was weighed; an interval for trials that were not repeated.
pub(super) fn of_trials(document: &Document) -> Option<Part> {
    let trials = &document.trials;
    let is_complete = |trial: &Trial| trial.outcome == Outcome::Completed;
    if document.comparisons.iter().any(|row| row.blocks > 1) {
        return None;
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
pub(super) fn of_account(pid: u32) -> Part {
    line(&format!("`loadline watch {pid}` tells whether it grows."))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_goes_on_with_its_own_command() {
        let of = |command: &str| until_sure(command, 30);
        assert_eq!(of("loadline compare a.yaml --trials 3"), "loadline compare a.yaml --trials 3 --until-sure 30");
        assert_eq!(of("loadline compare --until-sure 7 a.yaml"), "loadline compare a.yaml --until-sure 30");
        assert_eq!(of("loadline compare --until-sure a.yaml"), "loadline compare a.yaml --until-sure 30");
        let server = of("loadline compare --until-sure=9 --vary gc=serial,g1 -- x --until-sure 1");
        assert_eq!(server, "loadline compare --vary gc=serial,g1 --until-sure 30 -- x --until-sure 1");
    }
}
