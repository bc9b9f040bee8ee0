//! What a search for the load line is asked: what must hold, how finely to look, how sure to be.

use super::budget::Budget;
use super::compare::Amount;
use super::validate::{memory, within};
use crate::error::{Error, Result};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// How the load line is searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Find {
    /// What must hold; what is usual for the load where it names nothing.
    pub target: Vec<Budget>,
    /// The relative step at which the search stops, above 0 and below 1.
    pub step: f64,
    /// Trials in a row that must hold, at least 1.
    pub proofs: u32,
    /// What is added to the line in the answer.
    pub headroom: f64,
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

/// How the load line is searched; changes what a scenario says.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Searching")]
pub struct Searching {
    /// What must hold: `p99<50ms`, `rate>=98%` of what is offered, `failed==0`, `gc_share<10%`, `start_up<5s`; may be
    /// repeated [default: rate>=98% and failed==0; rate>=90% in a closed model]
    #[arg(long, value_name = "TARGET")]
    pub target: Vec<Budget>,
    /// Leave the heap to the JVM, which chooses it by the limit
    #[arg(long)]
    pub as_is: bool,
    /// The relative step at which the search stops [default: 2%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub step: Option<f64>,
    /// Trials in a row that must hold [default: 5]
    #[arg(long, value_name = "N")]
    pub proofs: Option<u32>,
    /// What is added to the line in the answer [default: 10%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub headroom: Option<f64>,
    /// The smallest limit to ask [default: 16m]
    #[arg(long, value_name = "SIZE")]
    pub limit_min: Option<Bytes>,
    /// The limit at which memory is no concern [default: that of `--limit`, or most of what the machine has]
    #[arg(long, value_name = "SIZE")]
    pub limit_max: Option<Bytes>,
    /// Prove this limit, instead of searching for the smallest: exit code 1 where it does not hold
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["limit_min"])]
    pub prove: Option<Bytes>,
    /// Find the highest rate that `--limit` carries, instead of a limit; `--rate` is where to begin
    #[arg(long, conflicts_with_all = ["limit_min", "limit_max", "prove", "as_is"])]
    pub max_rate: bool,
    /// Trials after which the search ends, whatever is known by then [default: 60]
    #[arg(long, value_name = "N")]
    pub trials_max: Option<u32>,
    /// Search the line of a host that has the file pages in memory already, too
    #[arg(long, conflicts_with = "no_warm")]
    pub warm: bool,
    /// Do not search it, where the scenario asks for it
    #[arg(long)]
    pub no_warm: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse()? {
        Amount::Share(share) | Amount::Number(share) if (0.0..10.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is no share; write it as `2%`")),
    }
}

/// A finer step is lost in what limits of whole pages and random edges can tell; a coarser one finds nothing.
const STEP: (f64, f64) = (0.001, 0.5);
/// More than this is no headroom.
const HEADROOM_MAX: f64 = 10.0;
/// Proofs and trials that anybody waits for.
const TRIALS_MAX: u64 = 1000;

impl Find {
    /// Takes in what was typed.
    pub fn change(&mut self, typed: &Searching) {
        if !typed.target.is_empty() {
            self.target.clone_from(&typed.target);
        }
        self.as_is |= typed.as_is;
        self.step = typed.step.unwrap_or(self.step);
        self.proofs = typed.proofs.unwrap_or(self.proofs);
        self.headroom = typed.headroom.unwrap_or(self.headroom);
        self.limit_min = typed.limit_min.or(self.limit_min);
        self.limit_max = typed.limit_max.or(self.limit_max);
        self.prove = typed.prove.or(self.prove);
        self.max_rate |= typed.max_rate;
        self.trials_max = typed.trials_max.unwrap_or(self.trials_max);
        self.warm = (self.warm || typed.warm) && !typed.no_warm;
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
