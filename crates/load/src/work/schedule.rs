//! Schedules as values: a closed one is defined by its connections, an open one by its arrivals.

use loadline_base::units::{Span, grouped};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// When requests are meant to start: one value, and one code path in the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Closed model: each connection sends its next request after the previous response.
    Closed {
        /// Connections kept busy, at least 1.
        connections: u32,
        /// When it ends.
        until: Until,
        /// Think time of a connection between a response and its next request.
        #[serde(default)]
        think: Span,
    },
    /// Open model: requests start on a schedule, whether or not the server keeps up.
    Open {
        /// When they start.
        arrivals: Arrivals,
        /// The connections that carry them.
        pool: Pool,
    },
}

impl Schedule {
    /// Whether requests start on a schedule, whether or not the server keeps up.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Initial number of connections.
    pub fn connections(&self) -> u32 {
        match self {
            Self::Closed { connections, .. } => *connections,
            Self::Open { pool, .. } => pool.connections,
        }
    }

    /// Maximum number of connections.
    pub fn connections_max(&self) -> u32 {
        match self {
            Self::Closed { connections, .. } => *connections,
            Self::Open { pool, .. } => pool.connections_max.max(pool.connections),
        }
    }

    /// Sets the number of connections; a growing pool keeps its maximum, if that is higher.
    pub fn set_connections(&mut self, n: u32) {
        match self {
            Self::Closed { connections, .. } => *connections = n,
            Self::Open { pool, .. } if pool.connections_max <= pool.connections => *pool = Pool::fixed(n),
            Self::Open { pool, .. } => *pool = Pool { connections: n, connections_max: pool.connections_max.max(n) },
        }
    }

    /// The rate of an open model; `None` for a closed model, or if a file sets the times.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Self::Open { arrivals: Arrivals::Rate { rate, .. }, .. } => Some(*rate),
            _ => None,
        }
    }

    /// Multiplies all rates of the schedule by `factor`; a schedule without rates does not change.
    pub fn scale(&mut self, factor: f64) {
        if let Self::Open { arrivals: Arrivals::Rate { rate, .. }, .. } = self {
            *rate = rate.scaled(factor);
        }
    }

    /// Replaces a closed model with a constant rate, with the same connections and end.
    pub fn open(&mut self, rate_per_s: f64) {
        if let Self::Closed { connections, until, .. } = *self {
            let arrivals = Arrivals::Rate { rate: Rate::Constant(rate_per_s), spacing: Spacing::Even, until };
            *self = Self::Open { arrivals, pool: Pool::fixed(connections) };
        }
    }

    /// Replaces an open model with a closed one that has the same end. A schedule in a file does not change.
    pub fn close(&mut self, connections: u32) {
        if let Some(until) = self.until().filter(|_| self.is_open()) {
            *self = Self::Closed { connections, until, think: Span::default() };
        }
    }

    /// When it ends; `None` if a file sets the times.
    pub fn until(&self) -> Option<Until> {
        match self {
            Self::Closed { until, .. } | Self::Open { arrivals: Arrivals::Rate { until, .. }, .. } => Some(*until),
            Self::Open { arrivals: Arrivals::File(_), .. } => None,
        }
    }

    /// Its duration, if known: by time, or by requests at a constant rate.
    pub fn seconds(&self) -> Option<f64> {
        match (self.until()?, self) {
            (Until::Elapsed(span), _) => Some(span.as_s()),
            (Until::Requests(requests), Self::Open { arrivals: Arrivals::Rate { rate, .. }, .. }) => {
                Some(requests as f64 / rate.max())
            }
            (Until::Requests(_), _) => None,
        }
    }

    /// Sets another end; a file keeps its own.
    pub fn set_until(&mut self, end: Until) {
        match self {
            Self::Closed { until, .. } | Self::Open { arrivals: Arrivals::Rate { until, .. }, .. } => *until = end,
            Self::Open { arrivals: Arrivals::File(_), .. } => {}
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { connections, until, think } if think.0.is_zero() => {
                write!(f, "closed, {connections} connections, {until}")
            }
            Self::Closed { connections, until, think } => {
                write!(f, "closed, {connections} connections, think time {think}, {until}")
            }
            Self::Open { arrivals, pool } => write!(f, "open, {arrivals}, {pool}"),
        }
    }
}

/// When a phase of work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
            Self::Requests(n) => write!(f, "{} requests", grouped(*n)),
            Self::Elapsed(span) => write!(f, "{span}"),
        }
    }
}

/// The starts of an open model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At a rate that may change over time.
    Rate {
        /// Requests per second over time.
        rate: Rate,
        /// How they are spaced.
        spacing: Spacing,
        /// When it ends. A changing rate ends by time.
        until: Until,
    },
    /// One start on each line of this file: seconds since the beginning of the phase, ascending.
    File(PathBuf),
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { rate, spacing, until } => {
                let poisson = if *spacing == Spacing::Poisson { " (Poisson)" } else { "" };
                write!(f, "{rate}{poisson}, {until}")
            }
            Self::File(path) => write!(f, "start times from {}", path.display()),
        }
    }
}

