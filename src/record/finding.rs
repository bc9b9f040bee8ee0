//! What trials say is wrong, with the numbers that show it.

use super::LoaderSum;
use serde::{Deserialize, Serialize};

/// A diagnosis with its evidence and its words, so that readers need not know every kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRecord {
    /// The diagnosis with its evidence.
    pub finding: Finding,
    /// The configuration it is of.
    pub configuration: String,
    /// Index of the trial whose numbers these are.
    pub trial: u32,
    /// How many trials of the configuration show it.
    pub trials_alike: u32,
    /// What was seen.
    pub text: String,
    /// One thing to do.
    pub next: String,
}

/// A diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// Equal loads keep adding class loaders of one type.
    LoadersKeepComing {
        /// Class of the loaders.
        loader: String,
        /// The spans that were compared, in time order; each has about as many new loaders for a request.
        spans: Vec<LoaderSpan>,
        /// Loaders of this type that lived after a full collection; `null` where there was none after the spans.
        live_after_gc: Option<LoaderSum>,
    },
}

/// What a stretch between two marks added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoaderSpan {
    /// The mark before.
    pub from: String,
    /// The mark behind.
    pub to: String,
    /// Requests answered correctly in between, or what the subject counted as done.
    pub ok: u64,
    /// New loaders of the type.
    pub added: LoaderSum,
    /// Those that went.
    pub ended: LoaderSum,
}
