//! The settings of a search for the load line: its targets, the step at which it stops, the proofs it needs.

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
    /// Consecutive trials that must hold, at least 1. They include the trial by which a search chose the value.
    pub proofs: u32,
    /// The headroom that the answer adds to the line, as a share of the line.
    pub headroom: f64,
    /// Duration of the load in the last trial, which tests the limit and the heap to set; 0 leaves that trial out.
    pub soak: Span,
    /// Leaves the heap size to the JVM, which derives it from the limit.
    pub as_is: bool,
    /// The smallest limit to try.
    pub limit_min: Option<Bytes>,
    /// The largest limit to try; `None` is the configuration's limit, or most of the available memory.
    pub limit_max: Option<Bytes>,
    /// A single limit to prove, instead of a search for the smallest.
    pub prove: Option<Bytes>,
    /// Searches for the highest rate that the configuration's limit carries, not for a limit.
    pub max_rate: bool,
    /// The most trials of the search; it ends after them, whatever it has found.
    pub trials_max: u32,
    /// The minutes after which no smaller limit is tried; the confirmation and the soak are never left out.
    pub minutes: Option<f64>,
    /// Also searches for the line on a host whose page cache already holds the files.
    pub warm: bool,
}

/// How to search for the load line, as written.
#[derive(Debug, Clone, Default, Deserialize, clap::Args, schemars::JsonSchema)]
#[schemars(rename = "FindFile", extend("not" = schema::rate_and_proof()))]
#[command(next_help_heading = "Searching")]
#[serde(deny_unknown_fields, default)]
pub struct FindSettings {
    /// `p99<50ms`, `rate>=98%`, `failed==0`, `gc_share<10%`, `start_up<5s`; may be repeated [default: failed==0 and
    /// rate>=98%, in a closed model 90%]
    // A file has it beside `find`, because tuning asks for it too.
    #[arg(long, value_name = "TARGET")]
    #[serde(skip)]
    pub target: Vec<Budget>,
    /// Leaves the heap size to the JVM, which derives it from the limit; only the limit is searched for.
    #[arg(long, help = "Leave the heap size to the JVM, which derives it from the limit")]
    pub as_is: bool,
    /// The relative step at which the search stops, from 0.1 % to 50 %.
    #[arg(long, value_name = "SHARE", help = "The relative step at which the search stops [default: 2%]")]
    #[schemars(with = "Option<schema::Step>", extend("default" = "2%"))]
    #[serde(deserialize_with = "parsed")]
    pub step: Option<Share>,
    /// Consecutive fresh trials that must hold at the line, not counting the one that chose it.
    #[arg(long, value_name = "N", help = "Consecutive fresh trials that must hold [default: 4]")]
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 4))]
    pub proofs: Option<u32>,
    /// The safety margin that the answer adds to the line, as a share of it; at most ten times the line.
    #[arg(long, value_name = "SHARE", help = "The safety margin that the answer adds to the line [default: 10%]")]
    #[schemars(with = "Option<schema::Headroom>", extend("default" = "10%"))]
    #[serde(deserialize_with = "parsed")]
    pub headroom: Option<Share>,
    /// Duration of the load in one more trial, which tests the limit and the heap to set; `0s` leaves that trial out.
    #[arg(long, value_name = "TIME", help = SOAK)]
    #[schemars(extend("default" = "60s"))]
    pub soak: Option<Span>,
    /// The smallest limit to try.
    #[arg(long, value_name = "SIZE", help = "The smallest limit to try [default: 16m]")]
    pub limit_min: Option<Bytes>,
    /// The largest limit to try, at which memory must not be the constraint. Default: the configuration's limit, or
    /// most of the machine's available memory.
    #[arg(long, value_name = "SIZE", help = LIMIT_MAX)]
    pub limit_max: Option<Bytes>,
    /// A single limit to prove, instead of a search for the smallest.
    #[arg(long, value_name = "SIZE", conflicts_with = "limit_min", help = PROVE)]
    pub prove: Option<Bytes>,
    /// Searches for the highest rate that the configuration's limit carries, not for a limit.
    #[arg(long, conflicts_with_all = ["limit_min", "limit_max", "prove", "as_is"], help = MAX_RATE)]
    pub max_rate: bool,
    /// The most trials of the search; it ends after them, whatever it has found.
    #[arg(long, value_name = "N")]
    #[arg(help = "The most trials of the search [default: 60]")]
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 60))]
    pub trials_max: Option<u32>,
    /// The minutes that the search may take: it then tries no smaller limit and confirms what held, for half as long
    /// again at most.
    #[arg(long, value_name = "MINUTES")]
    #[arg(
        help = "Shorten the search to about this many minutes, at most half as long again; it still confirms a limit"
    )]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub minutes: Option<f64>,
    /// Also searches for the line on a host whose page cache already holds the files.
    #[arg(long, conflicts_with = "no_warm")]
    #[arg(help = "Also search the line on a host whose page cache already holds the files")]
    pub warm: bool,
    /// Do not search that line, even if the scenario asks for it
    #[arg(long)]
    #[serde(skip)]
    pub no_warm: bool,
}

const LIMIT_MAX: &str =
    "The limit at which memory is not the constraint [default: `--limit`, or most of the available memory]";
const SOAK: &str =
    "Load duration of one more trial, which tests the limit and heap to set; `0s` skips it [default: 60s]";
const PROVE: &str = "Prove this limit instead; exit code 1 if it does not hold";
const MAX_RATE: &str = "Find the highest rate that `--limit` carries, instead of a limit; `--rate` is the first to try";

/// A finer step is lost in whole pages and the randomness of the edge; a coarser one finds nothing.
const STEP: (f64, f64) = (0.001, 0.5);
/// More than this is no headroom.
const HEADROOM_MAX: f64 = 10.0;
/// The most proofs or trials that an option accepts.
const TRIALS_MAX: u64 = 1000;

impl Find {
    /// Applies the written settings; omitted ones keep their values.
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
        // A value that is given was chosen by no trial.
        let choosing = u32::from(self.prove.is_none());
        self.proofs = if fresh > 0 { fresh.saturating_add(choosing) } else { 0 };
        self.max_rate |= of.max_rate;
        self.trials_max = of.trials_max.unwrap_or(self.trials_max);
        self.minutes = of.minutes.or(self.minutes);
        self.warm = (self.warm || of.warm) && !of.no_warm;
    }

    /// Consecutive trials that must hold, not counting the one that chose the value.
    pub fn fresh(&self) -> u32 {
        if self.prove.is_some() { self.proofs } else { self.proofs.saturating_sub(1).max(1) }
    }

    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// `Request`, naming the first value that is wrong and its valid range.
    pub(super) fn validate(&self) -> Result<()> {
        let share = |name: &str, value: f64, low: f64, high: f64| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(Error::request(format!(
                "`{name}` is {} %; it must lie between {} % and {} %",
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
            let what = "`find.prove` and `find.max_rate` ask for different things: a limit, and a rate";
            return Err(Error::request(what).hint("leave one of them out"));
        }
        match (self.limit_min, self.limit_max) {
            (Some(low), Some(high)) if low > high => {
                Err(Error::request(format!("`find.limit_min` is {low}, more than `find.limit_max`, {high}"))
                    .hint("exchange them, or leave one out"))
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
