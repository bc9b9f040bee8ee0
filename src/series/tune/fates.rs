//! The fate of each candidate in a replay, in words and numbers, and the attempts to confirm a setting.

use super::setting::Candidate;
use crate::record::{ConfirmationRecord, Fate, NO_TIME};
use crate::units::Bytes;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct CandidateFate {
    pub(super) fate: Fate,
    /// The reason, with numbers.
    pub(super) why: String,
    /// The bytes saved, if measured.
    pub(super) saved: Option<f64>,
    /// CPU time per request relative to the unchanged subject, if measured.
    pub(super) cpu_ratio: Option<f64>,
}

impl CandidateFate {
    /// A fate without numbers.
    pub(super) fn unmeasured(fate: Fate, why: impl Into<String>) -> Self {
        Self { fate, why: why.into(), saved: None, cpu_ratio: None }
    }

    pub(super) fn measured(fate: Fate, why: String, saved: f64, cpu_ratio: Option<f64>) -> Self {
        Self { fate, why, saved: Some(saved), cpu_ratio }
    }

    pub(super) fn no_time() -> Self {
        Self::unmeasured(Fate::NotTried, NO_TIME)
    }

    pub(super) fn not_in_force() -> Self {
        Self::unmeasured(Fate::NotInForce, "it was set, but the process did not receive it")
    }

    pub(super) fn not_confirmed() -> Self {
        Self::unmeasured(Fate::NotConfirmed, "the combination that includes it was not confirmed")
    }
}

/// The fates of all candidates so far, and the attempts to confirm.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fates<'o> {
    fates: BTreeMap<Candidate<'o>, CandidateFate>,
    savings: BTreeMap<Candidate<'o>, (f64, Option<f64>)>,
    /// Levels that replaced others.
    replaced: BTreeMap<Candidate<'o>, Candidate<'o>>,
    /// Attempts to confirm, in time order.
    pub(super) attempts: Vec<ConfirmationRecord>,
}

impl<'o> Fates<'o> {
    pub(super) fn get(&self, candidate: Candidate<'o>) -> Option<&CandidateFate> {
        self.fates.get(&candidate)
    }

    /// Bytes and CPU ratio of a candidate within the winner.
    pub(super) fn saving(&self, candidate: Candidate<'o>) -> Option<(f64, Option<f64>)> {
        self.savings.get(&candidate).copied()
    }

    /// Bytes saved so far by a candidate; 0 if unknown.
    pub(super) fn saved(&self, candidate: Candidate<'o>) -> f64 {
        self.saving(candidate).map_or(0.0, |(bytes, _)| bytes)
    }

    pub(super) fn set(&mut self, candidate: Candidate<'o>, fate: CandidateFate) {
        _ = self.fates.insert(candidate, fate);
    }

    /// Leaves the candidate without a fate.
    pub(super) fn forget(&mut self, candidate: Candidate<'o>) {
        self.fates.remove(&candidate);
    }

    pub(super) fn set_saving(&mut self, candidate: Candidate<'o>, bytes: f64, cpu_ratio: Option<f64>) {
        _ = self.savings.insert(candidate, (bytes, cpu_ratio));
    }

    /// Records that one level replaced another.
    pub(super) fn replace(&mut self, before: Candidate<'o>, by: Candidate<'o>) {
        _ = self.replaced.insert(by, before);
    }

    /// Undoes a replacement: returns the previous level, which then has no fate.
    pub(super) fn restore(&mut self, by: Candidate<'o>) -> Option<Candidate<'o>> {
        let before = self.replaced.remove(&by)?;
        self.fates.remove(&before);
        Some(before)
    }
}

/// A saving indistinguishable from noise.
pub(super) fn no_saving(saved: f64, least: f64) -> String {
    let saved = if saved < 0.0 { "nothing".to_owned() } else { Bytes(saved as u64).to_string() };
    format!("it saved {saved}; less than {} cannot be measured", Bytes(least as u64))
}

pub(super) fn saving_at_price(saved: f64, ratio: f64) -> String {
    let saved = Bytes(saved.max(0.0) as u64);
    format!("it saves {saved}, but CPU time per request changes by {:+.1}%", (ratio - 1.0) * 100.0)
}

pub(super) fn grew(bytes: f64) -> String {
    format!("memory grew by {}", Bytes(bytes as u64))
}
