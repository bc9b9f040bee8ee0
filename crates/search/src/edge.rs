//! Finds and confirms the smallest value at which a noisy, mostly monotone yes/no function holds. Only the answers so
//! far determine the next question, so an interrupted search can resume.
//!
//! It brackets by doubling steps, bisects, then repeatedly tries the smallest value that held. A failure at this stage
//! refutes the value, because the right value holds every time. A lone failure that does not look like a lack of memory
//! may be a mishap. It is retried in two cases: a smaller value held, or no other failure shows how low the edge is.

use super::grid::Grid;
use crate::record::ProofRecord;
use std::collections::BTreeMap;

/// A value with both results is in the random zone of the edge if it is at most this far above one that held;
/// otherwise, its failure was a mishap.
const ZONE: i32 = 4;

/// A tried value, and whether it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// A value of the grid, in bytes.
    pub(super) value: u64,
    pub(super) held: bool,
    /// Whether it failed for lack of memory, so it was not a mishap.
    pub(super) strained: bool,
    /// It held, and judging by memory pressure, the edge is assumed to be this many steps lower; 0 if it barely held.
    /// `None` if there is no indication.
    pub(super) room: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// Consecutive answers that must hold, at least 1.
    pub(super) proofs: u32,
    /// Maximum number of answers; after that, the search ends without a result.
    pub(super) answers_max: u32,
    /// The first step away from the guess, in grid steps, at least 1; each further step is twice as long.
    pub(super) first_stride: i32,
    /// Confirms the smallest value that held without trying smaller ones.
    pub(super) hurried: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeStep {
    /// Try this value, in bytes.
    Probe {
        value: u64,
        /// The purpose.
        stage: Stage,
    },
    /// Found: this value held `held` times in a row. `below`, the largest value that failed, is the next smaller one
    /// unless the search was hurried.
    Found {
        value: u64,
        /// Number of consecutive times that it held.
        held: u32,
        /// All of its trials.
        proof: ProofRecord,
        /// The next smaller value; `None` if there is none to try.
        below: Option<u64>,
    },
    /// Not even the largest value held.
    Never {
        /// The largest value.
        value: u64,
    },
    /// No result within the maximum number of answers.
    GivenUp {
        /// The smallest value that held and was not refuted, if any.
        held: Option<u64>,
    },
}

/// The purpose of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Find one value that holds and one that fails.
    Bracket,
    /// Narrow the gap between them.
    Bisect,
    /// Check whether the smallest value that held does so every time.
    Prove,
    /// Check whether a single failure was a mishap.
    Recheck,
}

#[derive(Debug, Clone, Copy, Default)]
struct ValueTally {
    held: u32,
    failed: u32,
    /// How often it has held since its last failure.
    row: u32,
    /// It failed before it ever held, so not during the confirmation.
    failed_first: bool,
    /// It failed for lack of memory.
    short: bool,
    /// It held, and the edge was assumed to be this many steps lower.
    room: Option<i32>,
}

impl ValueTally {
    /// Whether its one failure was a mishap: it has held twice since.
    fn is_mishap(&self) -> bool {
        self.is_doubtful() && self.row > 1
    }

    /// Whether its one failure is being retried.
    fn is_open(&self) -> bool {
        self.is_doubtful() && self.row == 1
    }

    /// Whether its one failure may have had a cause other than memory.
    fn is_doubtful(&self) -> bool {
        self.failed == 1 && self.failed_first && !self.short
    }
}

/// The next step after these answers, in chronological order.
pub(super) fn next(grid: &Grid, patience: &Patience, answers: &[Answer]) -> EdgeStep {
    let seen = seen(grid, answers);
    let floor = floor(&seen);
    let held = seen.iter().find(|(number, of)| Some(**number) > floor && of.held > 0).map(|(number, _)| *number);
    let step = match (floor, held) {
        (Some(floor), None) if floor >= grid.high() => return EdgeStep::Never { value: grid.value(grid.high()) },
        _ => question(grid, patience, &seen, floor, held),
    };
    match step {
        EdgeStep::Probe { .. } if answers.len() as u32 >= patience.answers_max => {
            EdgeStep::GivenUp { held: held.map(|number| grid.value(number)) }
        }
        step => step,
    }
}

