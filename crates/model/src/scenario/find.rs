//! The settings of a search for the load line: its targets, the step at which it stops, the proofs it needs.

use super::budget::Budget;
use super::compare::Share;
use super::schema;
use super::validate::{memory, within};
use super::written::parsed;
use crate::error::{Error, Result};
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// How the load line is searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Find {
    /// The targets that must hold; the defaults for the load if none is named.
    pub target: Vec<Budget>,
    /// The relative step at which the search stops, above 0 and below 1.
    pub step: f64,
    /// Trials in a row that must hold, at least 1. The one by which a search chose the value is among them.
    pub proofs: u32,
    /// The share of the line that is added to it in the answer.
    pub headroom: f64,
    /// How long the load of the last trial lasts, which tests the limit and the heap to set; 0 leaves it out.
    pub soak: Span,
    /// Leaves the heap to the JVM, which chooses it by the limit.
    pub as_is: bool,
    /// The smallest limit to ask.
    pub limit_min: Option<Bytes>,
    /// The largest limit to ask; what the machine has where it names none.
    pub limit_max: Option<Bytes>,
    /// The one limit to prove, instead of a search for the smallest.
    pub prove: Option<Bytes>,
    /// Searches the highest rate that the configuration's limit carries, instead of a limit.
    pub max_rate: bool,
    /// Trials after which the search ends, whatever is known by then.
    pub trials_max: u32,
    /// Whether the line of a host that has the file pages in memory already is searched, too.
    pub warm: bool,
}

/// How the load line is searched, as written.
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
    /// Leaves the heap to the JVM, which chooses it by the limit; only the limit is searched.
    #[arg(long, help = "Leave the heap to the JVM, which chooses it by the limit")]
    pub as_is: bool,
    /// The relative step at which the search stops, from 0.1 % to 50 %.
    #[arg(long, value_name = "SHARE", help = "The relative step at which the search stops [default: 2%]")]
    #[schemars(with = "Option<schema::Step>", extend("default" = "2%"))]
    #[serde(deserialize_with = "parsed")]
    pub step: Option<Share>,
    /// Fresh trials in a row that must hold at the line, without the one that chose it.
    #[arg(long, value_name = "N", help = "Fresh trials in a row that must hold [default: 4]")]
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 4))]
    pub proofs: Option<u32>,
    /// The safety margin that the answer adds to the line, as a share of it; at most ten times the line.
    #[arg(long, value_name = "SHARE", help = "The safety margin that the answer adds to the line [default: 10%]")]
    #[schemars(with = "Option<schema::Headroom>", extend("default" = "10%"))]
    #[serde(deserialize_with = "parsed")]
    pub headroom: Option<Share>,
    /// How long the load of one more trial lasts, which tests the limit and the heap to set; `0s` leaves it out.
    #[arg(long, value_name = "TIME", help = SOAK)]
    #[schemars(extend("default" = "60s"))]
    pub soak: Option<Span>,
    /// The smallest limit to ask.
    #[arg(long, value_name = "SIZE", help = "The smallest limit to ask [default: 16m]")]
    pub limit_min: Option<Bytes>,
    /// The largest limit to ask, and the one at which memory is to be no concern; what the machine has where left out.
    #[arg(long, value_name = "SIZE", help = LIMIT_MAX)]
    pub limit_max: Option<Bytes>,
    /// The one limit to prove, instead of a search for the smallest.
    #[arg(long, value_name = "SIZE", conflicts_with = "limit_min", help = PROVE)]
    pub prove: Option<Bytes>,
    /// Searches the highest rate that the configuration's limit carries, instead of a limit.
    #[arg(long, conflicts_with_all = ["limit_min", "limit_max", "prove", "as_is"], help = MAX_RATE)]
    pub max_rate: bool,
    /// Trials after which the search ends, whatever is known by then.
    #[arg(long, value_name = "N")]
    #[arg(help = "Trials after which the search ends, whatever is known by then [default: 60]")]
    #[schemars(extend("minimum" = 1, "maximum" = 1000, "default" = 60))]
    pub trials_max: Option<u32>,
    /// Whether the line of a host that has the file pages in memory already is searched, too.
    #[arg(long, conflicts_with = "no_warm")]
    #[arg(help = "Search the line of a host that has the file pages in memory already, too")]
    pub warm: bool,
    /// Do not search it, where the scenario asks for it
    #[arg(long)]
    #[serde(skip)]
    pub no_warm: bool,
}

const LIMIT_MAX: &str =
    "The limit at which memory is no concern [default: that of `--limit`, or most of what the machine has]";
const SOAK: &str =
    "Load of one more trial, which tests the limit and the heap to set; `0s` leaves it out [default: 60s]";
const PROVE: &str = "Prove this limit instead of a search; exit code 1 if it does not hold";
const MAX_RATE: &str = "Find the highest rate that `--limit` carries, instead of a limit; `--rate` is where to begin";

/// A finer step is lost in what limits of whole pages and random edges can tell; a coarser one finds nothing.
const STEP: (f64, f64) = (0.001, 0.5);
/// More than this is no headroom.
const HEADROOM_MAX: f64 = 10.0;
/// The most proofs or trials that an option takes.
const TRIALS_MAX: u64 = 1000;

impl Find {
    /// Takes in what was written; what it leaves out stays.
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
        self.warm = (self.warm || of.warm) && !of.no_warm;
    }

    /// Trials in a row that must hold and chose no value.
    pub fn fresh(&self) -> u32 {
        if self.prove.is_some() { self.proofs } else { self.proofs.saturating_sub(1).max(1) }
    }

    /// Checks what the types do not.
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
            warm: false,
        }
    }
}