/// How arrivals are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// At equal intervals.
    #[default]
    Even,
    /// At random, independently of each other (a seeded Poisson process).
    Poisson,
}

/// Requests per second over a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// The same throughout.
    Constant(f64),
    /// From one rate to the other, linearly.
    Ramp {
        /// At the beginning.
        from: f64,
        /// At the end.
        to: f64,
    },
    /// From one rate to the other in steps of equal length and height.
    Staircase {
        /// The first step.
        from: f64,
        /// The last step.
        to: f64,
        /// Number of steps, at least 2.
        steps: u32,
    },
}

impl Rate {
    /// The rates at the beginning and the end, per second.
    fn ends(&self) -> (f64, f64) {
        match *self {
            Self::Constant(rate) => (rate, rate),
            Self::Ramp { from, to } | Self::Staircase { from, to, .. } => (from, to),
        }
    }

    /// The highest, per second.
    pub fn max(&self) -> f64 {
        let (from, to) = self.ends();
        from.max(to)
    }

    /// The lowest, per second.
    pub fn min(&self) -> f64 {
        let (from, to) = self.ends();
        from.min(to)
    }

    /// The rate multiplied by `factor`.
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Constant(rate) => Self::Constant(rate * factor),
            Self::Ramp { from, to } => Self::Ramp { from: from * factor, to: to * factor },
            Self::Staircase { from, to, steps } => Self::Staircase { from: from * factor, to: to * factor, steps },
        }
    }

    /// The mean over the whole phase, per second.
    pub fn mean(&self) -> f64 {
        let (from, to) = self.ends();
        (from + to) / 2.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(rate) => write!(f, "{rate}/s"),
            Self::Ramp { from, to } => write!(f, "ramp from {from}/s to {to}/s"),
            Self::Staircase { from, to, steps } => write!(f, "{from}/s to {to}/s in {steps} steps"),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    /// `500`, `500/s`, `30/m`, `1.5k`; a ramp is `100..1000`; a staircase `100..1000:10` (10 steps).
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is not a rate; write it as `500`, `100..1000`, or `100..1000:10` (steps)");
        let Some((from, rest)) = text.split_once("..") else {
            return per_second(text).map(Self::Constant).ok_or_else(refuse);
        };
        let (to, steps) = match rest.split_once(':') {
            Some((to, steps)) => (to, Some(steps.parse::<u32>().map_err(|_| refuse())?)),
            None => (rest, None),
        };
        let (from, to) = (per_second(from).ok_or_else(refuse)?, per_second(to).ok_or_else(refuse)?);
        Ok(match steps {
            Some(steps) => Self::Staircase { from, to, steps },
            None => Self::Ramp { from, to },
        })
    }
}

/// `500`, `1.5k`, `500/s`, `30/m` as requests per second.
fn per_second(text: &str) -> Option<f64> {
    let (number, seconds) = match text.trim().split_once('/') {
        Some((number, "s")) => (number, 1.0),
        Some((number, "m" | "min")) => (number, 60.0),
        Some((number, "h")) => (number, 3600.0),
        Some(_) => return None,
        None => (text.trim(), 1.0),
    };
    let (digits, factor) = match number.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000.0),
        None => (number, 1.0),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.parse::<f64>().ok().filter(|_| plain).map(|number| number * factor / seconds)
}

/// The connections of an open model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pool {
    /// Initial number of connections, at least 1.
    pub connections: u32,
    /// The maximum number of connections while requests wait; equal to `connections` if the pool is fixed.
    pub connections_max: u32,
}

impl Pool {
    /// A pool that does not grow.
    pub fn fixed(connections: u32) -> Self {
        Self { connections, connections_max: connections }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connections_max > self.connections {
            true => write!(f, "{} to {} connections", self.connections, self.connections_max),
            false => write!(f, "{} connections", self.connections),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_of_rates_are_parsed() {
        let check = |text: &str, expect: Rate| assert_eq!(text.parse(), Ok(expect), "{text}");
        check("500", Rate::Constant(500.0));
        check("1.5k/s", Rate::Constant(1500.0));
        check("30/m", Rate::Constant(0.5));
        check("100..1k", Rate::Ramp { from: 100.0, to: 1000.0 });
        check("100..1000:10", Rate::Staircase { from: 100.0, to: 1000.0, steps: 10 });
        for text in ["", "-1", "1e9", "x", "1..", "..2", "1/d", "1..2:x", "nan", "inf", "."] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn schedules_describe_themselves() {
        let rate = Rate::Staircase { from: 1.0, to: 9.0, steps: 3 };
        let arrivals = Arrivals::Rate { rate, spacing: Spacing::Poisson, until: Until::Elapsed(Span::seconds(60)) };
        let schedule = Schedule::Open { arrivals, pool: Pool { connections: 25, connections_max: 100 } };
        assert_eq!(schedule.to_string(), "open, 1/s to 9/s in 3 steps (Poisson), 1m, 25 to 100 connections");
        assert_eq!(schedule.connections_max(), 100);
    }
}
