//! A fleet: many services, each with what it is asked and what was known of it last. Plain values.

use super::Scenario;
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// Services whose load lines are searched night after night.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// Names the plan.
    pub name: String,
    /// At least one, names unique, in the order of the file.
    pub services: Vec<Service>,
    /// After this a line that was proved each night is searched anew.
    pub search_every: Span,
}

/// One service of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// What it is called in every table.
    pub name: String,
    /// What is run, and what must hold: one configuration.
    pub scenario: Scenario,
    /// How long its search may take on its node.
    pub within: Span,
    /// The limit that it has in production.
    pub declared: Option<Bytes>,
    /// The line that was known before.
    pub last: Option<Last>,
}

/// A line as it was known before, and under which conditions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Last {
    /// The limit that held.
    pub limit_bytes: u64,
    /// The largest heap that goes with it; `null` where the configuration gives it or the JVM chooses.
    #[serde(default)]
    pub heap_bytes: Option<u64>,
    /// The direct memory that goes with it; `null` where the JVM derives it from the heap.
    #[serde(default)]
    pub direct_bytes: Option<u64>,
    /// When it was proved last: UTC, ISO 8601.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub proved_at: Option<String>,
    /// When it was searched last: UTC, ISO 8601.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub searched_at: Option<String>,
    /// SHA-256 of what was asked: the service, its options, its load, its target. `null` where nobody knows.
    #[serde(default)]
    pub question: Option<String>,
    /// SHA-256 of the files that its trials read.
    #[serde(default)]
    pub inputs: Option<String>,
    /// The digest of the image that ran.
    #[serde(default)]
    pub image_digest: Option<String>,
    /// The version of the JDK that ran, as it tells it.
    #[serde(default)]
    pub jdk: Option<String>,
    /// The model of the CPU that it was found on.
    #[serde(default)]
    pub cpu_model: Option<String>,
    /// Lines before this one, the oldest first, at most [`PAST_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<PastLine>,
}

/// Lines that are kept of a service: a month of nights.
pub const PAST_MAX: usize = 30;

/// A line of an earlier night.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PastLine {
    /// When it was proved or found: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub at: String,
    /// The limit that held.
    pub limit_bytes: u64,
}
