//! The phases of a load plan.

use super::{OwnWork, PhaseMark, Schedule, Until, Work, is_default};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The name of the phase before the measured ones.
pub const WARMUP: &str = "warmup";

/// A stretch of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Phase {
    /// Its name, unique within the scenario.
    pub name: String,
    /// The activity in the phase.
    pub kind: PhaseKind,
    /// Whether the phase ends with a mark that has its name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mark: PhaseMark,
    /// Whether the phase ends once the subject is warm, at the end of its work at the latest.
    #[serde(default, skip_serializing_if = "is_default")]
    pub until_steady: bool,
}

impl Phase {
    /// A phase without its own mark.
    pub fn new(name: impl Into<String>, kind: PhaseKind) -> Self {
        Self { name: name.into(), kind, mark: PhaseMark::None, until_steady: false }
    }

    /// Ends the phase when the subject is warm: at the latest after `within`, or else at its own end. A schedule file
    /// keeps its end.
    pub(super) fn ends_when_steady(&mut self, within: Option<Span>) {
        self.until_steady = true;
        if let (PhaseKind::Work(work), Some(within)) = (&mut self.kind, within) {
            work.schedule.set_until(Until::Elapsed(within));
        }
    }

    /// Whether this is the warm-up: the phase named [`WARMUP`], which the mark `warm` follows.
    pub fn is_warmup(&self) -> bool {
        self.name == WARMUP
    }
}

/// The activity in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a scenario has a handful of phases, and most of them produce load")]
pub enum PhaseKind {
    /// The load engine works.
    Work(Work),
    /// Another program drives the load.
    Driver(Driver),
    /// Nothing is sent: the subject generates its own work.
    Own(OwnWork),
    /// Nothing is sent.
    Idle(Span),
}

/// The load model of a phase, which decides when a request starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// After the response to the previous request on the connection.
    #[default]
    Closed,
    /// On a schedule, whether or not the server keeps up.
    Open,
    /// By an external program.
    Driver,
    /// By the subject, which generates its own work.
    Subject,
    /// Never: the phase is idle.
    Idle,
}

impl From<&Schedule> for Model {
    fn from(schedule: &Schedule) -> Self {
        if schedule.is_open() { Self::Open } else { Self::Closed }
    }
}

impl PhaseKind {
    /// Whether the phase does any work.
    pub fn works(&self) -> bool {
        !matches!(self, Self::Idle(_))
    }

    /// The load engine's work, if any.
    pub fn work(&self) -> Option<&Work> {
        if let Self::Work(work) = self { Some(work) } else { None }
    }

    /// Like `work`, but mutable.
    pub fn work_mut(&mut self) -> Option<&mut Work> {
        if let Self::Work(work) = self { Some(work) } else { None }
    }

    /// The subject's own work, if any.
    pub fn own(&self) -> Option<&OwnWork> {
        if let Self::Own(own) = self { Some(own) } else { None }
    }
}

/// An external program that drives the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Driver {
    /// A command line for `sh -c`. Placeholders: `{url}` (without a path), `{host}`, `{port}`.
    pub command: String,
    /// Working directory: the directory of the scenario file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// How long the program may take.
    pub within: Span,
}
