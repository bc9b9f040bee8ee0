//! Records of a tuning: the purpose of each trial, and the overall result.

use super::{ComparisonRecord, FindRecord, Missed, ProbeVerdict};
use crate::scenario::{Change, Objective};
use serde::{Deserialize, Serialize};

/// Purpose and result of one tuning trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneTrialRecord {
    /// Tuning stage.
    pub stage: TuneStage,
    /// IDs of the applied remedies, in table order; empty for the unchanged configuration.
    pub remedies: Vec<String>,
    /// Constant rates that replaced closed phases; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<PhaseRate>,
    /// Whether the target was met.
    pub verdict: ProbeVerdict,
    /// Missed targets with numbers, or the reason why the trial was discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// Missed conditions behind `why`, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
    /// Requested changes that are not in effect, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_force: Vec<String>,
    /// Duration up to the end of the subject.
    #[serde(default)]
    pub seconds: f64,
}

/// Constant rate that replaced a closed phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseRate {
    /// Name of the phase.
    pub phase: String,
    /// Requests per second.
    pub rate_per_s: f64,
}

/// A tuning stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TuneStage {
    /// One trial that determines the rates of closed phases and the connections of a fast warm-up.
    Reference,
    /// The unchanged configuration.
    Baseline,
    /// All free remedies at once, and subsets of them.
    Bundle,
    /// One remedy fewer, or a milder level of one.
    LeaveOut,
    /// One remedy more.
    Race,
    /// A run that creates a class archive, without measurements.
    Training,
    /// The winner against the unchanged configuration, in alternating trials.
    Confirmation,
}

/// How tuning ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TuneOutcome {
    /// Fresh trials confirmed the result of the search.
    Proved,
    /// Fresh trials confirmed that it saves memory, but their CPU time varies too much to tell whether it exceeds the
    /// price.
    Unpriced,
    /// No remedy helped, or none was confirmed.
    NothingProved,
    /// The unchanged configuration misses the target.
    NotHeld,
    /// A dry run: nothing was tried.
    Planned,
    /// Tuning ended before it was complete.
    GivenUp,
}

/// The result of tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneRecord {
    /// How it ended.
    pub outcome: TuneOutcome,
    /// Result in one sentence.
    pub text: String,
    /// The metric that tuning minimizes.
    pub objective: Objective,
    /// Allowed increase in CPU time per request, as a share.
    pub price: f64,
    /// The price in CPUs at this load; `null` if CPU time was not measured.
    #[serde(default)]
    pub price_cpus: Option<f64>,
    /// Conditions that had to hold in every valid trial.
    pub target: Vec<String>,
    /// Constant rates that replaced closed phases; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<PhaseRate>,
    /// Memory and CPU cost of the unchanged configuration; `null` before the first trials.
    pub as_is: Option<SettingRecord>,
    /// Settings to apply; empty if nothing was confirmed.
    pub answer: Vec<String>,
    /// These settings as changes.
    pub changes: Vec<Change>,
    /// The winner against the unchanged configuration, from the confirmation alone: objective, CPU time, times, and
    /// rates. Empty if nothing was confirmed.
    pub gains: Vec<ComparisonRecord>,
    /// Owners in the confirmation, largest change first.
    pub owners: Vec<OwnerGain>,
    /// Confirmation attempts, in time order.
    pub confirmations: Vec<ConfirmationRecord>,
    /// All remedies, in table order, and what became of them.
    pub remedies: Vec<RemedyRecord>,
    /// Settings measured along the way, in the order of their first trials, starting with the unchanged configuration.
    pub path: Vec<SettingRecord>,
    /// Settings with the least memory at each price among those that met the target, from the unchanged configuration
    /// to the least memory.
    pub front: Vec<SettingRecord>,
    /// Smallest limits with the unchanged configuration and with the winner; `null` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LinesRecord>,
    /// Variation between fresh processes with the same settings.
    pub noise: Option<NoiseRecord>,
    /// Reasons to distrust the result, one sentence each.
    pub doubts: Vec<String>,
    /// Trials run, excluding those of `lines`.
    pub trials: u32,
    /// Duration of these trials.
    pub seconds: f64,
}

