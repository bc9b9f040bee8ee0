//! The settings of a search for the load line: targets, final step, and required confirmations, among others.

use super::budget::Budget;
use super::compare::Share;
use super::schema;
use super::validate::{memory, minutes, within};
use super::written::parsed;
use crate::error::{Error, Result};
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// How to search for the load line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Find {
    /// The targets that must hold; the defaults for the load if none is named.
    pub target: Vec<Budget>,
    /// The relative step at which the search stops, above 0 and below 1.
    pub step: f64,
    /// Consecutive trials that must pass, at least 1. They include the trial with which a search chose the value.
    pub proofs: u32,
    /// The headroom that the result adds to the line, as a share of the line.
    pub headroom: f64,
    /// Duration of the load in the last trial, which tests the limit and the heap to set; 0 skips that trial.
    pub soak: Span,
    /// Leaves the heap size to the JVM, which derives it from the limit.
    pub as_is: bool,
    /// Smallest limit to try.
    pub limit_min: Option<Bytes>,
    /// The largest limit to try; `None` is the configuration's limit, or most of the available memory.
    pub limit_max: Option<Bytes>,
    /// Test only this limit instead of searching for the smallest.
    pub prove: Option<Bytes>,
    /// Search for the highest rate within the configuration's limit instead of the smallest limit.
    pub max_rate: bool,
    /// Maximum number of trials.
    pub trials_max: u32,
    /// The minutes after which no smaller limit is tried; the confirmation and the soak are never left out.
    pub minutes: Option<f64>,
    /// Also find the smallest limit with a warm page cache.
    pub warm: bool,
}

/// How to search for the load line, as written.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, schemars::JsonSchema)]
#[schemars(rename = "FindFile", extend("not" = schema::rate_and_proof()))]
#[command(next_help_heading = "Search")]
#[serde(deny_unknown_fields, default)]
pub struct FindSettings {
    /// Condition that every trial must meet: `p99<50ms`, `rate>=98%`, `failed==0`, `gc_share<10%`, `start_up<5s`
    /// (repeatable) [default: failed==0 and rate>=98%; rate>=90% in a closed model]
    // A file has it next to `find`, because tuning uses it too.
    #[arg(long, value_name = "TARGET")]
    #[serde(skip)]
    pub target: Vec<Budget>,
    /// Let the JVM size its heap from the limit, and search only for the limit.
    #[arg(long, help = "Let the JVM size its heap from the limit")]
    pub as_is: bool,
    /// Relative step at which the search stops, from 0.1% to 50%.
    #[arg(long, value_name = "PERCENT", help = "Relative step at which the search stops [default: 2%]")]
    #[schemars(with = "Option<schema::Step>", extend("default" = "2%"))]
    #[serde(deserialize_with = "parsed")]
    pub step: Option<Share>,
    /// Consecutive fresh trials that must pass at the line, not counting the one that chose it.
    #[arg(long, value_name = "N", help = "Consecutive fresh trials that must pass [default: 4]")]
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 4))]
    pub proofs: Option<u32>,
    /// Safety margin to add to the line, as a share of it; at most ten times the line.
    #[arg(long, value_name = "PERCENT", help = "Safety margin to add to the smallest limit [default: 10%]")]
    #[schemars(with = "Option<schema::Headroom>", extend("default" = "10%"))]
    #[serde(deserialize_with = "parsed")]
    pub headroom: Option<Share>,
    /// Load duration of a final trial at the recommended limit and heap; `0s` skips it.
    #[arg(long, value_name = "TIME", help = SOAK)]
    #[schemars(extend("default" = "60s"))]
    pub soak: Option<Span>,
    /// Smallest limit to try.
    #[arg(long, value_name = "SIZE", help = "Smallest limit to try [default: 16m]")]
    pub limit_min: Option<Bytes>,
    /// Largest limit to try, which must leave the server ample memory. Default: the configuration's limit, or most of
    /// the machine's available memory.
    #[arg(long, value_name = "SIZE", help = LIMIT_MAX)]
    pub limit_max: Option<Bytes>,
    /// Test only this limit instead of searching for the smallest.
    #[arg(long, value_name = "SIZE", conflicts_with = "limit_min", help = PROVE)]
    pub prove: Option<Bytes>,
    /// Search for the highest rate within the configuration's limit instead of the smallest limit.
    #[arg(long, conflicts_with_all = ["limit_min", "limit_max", "prove", "as_is"], help = MAX_RATE)]
    pub max_rate: bool,
    /// Maximum number of trials.
    #[arg(long, value_name = "N")]
    #[arg(help = "Maximum number of trials [default: 60]")]
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 60))]
    pub trials_max: Option<u32>,
    /// Time budget of the search in minutes. The search can exceed it by up to half, but only to confirm the limit that
    /// passed.
    #[arg(long, value_name = "MINUTES", value_parser = typed_minutes)]
    #[arg(help = MINUTES)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub minutes: Option<f64>,
    /// Also find the smallest limit with a warm page cache.
    #[arg(long, conflicts_with = "no_warm")]
    #[arg(help = "Also find the smallest limit with a warm page cache")]
    pub warm: bool,
    /// Skip the search with a warm page cache, even if the scenario asks for it
    #[arg(long)]
    #[serde(skip)]
    pub no_warm: bool,
}

