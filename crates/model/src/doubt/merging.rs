//! Doubts about the merged results of many nodes: what makes one unlike the others, or unlike its plan. JSON lists
//! these doubts among the others; their kind tells them apart.

use crate::units::roughly;
use serde::{Deserialize, Serialize};

doubts! {
    /// A reason to distrust what nodes handed in.
    Merging {
        /// The line was found on another model of CPU than the one before.
        OtherCpu {
            /// The model that the line before was found on.
            before: String,
            /// The model that it was found on now.
            now: String,
        } => format!("another CPU: the line was found on {now}, the last one on {before}"),
            "search on one model of CPU (a node pool, a partition), or read it as a new line";
        /// The clock of a node is not that of the machine which made the plan, or which merges.
        ClocksDiffer {
            /// The node.
            node: String,
            /// The sign that the clocks differ.
            slip: ClockSlip,
            /// By how much.
            seconds: f64,
        } => {
            let seconds = roughly(*seconds);
            match slip {
                ClockSlip::BeganBeforeItsPlan => {
                    format!("clocks differ: {node} began {seconds} before its plan was made")
                }
                ClockSlip::EndedInTheFuture => format!("clocks differ: {node} ended {seconds} from now"),
            }
        },
            "let all nodes take their time from one source (`timedatectl`)";
        /// Another Loadline worked on an entry than the one that made the plan.
        OtherLoadline {
            /// The node.
            node: String,
            /// The version that worked.
            worked: String,
            /// The version that made the plan.
            planned: String,
        } => format!("another Loadline: {worked} worked on {node}, and {planned} made the plan"),
            "give all nodes the Loadline that makes the plan; lines may differ by version";
        /// A result says another name than the plan has for its index.
        OtherName {
            /// Position in the plan.
            index: u32,
            /// The name in the result.
            said: String,
            /// The name in the plan.
            planned: String,
        } => format!("another name: the result of index {index} says {said}, and the plan has {planned} there"),
            "look who wrote it; what counts is the index";
        /// A result that cannot be read, or not be believed, was left out.
        ResultUnread {
            /// The folder it lies in.
            folder: String,
            /// The fault in the result.
            why: String,
        } => format!("a result was left out: {folder} {why}"),
            "remove the folder and start its index again with `loadline work`";
    }
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
