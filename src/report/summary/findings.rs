//! What stands out in trials or in an account: the findings that are worth a reader's time first.

use super::block::Block;
use crate::record::{FindingRecord, each_once};
use crate::units::several;

/// Findings on a screen.
const SHOWN_MAX: usize = 5;

/// The findings of trials, or of an account, with what to do.
pub(super) fn blocks(title: &str, found: &[FindingRecord]) -> Vec<Block> {
    if found.is_empty() {
        return Vec::new();
    }
    let shown = shown(found);
    let list = shown.iter().map(|one| (told(one), one.next.clone())).collect();
    let left = found.len() - shown.len();
    let more = (left > 0).then(|| Block::Text(format!("{} more: `--json`", several(left as u64, "finding"))));
    [Block::Heading(title.to_owned()), Block::Doubts(list)].into_iter().chain(more).collect()
}

/// Those that fit a screen: the first one of each configuration, then the second one of each, in the order of
/// configurations.
fn shown(found: &[FindingRecord]) -> Vec<&FindingRecord> {
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

/// A finding with whose it is.
pub(in crate::report) fn told(found: &FindingRecord) -> String {
    let Some(of) = &found.of else { return found.text.clone() };
    let alike = match of.trials_alike {
        0 | 1 => String::new(),
        trials => format!(" (so in {trials} trials)"),
    };
    format!("{}: {}{alike}", of.configuration, found.text)
}
