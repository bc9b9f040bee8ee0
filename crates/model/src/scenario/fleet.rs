//! A fleet: many services, each with its scenario and last known line.

use super::Scenario;
use super::validate::{memory, unique};
use super::written::did_you_mean;
use crate::error::{Error, Result};
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// Four times the duration of a search on a quiet machine.
pub const WITHIN: Span = Span::seconds(15 * 60);
/// Limits the drift between searches to a week of confirmations: each may leave the line a step too high.
pub const SEARCH_EVERY: Span = Span::seconds(7 * 86_400);
/// The longest name in bytes: file systems allow 255, including a suffix.
const NAME_MAX: usize = 200;

/// Services whose load lines are confirmed or searched for every night.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// The plan's name.
    pub name: String,
    /// The services in file order; not empty, with unique names.
    pub services: Vec<Service>,
    /// After this time, a line that was only confirmed is searched for again.
    pub search_every: Span,
}

impl Fleet {
    /// Checks constraints beyond types: there are services, their names are unique and valid as file names, and each
    /// service needs exactly one search. Errors: `Request`, naming the first invalid service.
    pub fn validate(&self) -> Result<()> {
        if self.services.is_empty() {
            return Err(Error::request("the fleet has no services").hint("list at least one under `services:`"));
        }
        unique("service", self.services.iter().map(|service| service.name.as_str()))?;
        self.services.iter().try_for_each(|service| {
            service.validate().map_err(|error| error.at(format!("service: {}", service.name.escape_debug())))
        })
    }

    /// Checks that a service exists. Errors: `Request`, with the closest existing name.
    pub fn check_name(&self, name: &str) -> Result<()> {
        let names = || self.services.iter().map(|service| service.name.as_str());
        if names().any(|of| of == name) {
            return Ok(());
        }
        let hint = did_you_mean(name, names())
            .unwrap_or_else(|| "use a name under `services:`, or that of a scenario".to_owned());
        Err(Error::request(format!("no service is named `{name}`")).hint(hint))
    }
}

/// A service in a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Its name in tables.
    pub name: String,
    /// The scenario and targets, with one configuration.
    pub scenario: Scenario,
    /// The time limit of its search.
    pub within: Span,
    /// Its production limit, if known.
    pub declared: Option<Bytes>,
    /// The last known line.
    pub last: Option<Last>,
}

impl Service {
    /// A service without known data. Its production limit is its configuration's.
    pub fn new(name: &str, scenario: Scenario) -> Self {
        let declared = scenario.configurations.first().and_then(|of| of.limit);
        Self { name: name.to_owned(), scenario, within: WITHIN, declared, last: None }
    }

    fn validate(&self) -> Result<()> {
        let Self { name, scenario, .. } = self;
        if name.len() > NAME_MAX || name.contains(char::is_control) || [".", ".."].contains(&name.as_str()) {
            return Err(Error::request(format!("`{}` is not a valid service name", name.escape_debug()))
                .hint("it becomes part of file names: at most 200 bytes, without control characters"));
        }
        memory("limit", self.declared)?;
        memory("last: limit", self.last.as_ref().map(|last| last.limit_bytes).map(Bytes))?;
        memory("last: heap", self.last.as_ref().and_then(|last| last.heap_bytes).map(Bytes))?;
        if self.within.0.is_zero() {
            return Err(Error::request("`within` must be greater than 0"));
        }
        if scenario.find.max_rate {
            return Err(Error::request(
                "the scenario asks for the highest rate, but a fleet searches for the \
                 smallest limit",
            )
            .hint("remove `max_rate` from its `find`"));
        }
        match scenario.configurations.as_slice() {
            [_] => scenario.validate(),
            several => {
                let names: Vec<&str> = several.iter().map(|of| of.name.as_str()).collect();
                Err(Error::request(format!(
                    "`{name}` has {} configurations, but a search allows only one",
                    several.len()
                ))
                .hint(format!(
                    "choose one of {} in the fleet file: `only: {}`",
                    names.join(", "),
                    names[0]
                )))
            }
        }
    }
}

/// A previously known line, and the conditions under which it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Last {
    /// The limit that passed.
    pub limit_bytes: u64,
    /// The maximum heap that goes with it; `null` if the configuration sets it or the JVM chooses it.
    #[serde(default)]
    pub heap_bytes: Option<u64>,
    /// Maximum direct memory at this limit; `null` if the JVM derives it from the heap.
    #[serde(default)]
    pub direct_bytes: Option<u64>,
    /// When it was last proved: UTC, ISO 8601.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub proved_at: Option<String>,
    /// When it was last searched for: UTC, ISO 8601.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub searched_at: Option<String>,
    /// SHA-256 of the question: the service, its options, its load, and its target; `null` if unknown.
    #[serde(default)]
    pub question: Option<String>,
    /// SHA-256 of the files that its trials read.
    #[serde(default)]
    pub inputs: Option<String>,
    /// The digest of the image that ran.
    #[serde(default)]
    pub image_digest: Option<String>,
    /// The version of the JDK that ran, as the JDK reports it.
    #[serde(default)]
    pub jdk: Option<String>,
    /// The model of the CPU on which it was found.
    #[serde(default)]
    pub cpu_model: Option<String>,
    /// Earlier lines, oldest first, at most [`PAST_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<PastLine>,
}

impl Last {
    /// A limit without further data.
    pub fn of(limit: Bytes) -> Self {
        Self { limit_bytes: limit.0, ..Self::default() }
    }
}

/// The maximum number of past lines: a month of nights.
pub const PAST_MAX: usize = 30;

/// A line from an earlier night.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PastLine {
    /// When it was proved or found: UTC, ISO 8601.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The limit that passed.
    pub limit_bytes: u64,
}
