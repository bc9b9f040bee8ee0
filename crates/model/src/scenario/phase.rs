//! The phases of a load plan: what happens in each.

use super::{OwnWork, PhaseMark, Schedule, Until, Work, is_default};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Name of the phase before the measured ones.
pub const WARMUP: &str = "warmup";

/// A stretch of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Phase {
    /// Unique within the scenario.
    pub name: String,
    /// The activity in the phase.
    pub kind: PhaseKind,
    /// Whether the phase ends in a mark of its own name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mark: PhaseMark,
    /// Whether the phase ends once the subject is warm, at the end of its work at the latest.
    #[serde(default, skip_serializing_if = "is_default")]
    pub until_steady: bool,
}

impl Phase {
    /// A phase without a mark of its own.
    pub fn new(name: impl Into<String>, kind: PhaseKind) -> Self {
        Self { name: name.into(), kind, mark: PhaseMark::None, until_steady: false }
    }

    /// Ends the phase once the subject is warm: at the latest after `within`, or else at its own end. A schedule in a
    /// file keeps its own end.
    pub(super) fn ends_when_steady(&mut self, within: Option<Span>) {
        self.until_steady = true;
        if let (PhaseKind::Work(work), Some(within)) = (&mut self.kind, within) {
            work.schedule.set_until(Until::Elapsed(within));
        }
    }

    /// Whether this is the warm-up: the phase named [`WARMUP`]. The mark `warm` follows it.
    pub fn is_warmup(&self) -> bool {
        self.name == WARMUP
    }
}

/// The activity in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a scenario has a handful of phases, most of them work")]
pub enum PhaseKind {
    /// The load engine works.
    Work(Work),
    /// Another program drives the load.
    Driver(Driver),
    /// Nothing is sent: the subject works by itself.
    Own(OwnWork),
    /// Nothing is sent.
    Idle(Span),
}

/// The model of a phase: what decides when a request starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// The last answer on the same connection.
    #[default]
    Closed,
    /// A plan, whether or not the server keeps up.
    Open,
    /// A program that drives the load instead of the engine.
    Driver,
    /// The subject, which works by itself.
    Subject,
    /// Nothing: the phase is idle.
    Idle,
}

impl From<&Schedule> for Model {
    fn from(schedule: &Schedule) -> Self {
        if schedule.is_open() { Self::Open } else { Self::Closed }
    }
}

impl PhaseKind {
    /// Whether any work is done in the phase.
    pub fn works(&self) -> bool {
        !matches!(self, Self::Idle(_))
    }

    /// The work of the load engine, if any.
    pub fn work(&self) -> Option<&Work> {
        if let Self::Work(work) = self { Some(work) } else { None }
    }

    /// The same, mutable.
    pub fn work_mut(&mut self) -> Option<&mut Work> {
        if let Self::Work(work) = self { Some(work) } else { None }
    }

    /// The work that the subject does by itself, if any.
    pub fn own(&self) -> Option<&OwnWork> {
        if let Self::Own(own) = self { Some(own) } else { None }
    }
}

/// A program that drives the load instead of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Driver {
    /// A command line for `sh -c`. Placeholders: `{url}` (without a path), `{host}`, `{port}`.
    pub command: String,
    /// Working directory: the folder of the scenario file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// How long the program may take.
    pub within: Span,
}
