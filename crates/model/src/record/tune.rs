//! Records of a tuning: the purpose of each trial, and the result of all of them together.

use super::{ComparisonRecord, FindRecord, Missed, ProbeVerdict};
use crate::scenario::{Change, Objective};
use serde::{Deserialize, Serialize};

/// The purpose and the result of a trial of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneTrialRecord {
    /// Which part of the tuning.
    pub stage: TuneStage,
    /// Ids of the remedies that were set, in the order of the table; empty as it is.
    pub remedies: Vec<String>,
    /// Constant rates that replaced closed phases, requests per second by phase; empty where none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<PhaseRate>,
    /// Whether the target held.
    pub verdict: ProbeVerdict,
    /// The missed targets, with the numbers; or the reason why the trial was discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// The numbers behind `why`, where it is about numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
    /// Changes that were asked for and that the process does not have, as they were typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_force: Vec<String>,
    /// From the start of the trial to the end of its subject.
    #[serde(default)]
    pub seconds: f64,
}

/// The rate that took the place of a closed phase.
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
    /// The one trial from which the rates of closed phases, and the connections of a fast warm-up, are taken.
    Reference,
    /// As it is.
    Baseline,
    /// All free remedies at once, and parts of them.
    Bundle,
    /// One remedy less, or a simpler level of one.
    LeaveOut,
    /// One remedy more.
    Race,
    /// A run that makes an archive of classes; it is not measured.
    Training,
    /// The winner against as it is, in alternating trials.
    Confirmation,
}

/// How tuning ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TuneOutcome {
    /// Fresh trials confirmed what the search found.
    Proved,
    /// Fresh trials confirmed that it saves memory. CPU time differs too much between them to say on which side of the
    /// price it is.
    Unpriced,
    /// No remedy helped, or none was confirmed.
    NothingProved,
    /// The target does not hold as it is.
    NotHeld,
    /// Only planned: nothing was tried.
    Planned,
    /// It ended before it was done.
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
    /// The rise allowed in the CPU time of a request, as a share.
    pub price: f64,
    /// The same in CPUs at this load; `null` where CPU time was not measured.
    #[serde(default)]
    pub price_cpus: Option<f64>,
    /// Conditions that had to hold in every trial that counts.
    pub target: Vec<String>,
    /// Constant rates that took the place of closed phases; empty where the load is as planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<PhaseRate>,
    /// The weight and the cost as it is; `null` before the first trials.
    pub as_is: Option<SettingRecord>,
    /// The settings to apply; empty where nothing was proved.
    pub answer: Vec<String>,
    /// The same as changes.
    pub changes: Vec<Change>,
    /// The winner against as it is, by the confirmation alone: the objective first, then CPU time, times and rates;
    /// empty where nothing was proved.
    pub gains: Vec<ComparisonRecord>,
    /// Bytes of the owners in the confirmation, those that changed most first.
    pub owners: Vec<OwnerGain>,
    /// Each attempt to confirm, in time order.
    pub confirmations: Vec<ConfirmationRecord>,
    /// Every remedy of the table and what became of it, in the order of the table.
    pub remedies: Vec<RemedyRecord>,
    /// Settings weighed on the way, in the order of first trial; as it is comes first.
    pub path: Vec<SettingRecord>,
    /// The least memory at each price, of all that held the target: from as it is to the least memory.
    pub front: Vec<SettingRecord>,
    /// The smallest limits that hold, as it is and with the winner; `null` unless they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LinesRecord>,
    /// How far fresh processes of the same setting differ, as they are.
    pub noise: Option<NoiseRecord>,
    /// Reasons to distrust the answer, a sentence each.
    pub doubts: Vec<String>,
    /// Trials, those of the lines apart.
    pub trials: u32,
    /// Time of these trials.
    pub seconds: f64,
}

