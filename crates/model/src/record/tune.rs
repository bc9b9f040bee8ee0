//! Records of a tuning: the purpose of each trial, and the result of all trials together.

use super::{ComparisonRecord, FindRecord, Missed, ProbeVerdict};
use crate::scenario::{Change, Objective};
use serde::{Deserialize, Serialize};

/// The purpose and the result of one trial of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneTrialRecord {
    /// The part of the tuning.
    pub stage: TuneStage,
    /// Ids of the applied remedies, in the order of the table; empty for the unchanged configuration.
    pub remedies: Vec<String>,
    /// Constant rates that replaced closed phases, in requests per second by phase; empty if none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<PhaseRate>,
    /// Whether the target held.
    pub verdict: ProbeVerdict,
    /// The missed targets, with the numbers; or the reason why the trial was discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// The numbers behind `why`, if it is about numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
    /// Requested changes that are not in force in the process, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_force: Vec<String>,
    /// Seconds from the start of the trial to the end of its subject.
    #[serde(default)]
    pub seconds: f64,
}

/// The rate that replaced a closed phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseRate {
    /// Name of the phase.
    pub phase: String,
    /// Requests per second.
    pub rate_per_s: f64,
}

/// A part of a tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TuneStage {
    /// The single trial that provides the rates of closed phases and the connections of a fast warm-up.
    Reference,
    /// The unchanged configuration.
    Baseline,
    /// All free remedies at once, and subsets of them.
    Bundle,
    /// One remedy less, or a simpler level of one.
    LeaveOut,
    /// One remedy more.
    Race,
    /// A run that creates a class archive; it is not measured.
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
    /// Fresh trials confirmed that it saves memory. CPU time varies too much between them to tell whether it exceeds
    /// the price.
    Unpriced,
    /// No remedy helped, or none was confirmed.
    NothingProved,
    /// The target does not hold with the unchanged configuration.
    NotHeld,
    /// Only planned: nothing was tried.
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
    /// The answer in a sentence.
    pub text: String,
    /// The quantity that tuning minimises.
    pub objective: Objective,
    /// The allowed rise in CPU time per request, as a share.
    pub price: f64,
    /// The same in CPUs at this load; `null` if CPU time was not measured.
    #[serde(default)]
    pub price_cpus: Option<f64>,
    /// Conditions that had to hold in every trial that counts.
    pub target: Vec<String>,
    /// Constant rates that replaced closed phases; empty if the load is as planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<PhaseRate>,
    /// The weight and the cost of the unchanged configuration; `null` before the first trials.
    pub as_is: Option<SettingRecord>,
    /// The settings to apply; empty if nothing was proved.
    pub answer: Vec<String>,
    /// The same settings as changes.
    pub changes: Vec<Change>,
    /// The winner against the unchanged configuration, by the confirmation alone: the objective first, then CPU time,
    /// times and rates. Empty if nothing was proved.
    pub gains: Vec<ComparisonRecord>,
    /// Bytes of the owners in the confirmation, largest change first.
    pub owners: Vec<OwnerGain>,
    /// Each attempt to confirm, in time order.
    pub confirmations: Vec<ConfirmationRecord>,
    /// Every remedy of the table with its fate, in the order of the table.
    pub remedies: Vec<RemedyRecord>,
    /// Settings weighed along the way, in the order of their first trials; the unchanged configuration comes first.
    pub path: Vec<SettingRecord>,
    /// The settings with the least memory at each price, among those that held the target: from the unchanged
    /// configuration to the least memory.
    pub front: Vec<SettingRecord>,
    /// The smallest limits that hold, with the unchanged configuration and with the winner; `null` if they were not
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LinesRecord>,
    /// How far fresh processes of the same setting differ by themselves.
    pub noise: Option<NoiseRecord>,
    /// Reasons to distrust the answer, one sentence each.
    pub doubts: Vec<String>,
    /// Trials run, excluding those of `lines`.
    pub trials: u32,
    /// Duration of these trials in seconds.
    pub seconds: f64,
}

