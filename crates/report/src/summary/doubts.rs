//! The doubts at the end of a summary: of one trial, or merged over all trials.

use super::comparison;
use super::tried;
use crate::doubt::{Comparing, Doubt};
use crate::page::{Part, Section, Topic};
use crate::record::{Document, DoubtRecord, Trial};
use crate::words::gathered;

/// The section of doubts; empty without doubts.
pub(super) fn doubts(doubts: &[DoubtRecord]) -> Section {
    section(doubts.iter().map(|doubt| (doubt.text.clone(), doubt.next.clone())).collect())
}

fn section(doubts: Vec<(String, String)>) -> Section {
    Section::new(Topic::Doubts, "doubts", Part::Doubts(doubts).filled()).id("doubts")
}

/// The section of a document's doubts. Those about a tuning's answer come first; they have no next step.
pub(super) fn section_of(document: &Document) -> Section {
    let own = document.tune.iter().flat_map(|tune| &tune.doubts).map(|text| (text.clone(), String::new()));
    let others = of_document(document).into_iter().map(|doubt| (doubt.text, doubt.next));
    section(own.chain(others).collect())
}

pub(crate) fn by_kind(document: &Document) -> Vec<(DoubtRecord, usize)> {
    let all = (0..).zip(of_document(document));
    merged(all).into_iter().map(|(doubt, alike)| (doubt, alike.len() - 1)).collect()
}

/// A document's distinct doubts: those about the document as a whole, then those about its trials.
fn of_document(document: &Document) -> Vec<DoubtRecord> {
    // If trials are not shown as a comparison, there cannot be too few of them for one.
    let compares = comparison::compares(document);
    let shown =
        |doubt: &&DoubtRecord| compares || !matches!(doubt.doubt, Doubt::Comparing(Comparing::FewBlocks { .. }));
    let own = document.doubts.iter().filter(shown).cloned();
    own.chain(doubts_of_trials(&document.trials)).collect()
}

fn doubts_of_trials(trials: &[Trial]) -> Vec<DoubtRecord> {
    let of_trial = |trial: &'_ Trial| {
        let doubts = trial.doubts.iter().filter(|of| !tried::is_answer(trial, &of.doubt));
        doubts.map(|of| (trial.index + 1, of.clone())).collect::<Vec<_>>()
    };
    let told = |(doubt, of): (DoubtRecord, Vec<u32>)| {
        let place = match of.as_slice() {
            _ if trials.len() == 1 => String::new(),
            [one] => format!(" (in trial {one})"),
            all => format!(" (in {} of {} trials)", all.len(), trials.len()),
        };
        DoubtRecord { text: format!("{}{place}", doubt.text), ..doubt }
    };
    merged(trials.iter().flat_map(of_trial)).into_iter().map(told).collect()
}

/// Merges doubts of numbered items. Similar doubts become one, the first of its kind, with the numbers of all affected
/// items. An item's doubts must be adjacent.
pub(super) fn merged(doubts: impl Iterator<Item = (u32, DoubtRecord)>) -> Vec<(DoubtRecord, Vec<u32>)> {
    let doubts = doubts.map(|(number, doubt)| (doubt, number));
    let mut found = gathered(doubts, |one, other| one.doubt.is_like(&other.doubt));
    found.iter_mut().for_each(|(_, numbers)| numbers.dedup());
    found
}
