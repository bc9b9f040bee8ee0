//! The phases of a load plan: when requests are meant to start, what is sent, what counts as a correct answer.

use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A stretch of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Unique within the scenario.
    pub name: String,
    /// What happens in it.
    pub kind: PhaseKind,
}

impl Phase {
    /// Whether this is the warm-up: the phase named `warmup`. The mark `warm` follows it.
    pub fn is_warmup(&self) -> bool {
        self.name == "warmup"
    }
}

/// What happens in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// The load engine works.
    Work(Work),
    /// Nothing is sent.
    Idle(Span),
}

/// What the load engine does in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// When requests are meant to start, and how many.
    pub schedule: Schedule,
    /// The request.
    pub request: Request,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// The status that counts as a correct answer.
    pub expect: ExpectStatus,
    /// How long one request may take before it counts as timed out.
    pub timeout: Span,
}

/// When requests are meant to start. One value, one code path in the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Closed model: each connection sends its next request after the answer to the last.
    Closed {
        /// Connections kept busy, at least 1.
        connections: u32,
        /// When it ends.
        until: Until,
    },
}

impl Schedule {
    /// The model's name in results.
    pub fn model(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
        }
    }

    /// Connections the engine may open.
    pub fn connections(&self) -> u32 {
        match self {
            Self::Closed { connections, .. } => *connections,
        }
    }

    /// When it ends.
    pub fn until(&self) -> Until {
        match self {
            Self::Closed { until, .. } => *until,
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { connections, until } => write!(f, "closed, {connections} connections, {until}"),
        }
    }
}

/// When a phase of work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// After this many requests, correct or failed.
    Requests(u64),
    /// After this time.
    Elapsed(Span),
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(n) => write!(f, "{} requests", crate::units::grouped(*n)),
            Self::Elapsed(span) => write!(f, "{span}"),
        }
    }
}

/// One HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Upper-case method.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Headers on top of `Host`, `Content-Length` and `Connection`.
    pub headers: Vec<(String, String)>,
    /// What is sent after the head.
    pub body: Body,
}

/// HTTP methods the engine sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// GET.
    Get,
    /// PUT.
    Put,
    /// POST.
    Post,
}

impl Method {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
        }
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_uppercase().as_str() {
            "GET" => Ok(Self::Get),
            "PUT" => Ok(Self::Put),
            "POST" => Ok(Self::Post),
            _ => Err(format!("`{text}` is none of GET, PUT, POST")),
        }
    }
}

/// What is sent after the head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// This many bytes of printable pseudo-random text, the same for every request.
    Generated(Bytes),
    /// The contents of this file.
    File(PathBuf),
}

/// The status that counts as a correct answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum ExpectStatus {
    /// Any of 200–299.
    #[default]
    Success,
    /// Exactly this one.
    Exactly(u16),
}

impl ExpectStatus {
    /// Whether this status is a correct answer.
    #[inline]
    pub fn accepts(self, status: u16) -> bool {
        match self {
            Self::Success => (200..300).contains(&status),
            Self::Exactly(expected) => status == expected,
        }
    }
}