impl TuneRecord {
    /// The user's own options that the answer takes out, as typed or as the JVM has them.
    pub fn taken_out(&self) -> Vec<String> {
        let of = |change: &Change| if let Change::Without(words) = change { words.clone() } else { Vec::new() };
        super::each_once(self.changes.iter().flat_map(of))
    }
}

/// A set of remedies and what it weighed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingRecord {
    /// Ids of the remedies; empty as it is.
    pub remedies: Vec<String>,
    /// The settings to apply for it, as typed.
    pub options: Vec<String>,
    /// For which part of the tuning it was first tried.
    pub stage: TuneStage,
    /// Trials that count.
    pub trials: u32,
    /// Whether the target held in all of them.
    pub holds: bool,
    /// The objective; mean of the trials; `null` where none was weighed.
    pub bytes: Option<f64>,
    /// CPU time of a request over that as it is; `null` where it was not measured.
    pub cpu_ratio: Option<f64>,
    /// Bytes that each owner held, mean of the trials, in the order of the account.
    pub owners: Vec<OwnerBytes>,
    /// The missed targets, where the target did not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// Bytes that an owner held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerBytes {
    /// Its name, as in the account.
    pub owner: String,
    /// Resident.
    pub bytes: f64,
}

/// Bytes that an owner held as it is and with the winner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnerGain {
    /// Its name, as in the account.
    pub owner: String,
    /// As it is, median of the confirmation.
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
    /// Blocks of two trials that were made.
    pub blocks: u32,
    /// The share by which the CPU time of a request was allowed to rise: the price, or what the saved memory is worth.
    #[serde(default)]
    pub price: f64,
    /// Why they were not.
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
    /// It was tried and saved less than what matters.
    NoEffect,
    /// It saved something alone, and nothing beside the others.
    NotMissed,
    /// It saves memory, at more than the price.
    TooCostly,
    /// Memory grew, or the target broke.
    Harmful,
    /// The subject did not start with it.
    Refused,
    /// The process did not have it, although it was set.
    NotInForce,
    /// It was not tried.
    NotTried,
    /// It would be tried next.
    Planned,
}

/// Why a remedy was not tried for which trials or time did not suffice.
pub const NO_TIME: &str = "there was no time left for it";

/// A remedy and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemedyRecord {
    /// Its id in the table, such as `malloc.arenas`; `try.1` where the user named it.
    pub id: String,
    /// Its effect, in plain words.
    pub what: String,
    /// The settings applied for it, as typed; empty where that was not settled.
    pub options: Vec<String>,
    /// Its possible price.
    pub price: PriceClass,
    /// The most bytes that it can save, by the account as it is; `null` where that cannot be told.
    pub gain_bytes_max: Option<u64>,
    /// Its fate.
    pub fate: Fate,
    /// Why, with the numbers.
    pub why: String,
    /// The option of the user's own that the diagnosis blames and that stays, where that is why it was not tried;
    /// `--may-remove` lets the remedy take its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blames: Option<String>,
    /// Bytes that it saved on top of the others set at the time, by the owners that it moves; negative where they grew;
    /// `null` where it was not weighed.
    pub saved_bytes: Option<f64>,
    /// CPU time of a request with it, over that without it; `null` where it was not measured.
    pub cpu_ratio: Option<f64>,
}

/// The possible price of a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PriceClass {
    /// Nothing that was ever measured.
    Free,
    /// CPU time or latency, in some servers.
    Cpu,
    /// It changes the program or what is shipped with it.
    Program,
}

/// How far fresh processes differ, as standard deviations of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoiseRecord {
    /// Standard deviation of the objective.
    pub bytes: f64,
    /// Standard deviation of the CPU time of a request, as a share; `null` where it was not measured.
    pub cpu: Option<f64>,
}

/// The smallest limits that hold the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinesRecord {
    /// As it is; `null` where it was not searched to its end.
    pub as_is: Option<FindRecord>,
    /// With the winner.
    pub tuned: Option<FindRecord>,
}
