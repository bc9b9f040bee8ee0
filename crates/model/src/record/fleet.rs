//! Records of a fleet: its plan, the result of each entry, and the combined document.

use super::{Document, DoubtRecord, FindRecord, LineRecord, Machine};
use crate::scenario::{Last, PastLine, Scenario};
use serde::{Deserialize, Serialize};

/// Schema of a plan's first line.
pub const FLEET_PLAN_SCHEMA: &str = "loadline.fleet-plan/1";
/// Schema of an entry's result.
pub const FLEET_ENTRY_SCHEMA: &str = "loadline.fleet-entry/1";
/// Schema of the document of a fleet.
pub const FLEET_SCHEMA: &str = "loadline.fleet/1";

/// The first line of a plan. Each of the others is a [`PlanEntry`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanHeader {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = FLEET_PLAN_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline that made it.
    pub loadline: String,
    /// Name of the fleet or the comparison.
    pub name: String,
    /// When it was made: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub made: String,
    /// Number of entries that follow, one per line.
    pub entries: u32,
    /// SHA-256 of the lines that follow, each with its line feed. It identifies the plan in every result.
    pub hash: String,
}

/// One entry of a plan: the task of one node with everything it needs except the contents of its input files.
/// `configuration.inputs` is the hash of these files. Relative paths are resolved against the plan's directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanEntry {
    /// Position in the plan, from 0.
    pub index: u32,
    /// The service, or the comparison that the blocks belong to.
    pub name: String,
    /// The task of the node.
    pub task: Task,
    /// Time limit in minutes, after which the entry ends with partial results.
    pub minutes: f64,
    /// The service's limit in production.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_bytes: Option<u64>,
    /// The last known line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// SHA-256 of the question: see [`Last::question`].
    pub question: String,
    /// The scenario to run, with its seed.
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    pub scenario: Scenario,
}

/// The task of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Task {
    /// Search for the load line of a service.
    Search {
        /// Why confirming the last line is not enough.
        why: Why,
    },
    /// Confirmation of the last known line. If it fails, or the step below it passes, the line is searched for again.
    Prove,
    /// Blocks of a comparison, all on this node.
    Block {
        /// Index of the first block in the comparison, from 0.
        first: u32,
        /// Number of blocks.
        count: u32,
    },
}

/// Why a line is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No line is known.
    First,
    /// The question changed: options, load, or target.
    QuestionChanged,
    /// The files of the service changed.
    InputsChanged,
    /// Its image changed.
    ImageChanged,
    /// It runs on another JDK.
    JdkChanged,
    /// The last search was too long ago.
    LongAgo,
    /// The known line failed.
    LineFailed,
    /// The step below the line passed twice.
    StepBelowHeld,
    /// The search was requested.
    Asked,
}

/// The result of one entry, in `index-NNNNNN/result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EntryResult {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = FLEET_ENTRY_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline that did the work; empty if it is not stated.
    #[serde(default)]
    pub loadline: String,
    /// The hash of the plan.
    pub plan: String,
    /// Position in the plan.
    pub index: u32,
    /// The service, or the comparison.
    pub name: String,
    /// The task that ran; after a failed confirmation, a search.
    pub task: Task,
    /// How it ended.
    pub outcome: EntryOutcome,
    /// Why there is no answer: the event, and the subject's own output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// The node that ran it.
    pub node: NodeRecord,
    /// When it began: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started: String,
    /// How long it took.
    pub seconds: f64,
    /// The result of the search or the confirmation; `null` for blocks and if there is none.
    pub find: Option<FindRecord>,
    /// The line in the form that the next plan needs; `null` if none passed.
    pub line: Option<Last>,
    /// Directories of its archives, relative to the directory of this file, in the order they were created.
    pub archives: Vec<String>,
    /// Reasons to distrust the answer.
    #[serde(default)]
    pub doubts: Vec<DoubtRecord>,
}

/// How an entry ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EntryOutcome {
    /// It ended with an answer; a failing limit is an answer.
    Answered,
    /// It ran out of time.
    OutOfTime,
    /// The subject could not be run.
    SubjectFailed,
    /// The node could not measure the subject.
    NodeUnfit,
}

