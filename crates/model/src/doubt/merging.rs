//! Doubts about the results of many nodes that are put together: what makes one unlike the others, or unlike its plan.
//! In JSON they stand among the others, told apart by their kind.

use crate::units::roughly;
use serde::{Deserialize, Serialize};

/// A reason to distrust what nodes handed in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Merging {
    /// The line was found on another model of CPU than the one before.
    OtherCpu {
        /// The model that the line before was found on.
        before: String,
        /// The model that it was found on now.
        now: String,
    },
    /// The clock of a node is not that of the machine which made the plan, or which merges.
    ClocksDiffer {
        /// The node.
        node: String,
        /// The sign that the clocks differ.
        slip: ClockSlip,
        /// By how much.
        seconds: f64,
    },
    /// Another Loadline worked on an entry than the one that made the plan.
    OtherLoadline {
        /// The node.
        node: String,
        /// The version that worked.
        worked: String,
        /// The version that made the plan.
        planned: String,
    },
    /// A result says another name than the plan has for its index.
    OtherName {
        /// Position in the plan.
        index: u32,
        /// The name in the result.
        said: String,
        /// The name in the plan.
        planned: String,
    },
    /// A result that cannot be read, or not be believed, was left out.
    ResultUnread {
        /// The folder it lies in.
        folder: String,
        /// The fault in the result.
        why: String,
    },
}

/// The sign that clocks differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockSlip {
    /// An entry began before its plan was made.
    BeganBeforeItsPlan,
    /// An entry ended after it was merged.
    EndedInTheFuture,
}

impl Merging {
    /// Returns what was seen, in one sentence.
    pub(super) fn text(&self) -> String {
        match self {
            Self::OtherCpu { before, now } => {
                format!("another CPU: the line was found on {now}, the last one on {before}")
            }
            Self::ClocksDiffer { node, slip: ClockSlip::BeganBeforeItsPlan, seconds } => {
                format!("clocks differ: {node} began {} before its plan was made", roughly(*seconds))
            }
            Self::ClocksDiffer { node, slip: ClockSlip::EndedInTheFuture, seconds } => {
                format!("clocks differ: {node} ended {} from now", roughly(*seconds))
            }
            Self::OtherLoadline { node, worked, planned } => {
                format!("another Loadline: {worked} worked on {node}, and {planned} made the plan")
            }
            Self::OtherName { index, said, planned } => {
                format!("another name: the result of index {index} says {said}, and the plan has {planned} there")
            }
            Self::ResultUnread { folder, why } => format!("a result was left out: {folder} {why}"),
        }
    }

    /// One thing to do.
    pub(super) fn next(&self) -> &'static str {
        match self {
            Self::OtherCpu { .. } => "search on one model of CPU (a node pool, a partition), or read it as a new line",
            Self::ClocksDiffer { .. } => "let all nodes take their time from one source (`timedatectl`)",
            Self::OtherLoadline { .. } => {
                "give all nodes the Loadline that makes the plan; lines may differ by version"
            }
            Self::OtherName { .. } => "look who wrote it; what counts is the index",
            Self::ResultUnread { .. } => "remove the folder and start its index again with `loadline work`",
        }
    }
}
