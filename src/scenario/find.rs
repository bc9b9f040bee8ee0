//! What a search for the load line is asked: what must hold, how finely to look, how sure to be.

use super::budget::Budget;
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