impl TuneRecord {
    /// The user's options that the result removes, as typed or as the JVM reports them.
    pub fn taken_out(&self) -> Vec<String> {
        let of = |change: &Change| if let Change::Without(words) = change { words.clone() } else { Vec::new() };
        super::each_once(self.changes.iter().flat_map(of))
    }
}

/// A set of remedies and its measured memory and CPU cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingRecord {
    /// IDs of the remedies; empty for the unchanged configuration.
    pub remedies: Vec<String>,
    /// Settings to apply, as typed.
    pub options: Vec<String>,
    /// Tuning stage in which it was first tried.
    pub stage: TuneStage,
    /// Number of valid trials.
    pub trials: u32,
    /// Whether the target was met in all trials.
    pub holds: bool,
    /// Mean of the objective over the trials; `null` if not measured.
    pub bytes: Option<f64>,
    /// CPU time per request, divided by that of the unchanged configuration; `null` if not measured.
    pub cpu_ratio: Option<f64>,
    /// Mean size of each owner over the trials, in account order.
    pub owners: Vec<OwnerBytes>,
    /// Missed targets, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// Size of an owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerBytes {
    /// Its name, as in the account.
    pub owner: String,
    /// Resident memory.
    pub bytes: f64,
}

/// Size of an owner with the unchanged configuration and with the winner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerGain {
    /// Its name, as in the account.
    pub owner: String,
    /// With the unchanged configuration, median of the confirmation.
    pub before_bytes: f64,
    /// With the winner, median of the confirmation.
    pub after_bytes: f64,
}

/// An attempt to confirm a set of remedies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfirmationRecord {
    /// IDs of the remedies.
    pub remedies: Vec<String>,
    /// Whether they were confirmed.
    pub confirmed: bool,
    /// Number of blocks of two trials.
    pub blocks: u32,
    /// Allowed increase in CPU time per request, as a share: the price, or the value of the saved memory.
    #[serde(default)]
    pub price: f64,
    /// Why they were not confirmed.
    pub why: String,
}

/// What became of a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is part of the result.
    Kept,
    /// It was part of a set that was not confirmed.
    NotConfirmed,
    /// It saved less than the smallest difference that matters.
    NoEffect,
    /// It saved memory on its own, but nothing on top of the others.
    NotMissed,
    /// It saves memory but costs more than the price.
    TooCostly,
    /// Memory grew, or the target was missed.
    Harmful,
    /// The subject did not start with it.
    Refused,
    /// It was set but was not in effect in the process.
    NotInForce,
    /// It was not tried.
    NotTried,
    /// It would be tried next.
    Planned,
}

/// Why a remedy was not tried when trials or time ran out.
pub const NO_TIME: &str = "time ran out";

/// A remedy and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemedyRecord {
    /// ID, such as `malloc.arenas`; `try.1` for a remedy from the user.
    pub id: String,
    /// Effect in words.
    pub what: String,
    /// Settings applied for it, as typed; empty if not determined.
    pub options: Vec<String>,
    /// Possible cost.
    pub price: PriceClass,
    /// Upper bound on the savings, from the account of the unchanged configuration; `null` if unknown.
    pub gain_bytes_max: Option<u64>,
    /// What became of it.
    pub fate: Fate,
    /// Reason, with numbers.
    pub why: String,
    /// The user's option that prevented this remedy; `--may-remove` lets the remedy replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blames: Option<String>,
    /// Savings in addition to the other remedies set at the time, over the owners that it affects; negative if they
    /// grew, `null` if not measured.
    pub saved_bytes: Option<f64>,
    /// CPU time per request with it, divided by that without it; `null` if it was not measured.
    pub cpu_ratio: Option<f64>,
}

/// The possible cost of a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PriceClass {
    /// No known cost.
    Free,
    /// It costs some servers CPU time or latency.
    Cpu,
    /// It changes the program or its files.
    Program,
}

/// Variation between fresh processes: standard deviations of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoiseRecord {
    /// Standard deviation of the objective.
    pub bytes: f64,
    /// Standard deviation of the CPU time per request, as a share; `null` if it was not measured.
    pub cpu: Option<f64>,
}

/// The smallest limits that meet the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinesRecord {
    /// With the unchanged configuration; `null` if the search is incomplete.
    pub as_is: Option<FindRecord>,
    /// With the winner.
    pub tuned: Option<FindRecord>,
}
