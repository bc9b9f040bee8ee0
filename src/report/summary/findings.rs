//! What stands out in trials or in an account: the findings that are worth a reader's time first.

use super::block::Block;
use crate::record::{FindingRecord, each_once};
use crate::units::{Bytes, several};

/// Findings on a screen.
const SHOWN_MAX: usize = 5;

/// The findings of trials, or of an account, with what to do.
pub(super) fn blocks(title: &str, found: &[FindingRecord]) -> Vec<Block> {
    if found.is_empty() {
        return Vec::new();
    }
    let shown = shown(found);
    let list = shown.iter().map(|one| (told(one), one.next.clone())).collect();
    let more = more(found, &shown).map(Block::Text);
    [Block::Heading(title.to_owned()), Block::Doubts(list)].into_iter().chain(more).collect()
}

/// How many are not shown.
pub(in crate::report) fn more(found: &[FindingRecord], shown: &[&FindingRecord]) -> Option<String> {
    let left = found.len().saturating_sub(shown.len()) as u64;
    (left > 0).then(|| format!("{} of less weight: `--json` has all.", several(left, "more finding")))
}

/// Those that fit a screen: the first one of each configuration, then the second one of each, in the order of
/// configurations.
pub(in crate::report) fn shown(found: &[FindingRecord]) -> Vec<&FindingRecord> {
    let mut ranked: Vec<(usize, &FindingRecord)> = Vec::new();
    for configuration in each_once(found.iter().map(FindingRecord::configuration)) {
        ranked.extend(found.iter().filter(|one| one.configuration() == configuration).enumerate());
    }
    let place = |one: &FindingRecord| found.iter().position(|other| std::ptr::eq(one, other));
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.truncate(SHOWN_MAX);
    ranked.sort_by_key(|(_, one)| place(one));
    ranked.into_iter().map(|(_, one)| one).collect()
}

/// A finding with whose it is, and the most that it is worth.
pub(in crate::report) fn told(found: &FindingRecord) -> String {
    let gain = match found.gain_bytes_max {
        Some(bytes) if bytes > 0 => format!(" (at most {} to gain)", Bytes(bytes)),
        _ => String::new(),
    };
    let Some(of) = &found.of else { return format!("{}{gain}", found.text) };
    let alike = match of.trials_alike {
        0 | 1 => String::new(),
        trials => format!(" (so in {trials} trials)"),
    };
    format!("{}: {}{gain}{alike}", of.configuration, found.text)
}
