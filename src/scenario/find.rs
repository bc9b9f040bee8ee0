//! What a search for the load line is asked: what must hold, how finely to look, how sure to be.

use super::budget::Budget;
use super::validate::within;
use crate::error::{Error, Result};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// How the load line is searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// A finer step is lost in what limits of whole pages and random edges can tell; a coarser one finds nothing.
const STEP: (f64, f64) = (0.001, 0.5);
/// More than this is no headroom.
const HEADROOM_MAX: f64 = 10.0;
/// Proofs and trials that anybody waits for.
const TRIALS_MAX: u64 = 1000;

impl Find {
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
            warm: true,
        }
    }
}
