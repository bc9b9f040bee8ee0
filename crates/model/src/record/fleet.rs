//! Records of a fleet: its plan, the answer to each entry, and the document of all of them.

use super::{Document, DoubtRecord, FindRecord, LineRecord, Machine};
use crate::scenario::{Last, PastLine, Scenario};
use serde::{Deserialize, Serialize};

/// Schema of the first line of a plan.
pub const FLEET_PLAN_SCHEMA: &str = "loadline.fleet-plan/1";
/// Schema of the answer to one entry of a plan.
pub const FLEET_ENTRY_SCHEMA: &str = "loadline.fleet-entry/1";
/// Schema of the document of a fleet.
pub const FLEET_SCHEMA: &str = "loadline.fleet/1";

/// The first line of a plan. Each of the others is a [`PlanEntry`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanHeader {
    /// Which document this is, and the version of its form.
    #[cfg_attr(test, schemars(extend("const" = FLEET_PLAN_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline that made it.
    pub loadline: String,
    /// Name of the fleet or the comparison.
    pub name: String,
    /// When it was made: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub made: String,
    /// Entries that follow, a line each.
    pub entries: u32,
    /// SHA-256 of the lines that follow, each with its line feed: what names the plan in every answer.
    pub hash: String,
}

/// One entry of a plan: what one node does, with all that it needs but the contents of the files it reads, of which
/// `configuration.inputs` has the hash. Relative paths start from the folder in which the plan lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanEntry {
    /// Position in the plan, from 0.
    pub index: u32,
    /// The service, or the comparison that the blocks belong to.
    pub name: String,
    /// The task of the node.
    pub task: Task,
    /// Minutes after which the entry ends with what it has.
    pub minutes: f64,
    /// The limit that the service has in production.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_bytes: Option<u64>,
    /// The line that was known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// SHA-256 of what is asked: see [`Last::question`].
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
    /// The load line of a service is searched.
    Search {
        /// Why it is not enough to prove the last one.
        why: Why,
    },
    /// The line that was known last is proved; where it fails, or the step below it holds, it is searched again.
    Prove,
    /// Blocks of a comparison, all on this node.
    Block {
        /// The first of them, from 0, in the comparison.
        first: u32,
        /// How many.
        count: u32,
    },
}

/// Why a line is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// None is known.
    First,
    /// Something else is asked: options, load or target.
    QuestionChanged,
    /// The files of the service changed.
    InputsChanged,
    /// Its image is another one.
    ImageChanged,
    /// Another JDK runs it.
    JdkChanged,
    /// The last search is too long ago.
    LongAgo,
    /// The line that was known did not hold.
    LineFailed,
    /// The step below the line held twice.
    StepBelowHeld,
    /// It was asked for.
    Asked,
}

/// The answer to one entry, in `index-NNNNNN/result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EntryResult {
    /// Which document this is, and the version of its form.
    #[cfg_attr(test, schemars(extend("const" = FLEET_ENTRY_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline that worked; empty where it does not say.
    #[serde(default)]
    pub loadline: String,
    /// The hash of the plan.
    pub plan: String,
    /// Position in the plan.
    pub index: u32,
    /// The service, or the comparison.
    pub name: String,
    /// The task that was done in the end: a proof that failed became a search.
    pub task: Task,
    /// How it ended.
    pub outcome: EntryOutcome,
    /// Why, where it is no answer: what happened, and what the subject said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// The node that did it.
    pub node: NodeRecord,
    /// When it began: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started: String,
    /// How long it took.
    pub seconds: f64,
    /// The result of the search or the proof; `null` for blocks, and where there is none.
    pub find: Option<FindRecord>,
    /// The line as the next plan wants it; `null` where none holds.
    pub line: Option<Last>,
    /// Archives of its trials, by their folders, seen from that of this file, in the order in which they were made.
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
    /// With an answer; a limit that fails is one.
    Answered,
    /// Its time was up before.
    OutOfTime,
    /// The subject could not be run.
    SubjectFailed,
    /// The node could not measure.
    NodeUnfit,
}

/// The node that did an entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeRecord {
    /// As the engine calls it; the host's name where there is no engine.
    pub name: String,
    /// CPUs that this entry was allowed.
    pub cpus: u32,
    /// The machine, before the first trial.
    pub machine: Machine,
    /// How often the engine began this entry before.
    pub restarts: u32,
}

/// The document of a fleet: what `loadline merge --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetDocument {
    /// Which document this is, and the version of its form.
    #[cfg_attr(test, schemars(extend("const" = FLEET_SCHEMA)))]
    pub schema: String,
    /// The plan.
    pub plan: PlanHeader,
    /// The state of its entries.
    pub standing: StandingRecord,
    /// The nodes that worked, by name: each as it was before its first entry, with the restarts of all of its entries.
    pub nodes: Vec<NodeRecord>,
    /// Every service of the plan, in its order; empty where it is a comparison.
    pub services: Vec<ServiceRecord>,
    /// Bytes by which limits of production exceed those that would do, summed over the services whose limit does.
    pub wasted_bytes: u64,
    /// From the begin of a node's first entry to the end of its last one, in sum over the nodes.
    pub node_seconds: f64,
    /// The comparison whose blocks the nodes made; `null` where the plan is of services.
    pub comparison: Option<Box<Document>>,
    /// Reasons to distrust it.
    #[serde(default)]
    pub doubts: Vec<DoubtRecord>,
}

/// The state of the entries of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StandingRecord {
    /// Entries with an answer.
    pub answered: u32,
    /// Indexes without a result.
    pub missing: Vec<u32>,
    /// Indexes whose result is no answer.
    pub failed: Vec<u32>,
    /// Indexes with several results, of which the first that began with an answer counts.
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
    /// Why, in a sentence with the numbers.
    pub text: String,
    /// The line; `null` where there is none.
    pub line: Option<LineRecord>,
    /// The limit to set: the line with its headroom; `null` where there is no line.
    pub limit_bytes: Option<u64>,
    /// JVM options to set with it.
    pub options: Vec<String>,
    /// The limit that it has in production.
    pub declared_bytes: Option<u64>,
    /// By how much that is larger than the limit to set; negative where it is too small.
    pub wasted_bytes: Option<i64>,
    /// The line before; `null` where none was known.
    pub last_bytes: Option<u64>,
    /// Lines of earlier nights, the oldest first.
    #[serde(default)]
    pub past: Vec<PastLine>,
    /// The node it was found on; empty where there is no result.
    pub node: String,
    /// Whether it was found on another model of CPU than the line before.
    pub other_cpu: bool,
    /// Trials made.
    pub trials: u32,
    /// How long it took.
    pub seconds: f64,
    /// The line for the next plan: as it is now, else as it was before.
    pub last: Option<Last>,
    /// Reasons to distrust it.
    #[serde(default)]
    pub doubts: Vec<DoubtRecord>,
}

impl ServiceRecord {
    /// Whether it has less in production than the smallest limit at which the target holds.
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
    /// The one that was known holds still.
    Proved,
    /// Found for the first time.
    First,
    /// Searched again, and the same within the search's step.
    Same,
    /// Searched again: it needs less than before.
    Lower,
    /// Searched again: it needs more than before.
    Higher,
    /// The target does not hold, whatever the memory.
    NotHeld,
    /// It was not found: the search gave up, or its time was up.
    Unknown,
    /// The subject or its node failed.
    Failed,
    /// There is no result.
    #[default]
    Missing,
}