/// The node that ran an entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeRecord {
    /// Name in the scheduler; without a scheduler, the host name.
    pub name: String,
    /// CPUs available to this entry.
    pub cpus: u32,
    /// The machine, before the first trial.
    pub machine: Machine,
    /// Number of earlier starts of this entry by the scheduler.
    pub restarts: u32,
}

/// The document of a fleet: what `loadline merge --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetDocument {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = FLEET_SCHEMA)))]
    pub schema: String,
    /// The plan.
    pub plan: PlanHeader,
    /// The state of its entries.
    pub standing: StandingRecord,
    /// The nodes that did the work, by name: each as it was before its first entry, with the restarts of all its
    /// entries.
    pub nodes: Vec<NodeRecord>,
    /// Every service of the plan, in its order; empty for a comparison.
    pub services: Vec<ServiceRecord>,
    /// Bytes by which production limits exceed the limits to set, summed over the services with an excess.
    pub wasted_bytes: u64,
    /// Seconds from the start of a node's first entry to the end of its last one, summed over the nodes.
    pub node_seconds: f64,
    /// The comparison whose blocks the nodes ran; `null` for a plan of services.
    pub comparison: Option<Box<Document>>,
    /// Reasons to distrust it.
    #[serde(default)]
    pub doubts: Vec<DoubtRecord>,
}

/// The state of the entries of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StandingRecord {
    /// Number of entries with a result.
    pub answered: u32,
    /// Indexes without a result.
    pub missing: Vec<u32>,
    /// Indexes whose entry failed.
    pub failed: Vec<u32>,
    /// Indexes with several results. The earliest-started result with an answer counts.
    pub double: Vec<u32>,
}

/// One service, as it is now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServiceRecord {
    /// Its name.
    pub name: String,
    /// Position in the plan.
    pub index: u32,
    /// The verdict on its line.
    pub verdict: LineVerdict,
    /// The reason, in one sentence with numbers.
    pub text: String,
    /// The line; `null` if there is none.
    pub line: Option<LineRecord>,
    /// The limit to set: the line plus its headroom; `null` if there is no line.
    pub limit_bytes: Option<u64>,
    /// JVM options to set with the limit.
    pub options: Vec<String>,
    /// Its limit in production.
    pub declared_bytes: Option<u64>,
    /// Excess of the production limit over the limit to set; negative if the production limit is too small.
    pub wasted_bytes: Option<i64>,
    /// The previous line; `null` if none was known.
    pub last_bytes: Option<u64>,
    /// Lines of earlier nights, oldest first.
    #[serde(default)]
    pub past: Vec<PastLine>,
    /// The node that found it; empty if there is no result.
    pub node: String,
    /// Whether it was found on a different CPU model than the previous line.
    pub other_cpu: bool,
    /// Number of trials.
    pub trials: u32,
    /// Duration in seconds.
    pub seconds: f64,
    /// The line for the next plan: the current one, otherwise the previous one.
    pub last: Option<Last>,
    /// Reasons to distrust it.
    #[serde(default)]
    pub doubts: Vec<DoubtRecord>,
}

impl ServiceRecord {
    /// Whether its production limit is below the smallest limit that meets the target.
    pub fn is_below_line(&self) -> bool {
        let line = self.line.as_ref().map(|line| line.limit_bytes);
        self.declared_bytes.zip(line).is_some_and(|(declared, line)| declared < line)
    }
}

/// The verdict on the line of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LineVerdict {
    /// The known line passed again.
    Proved,
    /// It was found for the first time.
    First,
    /// A new search gave the same result, within the search's step.
    Same,
    /// A new search found that the service needs less than before.
    Lower,
    /// A new search found that the service needs more than before.
    Higher,
    /// The target is not met at any limit.
    NotHeld,
    /// It was not found: the search gave up or ran out of time.
    Unknown,
    /// The subject or its node failed.
    Failed,
    /// There is no result.
    #[default]
    Missing,
}