fn seen(grid: &Grid, answers: &[Answer]) -> BTreeMap<i32, ValueTally> {
    let mut seen = BTreeMap::<i32, ValueTally>::new();
    for answer in answers {
        let of = seen.entry(grid.number(answer.value)).or_default();
        of.failed_first |= of.held == 0 && !answer.held;
        of.short |= answer.strained && !answer.held;
        of.room = of.room.or(answer.room.filter(|_| answer.held));
        match answer.held {
            true => (of.held, of.row) = (of.held + 1, of.row + 1),
            false => (of.failed, of.row) = (of.failed + 1, 0),
        }
    }
    seen
}

/// The largest refuted value.
fn floor(seen: &BTreeMap<i32, ValueTally>) -> Option<i32> {
    let lowest_held = seen.iter().find(|(_, of)| of.held > 0).map(|(number, _)| *number);
    let refuted = |number: i32, of: &ValueTally| {
        let near = lowest_held.is_none_or(|lowest| number <= lowest + ZONE);
        of.failed > 1 || of.short || of.failed == 1 && near && !of.is_mishap()
    };
    seen.iter().rev().find(|(number, of)| refuted(**number, of)).map(|(number, _)| *number)
}

fn question(
    grid: &Grid,
    patience: &Patience,
    seen: &BTreeMap<i32, ValueTally>,
    floor: Option<i32>,
    held: Option<i32>,
) -> EdgeStep {
    let probe =
        |number: i32, stage| EdgeStep::Probe { value: grid.value(number.clamp(grid.low(), grid.high())), stage };
    let doubtful =
        |(number, of): &(&i32, &ValueTally)| of.is_open() || of.failed == 1 && of.held == 0 && Some(**number) > floor;
    if let Some((number, _)) = seen.iter().find(doubtful) {
        return probe(*number, Stage::Recheck);
    }
    let failures: u32 = seen.values().map(|of| of.failed).sum();
    if let (Some(floor), Some(held)) = (floor, held)
        && held - floor <= 1
        && failures == 1
        && seen[&floor].held == 0
        && !seen[&floor].short
    {
        return probe(floor, Stage::Recheck);
    }
    match (floor, held) {
        (None, None) => probe(0, Stage::Bracket),
        (Some(floor), None) => {
            // A value that first held and then failed is at the edge, so the next one up is the edge.
            let at_edge = seen[&floor].held > 0;
            let stride = if at_edge { 1 } else { stride(seen.keys().rev(), patience) };
            probe(floor + stride, Stage::Bracket)
        }
        (None, Some(held)) if held > grid.low() && !patience.hurried => {
            let mut rooms = seen.values().map(|of| of.room);
            let (room, above) = (rooms.next().flatten(), rooms.next().flatten());
            // The edge is most likely near the guess: the second step down is no larger than the first.
            let usual = if seen.len() == 2 { patience.first_stride.max(1) } else { stride(seen.keys(), patience) };
            let stride = match (room, above) {
                // A higher value showed the same, but the edge turned out to be lower.
                (Some(room), Some(above)) if room >= above => room.max(usual),
                (Some(room), _) => room.max(1),
                (None, _) => usual,
            };
            probe(held - stride, Stage::Bracket)
        }
        (Some(floor), Some(held)) if held - floor > 1 && !patience.hurried => {
            let at_edge = seen[&floor].held > 0;
            probe(if at_edge { floor + 1 } else { floor + (held - floor) / 2 }, Stage::Bisect)
        }
        (_, Some(held)) => match seen[&held].row {
            row if row >= patience.proofs.max(1) => EdgeStep::Found {
                value: grid.value(held),
                held: row,
                proof: proof(grid, seen, held),
                below: (held > grid.low()).then(|| grid.value(floor.unwrap_or(held - 1))),
            },
            _ => probe(held, Stage::Prove),
        },
    }
}

/// The answers for the value found. If several values were possible, the answer that selected it is not evidence for
/// it. Each smaller value that held at least once was the candidate for a while, and then failed.
fn proof(grid: &Grid, seen: &BTreeMap<i32, ValueTally>, found: i32) -> ProofRecord {
    let of = &seen[&found];
    ProofRecord {
        tried: of.held + of.failed,
        choosing: u32::from(grid.low() < grid.high()),
        candidates: seen.range(..=found).filter(|(_, of)| of.held > 0).count() as u32,
    }
}

/// How far to go beyond the outermost value: twice the previous step.
fn stride<'a>(mut outermost: impl Iterator<Item = &'a i32>, patience: &Patience) -> i32 {
    let first = patience.first_stride.max(1);
    match (outermost.next(), outermost.next()) {
        (Some(last), Some(before)) => (2 * last.abs_diff(*before) as i32).max(first),
        _ => first,
    }
}

#[cfg(test)]
#[path = "edge_tests.rs"]
mod tests;
