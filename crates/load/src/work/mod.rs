//! The work of one phase: requests, their schedule, and the protocol that carries them.

mod condition;
mod request;
mod schedule;

pub use condition::{Bound, Condition, Figure, Measured, Relation, Statistic, Time};
pub use request::{Body, Checks, ExpectStatus, Method, Request};
pub use schedule::{Arrivals, Pool, Rate, Schedule, Spacing, Until};

use loadline_base::units::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The default timeout of a request: longer than any pause a healthy server shows under a closed load.
pub const TIMEOUT: Span = Span::seconds(10);

/// The work of the load engine in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Work {
    /// When requests are meant to start, and how many.
    pub schedule: Schedule,
    /// The request.
    pub request: Request,
    /// Further requests, drawn with `request` by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Request>,
    /// Whether to reuse connections.
    pub keep_alive: bool,
    /// The status that counts as a correct response, unless the request names its own.
    pub expect: ExpectStatus,
    /// How long one request may take before it counts as timed out.
    pub timeout: Span,
    /// How long to wait for responses after the planned end; by default, the timeout.
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
    /// One request, repeated in a closed model, with defaults for everything else.
    pub fn closed(request: Request, connections: u32, until: Until) -> Self {
        Self {
            schedule: Schedule::Closed { connections, until, think: Span::default() },
            request,
            others: Vec::new(),
            keep_alive: true,
            expect: ExpectStatus::Success,
            timeout: TIMEOUT,
            drain: None,
            protocol: Protocol::Http1,
            pace: Pace::default(),
            stop: Vec::new(),
        }
    }

    /// All requests, starting with `request`.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        std::iter::once(&self.request).chain(&self.others)
    }

    /// How long to wait for responses after the planned end.
    pub fn drain(&self) -> Span {
        self.drain.unwrap_or(self.timeout)
    }
}

/// The protocol spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1, one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2, with ALPN over TLS and prior knowledge in cleartext.
    Http2 {
        /// Concurrent requests on a connection, at least 1.
        streams: u32,
    },
}

impl Protocol {
    /// Concurrent requests on a connection.
    pub fn streams(self) -> u32 {
        match self {
            Self::Http1 => 1,
            Self::Http2 { streams } => streams,
        }
    }
}

/// Connections that are slow on purpose; `None` for full speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
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

/// How to connect to a server over TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
pub struct Tls {
    /// CA certificates (PEM) to trust in addition to the system's.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Whether to accept any server certificate.
    #[serde(default)]
    pub insecure: bool,
    /// Client certificate (PEM), with its chain, to present if the server asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// Its private key (PEM); by default, the key is in the certificate file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}
