//! The doubts at the end of a summary: of one trial, or of all of them under one roof.

use super::block::Block;
use super::tried;
use crate::record::{DoubtRecord, Trial};

/// The section of doubts; nothing where there are none.
pub(super) fn doubts(doubts: &[DoubtRecord]) -> Vec<Block> {
    if doubts.is_empty() {
        return Vec::new();
    }
    let list = doubts.iter().map(|doubt| (doubt.text.clone(), doubt.next.clone())).collect();
    vec![Block::Heading("doubts".to_owned()), Block::Doubts(list)]
}

/// The doubts of all trials, those that ask for the same under one roof: the first of each kind, and how many trials.
pub(super) fn doubts_of_trials(trials: &[Trial]) -> Vec<DoubtRecord> {
    let alike = |one: &DoubtRecord, other: &DoubtRecord| one.doubt.is_like(&other.doubt);
    let mut found: Vec<(DoubtRecord, usize)> = Vec::new();
    for trial in trials {
        let mut of_trial: Vec<&DoubtRecord> = Vec::new();
        for doubt in trial.doubts.iter().filter(|of| !tried::is_answer(trial, &of.doubt)) {
            if !of_trial.iter().any(|other| alike(other, doubt)) {
                of_trial.push(doubt);
            }
        }
        for doubt in of_trial {
            match found.iter_mut().find(|(other, _)| alike(other, doubt)) {
                Some((_, count)) => *count += 1,
                None => found.push((doubt.clone(), 1)),
            }
        }
    }
    let told = |(doubt, count): (DoubtRecord, usize)| DoubtRecord {
        text: if count > 1 { format!("{} (in {count} of {} trials)", doubt.text, trials.len()) } else { doubt.text },
        ..doubt
    };
    found.into_iter().map(told).collect()
}