const MINUTES: &str = "Time budget in minutes; can overrun by up to 50%. Must cover 9 trials and the soak, about 5 \
     minutes by default";
const LIMIT_MAX: &str =
    "Largest limit to try; it must leave the server ample memory [default: `--limit`, or most of the available memory]";
const SOAK: &str = "Load duration of a final trial at the recommended limit and heap; `0s` skips it [default: 60s]";
const PROVE: &str = "Test only this limit; exit with code 1 if it misses the target";
const MAX_RATE: &str = "Find the highest rate within `--limit` instead of the smallest limit, starting at `--rate`";

/// A finer step is lost in page granularity and noise; a coarser one finds nothing.
const STEP: (f64, f64) = (0.001, 0.5);
/// The maximum plausible headroom.
const HEADROOM_MAX: f64 = 10.0;
/// The maximum number of confirmations or trials in an option.
const TRIALS_MAX: u64 = 1000;

/// Parses minutes with or without a unit: `5`, `5m`, `2.5min`.
fn typed_minutes(text: &str) -> std::result::Result<f64, String> {
    let number = text.strip_suffix("min").or_else(|| text.strip_suffix('m')).unwrap_or(text);
    number.parse().map_err(|_| "write minutes as a number, such as `5`".to_owned())
}

impl Find {
    /// Applies the given settings; others keep their values.
    pub fn apply(&mut self, of: FindSettings) {
        if !of.target.is_empty() {
            self.target = of.target;
        }
        self.as_is |= of.as_is;
        self.step = of.step.map_or(self.step, Share::value);
        self.headroom = of.headroom.map_or(self.headroom, Share::value);
        self.soak = of.soak.unwrap_or(self.soak);
        self.limit_min = of.limit_min.or(self.limit_min);
        self.limit_max = of.limit_max.or(self.limit_max);
        let fresh = of.proofs.unwrap_or(self.fresh());
        self.prove = of.prove.or(self.prove);
        // No trial chose a given value.
        let choosing = u32::from(self.prove.is_none());
        self.proofs = if fresh > 0 { fresh.saturating_add(choosing) } else { 0 };
        self.max_rate |= of.max_rate;
        self.trials_max = of.trials_max.unwrap_or(self.trials_max);
        self.minutes = of.minutes.or(self.minutes);
        self.warm = (self.warm || of.warm) && !of.no_warm;
    }

    /// Consecutive trials that must pass, excluding the one that chose the value.
    pub fn fresh(&self) -> u32 {
        if self.prove.is_some() { self.proofs } else { self.proofs.saturating_sub(1).max(1) }
    }

    /// Checks constraints beyond types. Errors: `Request`, naming the first invalid value and its valid range.
    pub(super) fn validate(&self) -> Result<()> {
        let share = |name: &str, value: f64, low: f64, high: f64| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(Error::request(format!(
                "`{name}` is {}%; it must be between {}% and {}%",
                value * 100.0,
                low * 100.0,
                high * 100.0
            ))),
        };
        share("find.step", self.step, STEP.0, STEP.1)?;
        share("find.headroom", self.headroom, 0.0, HEADROOM_MAX)?;
        memory("find.limit_min", self.limit_min)?;
        memory("find.limit_max", self.limit_max)?;
        memory("find.prove", self.prove)?;
        within("find.proofs", u64::from(self.proofs), 1, TRIALS_MAX)?;
        within("find.trials_max", u64::from(self.trials_max), 1, TRIALS_MAX)?;
        minutes(self.minutes)?;
        if self.max_rate && self.prove.is_some() {
            let what = "`find.prove` tests a limit and `find.max_rate` searches for a rate, so they cannot be \
                 combined";
            return Err(Error::request(what).hint("use only one of them"));
        }
        match (self.limit_min, self.limit_max) {
            (Some(low), Some(high)) if low > high => {
                Err(Error::request(format!("`find.limit_min` ({low}) is more than `find.limit_max` ({high})"))
                    .hint("swap them, or omit one"))
            }
            _ => Ok(()),
        }
    }
}

impl Default for Find {
    fn default() -> Self {
        Self {
            target: Vec::new(),
            step: 0.02,
            proofs: 5,
            headroom: 0.10,
            soak: Span::seconds(60),
            as_is: false,
            limit_min: None,
            limit_max: None,
            prove: None,
            max_rate: false,
            trials_max: 60,
            minutes: None,
            warm: false,
        }
    }
}