impl TuneRecord {
    /// The user's own options that the answer removes, as typed or as the JVM has them.
    pub fn taken_out(&self) -> Vec<String> {
        let of = |change: &Change| if let Change::Without(words) = change { words.clone() } else { Vec::new() };
        super::each_once(self.changes.iter().flat_map(of))
    }
}

/// A set of remedies and its weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingRecord {
    /// Ids of the remedies; empty for the unchanged configuration.
    pub remedies: Vec<String>,
    /// The settings to apply for it, as typed.
    pub options: Vec<String>,
    /// The part of the tuning in which it was first tried.
    pub stage: TuneStage,
    /// Trials that count.
    pub trials: u32,
    /// Whether the target held in all of them.
    pub holds: bool,
    /// The objective, mean of the trials; `null` if none was weighed.
    pub bytes: Option<f64>,
    /// CPU time per request, divided by that of the unchanged configuration; `null` if it was not measured.
    pub cpu_ratio: Option<f64>,
    /// Bytes that each owner held, mean of the trials, in the order of the account.
    pub owners: Vec<OwnerBytes>,
    /// The missed targets, if the target did not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// Bytes that an owner held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerBytes {
    /// Its name, as in the account.
    pub owner: String,
    /// Resident memory.
    pub bytes: f64,
}

/// Bytes that an owner held with the unchanged configuration and with the winner.
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
    /// Ids of the remedies.
    pub remedies: Vec<String>,
    /// Whether they were confirmed.
    pub confirmed: bool,
    /// Blocks of two trials that were run.
    pub blocks: u32,
    /// The allowed rise in CPU time per request, as a share: the price, or the value of the saved memory.
    #[serde(default)]
    pub price: f64,
    /// Why they were not confirmed.
    pub why: String,
}

/// The fate of a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is part of the answer.
    Kept,
    /// It was part of a set that was not confirmed.
    NotConfirmed,
    /// It was tried and saved less than the least that matters.
    NoEffect,
    /// It saved memory alone, but nothing in addition to the others.
    NotMissed,
    /// It saves memory but costs more than the price.
    TooCostly,
    /// Memory grew, or the target was missed.
    Harmful,
    /// The subject did not start with it.
    Refused,
    /// It was set but was not in force in the process.
    NotInForce,
    /// It was not tried.
    NotTried,
    /// It would be tried next.
    Planned,
}

/// Why a remedy was not tried if trials or time did not suffice.
pub const NO_TIME: &str = "there was no time left for it";

/// A remedy and its fate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemedyRecord {
    /// Its id in the table, such as `malloc.arenas`; `try.1` if the user named it.
    pub id: String,
    /// Its effect, in plain words.
    pub what: String,
    /// The settings applied for it, as typed; empty if they were not decided.
    pub options: Vec<String>,
    /// Its possible cost.
    pub price: PriceClass,
    /// The most bytes that it can save, by the account of the unchanged configuration; `null` if unknown.
    pub gain_bytes_max: Option<u64>,
    /// Its fate.
    pub fate: Fate,
    /// Why, with the numbers.
    pub why: String,
    /// The user's own option that the diagnosis blames, if the remedy was not tried because that option stays.
    /// `--may-remove` lets the remedy replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blames: Option<String>,
    /// Bytes that it saved on top of the others set at the time, over the owners that it affects. Negative if they
    /// grew; `null` if it was not weighed.
    pub saved_bytes: Option<f64>,
    /// CPU time per request with it, divided by that without it; `null` if it was not measured.
    pub cpu_ratio: Option<f64>,
}

/// The possible cost of a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PriceClass {
    /// No cost was ever measured.
    Free,
    /// It costs CPU time or latency in some servers.
    Cpu,
    /// It changes the program or the files shipped with it.
    Program,
}

/// How far fresh processes differ, as standard deviations of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoiseRecord {
    /// Standard deviation of the objective.
    pub bytes: f64,
    /// Standard deviation of the CPU time per request, as a share; `null` if it was not measured.
    pub cpu: Option<f64>,
}

/// The smallest limits that hold the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinesRecord {
    /// With the unchanged configuration; `null` if the search was not completed.
    pub as_is: Option<FindRecord>,
    /// With the winner.
    pub tuned: Option<FindRecord>,
}
