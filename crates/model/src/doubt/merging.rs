//! Doubts about merged results from many nodes: differences between nodes, or from the plan. In JSON, they are among
//! the other doubts, identified by kind.

use crate::units::roughly;
use serde::{Deserialize, Serialize};

doubts! {
    /// A reason to distrust the nodes' results.
    Merging {
        /// The line was found on a different CPU model than the previous line.
        OtherCpu {
            /// The previous line's CPU model.
            before: String,
            /// The CPU model now.
            now: String,
        } => format!("different CPU: the load line was found on {now}, but the last one on {before}"),
            "search on one CPU model (a node pool, a partition), or treat this as a new load line";
        /// A node's clock differs from that of the machine that made the plan or merges the results.
        ClocksDiffer {
            /// The node.
            node: String,
            /// The evidence that the clocks differ.
            slip: ClockSlip,
            /// The difference.
            seconds: f64,
        } => {
            let seconds = roughly(*seconds);
            match slip {
                ClockSlip::BeganBeforeItsPlan => {
                    format!("clocks differ: {node} started {seconds} before its plan was made")
                }
                ClockSlip::EndedInTheFuture => format!("clocks differ: {node} finished {seconds} in the future"),
            }
        },
            "sync all nodes to one time source (`timedatectl`)";
        /// The Loadline version that ran an entry did not make the plan.
        OtherLoadline {
            /// The node.
            node: String,
            /// The version that ran the entry.
            worked: String,
            /// The version that made the plan.
            planned: String,
        } => format!("different version: {worked} ran on {node}, but {planned} made the plan"),
            "install the Loadline version that made the plan on all nodes; load lines may differ by version";
        /// The name in a result differs from the name in the plan at its index.
        OtherName {
            /// Position in the plan.
            index: u32,
            /// The name in the result.
            said: String,
            /// The name in the plan.
            planned: String,
        } => format!("different name: the result for index {index} has {said}, but the plan has {planned}"),
            "find out what wrote it; only the index counts";
        /// An unreadable or implausible result was left out.
        ResultUnread {
            /// Its directory.
            folder: String,
            /// The problem with the result.
            why: String,
        } => format!("a result was skipped: {folder} {why}"),
            "remove the directory, then run its index again with `loadline work`";
    }
}

/// Evidence that the clocks of nodes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockSlip {
    /// An entry began before its plan was made.
    BeganBeforeItsPlan,
    /// An entry ended after it was merged.
    EndedInTheFuture,
}
