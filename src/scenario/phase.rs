//! The phases of a load plan: what happens in each, and what the load engine does in those that work.

use super::{Condition, ExpectStatus, OwnWork, PhaseMark, Request, Schedule, Until, defaults};
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Name of the phase before the measured ones.
pub const WARMUP: &str = "warmup";

/// A stretch of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Phase {
    /// Unique within the scenario.
    pub name: String,
    /// What happens in it.
    pub kind: PhaseKind,
    /// Whether it ends in a mark of its name.
    #[serde(default, skip_serializing_if = "PhaseMark::is_none")]
    pub mark: PhaseMark,
}

impl Phase {
    /// A phase that ends in no mark of its own.
    pub fn new(name: impl Into<String>, kind: PhaseKind) -> Self {
        Self { name: name.into(), kind, mark: PhaseMark::None }
    }

    /// Whether this is the warm-up: the phase named [`WARMUP`]. The mark `warm` follows it.
    pub fn is_warmup(&self) -> bool {
        self.name == WARMUP
    }
}

/// What happens in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// Who decides when a request of a phase starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// Nobody: nothing is done.
    Idle,
}

impl PhaseKind {
    /// Whether anything is done in it.
    pub fn works(&self) -> bool {
        !matches!(self, Self::Idle(_))
    }
}

/// A program that drives the load instead of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Driver {
    /// A line for `sh -c`. Placeholders: `{url}` (without a path), `{host}`, `{port}`.
    pub command: String,
    /// Working directory: the folder of the scenario file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// How long it may take.
    pub within: Span,
}

/// What the load engine does in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Work {
    /// When requests are meant to start, and how many.
    pub schedule: Schedule,
    /// The request.
    pub request: Request,
    /// Further requests, drawn with `request` by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Request>,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// The status that counts as a correct answer, where the request does not name its own.
    pub expect: ExpectStatus,
    /// How long one request may take before it counts as timed out.
    pub timeout: Span,
    /// How long after the planned end answers are waited for; the timeout where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Span>,
    /// The protocol spoken.
    #[serde(default)]
    pub protocol: Protocol,
    /// Connections that are slow on purpose.
    #[serde(default)]
    pub pace: Pace,
    /// The phase ends early when one of these holds over an interval of about a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<Condition>,
}

impl Work {
    /// A request over and over in a closed model, all else as it is by default.
    pub fn closed(request: Request, connections: u32, until: Until) -> Self {
        Self {
            schedule: Schedule::Closed { connections, until, think: Span::default() },
            request,
            others: Vec::new(),
            keep_alive: true,
            expect: ExpectStatus::Success,
            timeout: defaults::TIMEOUT,
            drain: None,
            protocol: Protocol::Http1,
            pace: Pace::default(),
            stop: Vec::new(),
        }
    }

    /// All requests, the first one first.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        std::iter::once(&self.request).chain(&self.others)
    }

    /// How long after the planned end answers are waited for.
    pub fn drain(&self) -> Span {
        self.drain.unwrap_or(self.timeout)
    }
}

/// The protocol spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1, one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2, over TLS by ALPN, in clear with prior knowledge.
    Http2 {
        /// Requests at a time on a connection, at least 1.
        streams: u32,
    },
}

impl Protocol {
    /// Requests at a time on a connection.
    pub fn streams(self) -> u32 {
        match self {
            Self::Http1 => 1,
            Self::Http2 { streams } => streams,
        }
    }
}

/// Connections that are slow on purpose; `None` is as fast as it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pace {
    /// Bytes sent per second on each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Bytes>,
    /// Bytes read per second from each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive: Option<Bytes>,
}

impl Pace {
    /// Whether anything is slow.
    pub fn is_slow(self) -> bool {
        self.send.is_some() || self.receive.is_some()
    }
}
