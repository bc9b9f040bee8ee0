//! Parses the final reports of external load tools: text to [`Reported`], nothing else.
//!
//! One file per tool. An unknown tool, truncated text, or wording from another version yields `None` or fewer values,
//! never a wrong number. Only complete lines count. A count is accepted only once no later line can change it. If a
//! tool prints both a count and the values behind it, they must agree. If an output has several reports, only the last
//! one counts.

mod ab;
mod h2load;
mod hyperfoil;
mod json;
mod k6;
mod oha;
mod quantity;
#[cfg(test)]
mod tests;
mod wrk;

use super::Failures;
use serde::{Deserialize, Serialize};

/// A load tool whose output Loadline reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// wrk.
    Wrk,
    /// wrk2, whose output resembles wrk's.
    Wrk2,
    /// ApacheBench.
    Ab,
    /// oha.
    Oha,
    /// k6.
    K6,
    /// h2load of nghttp2.
    H2load,
    /// Hyperfoil, from its `wrk` command or its statistics.
    Hyperfoil,
}

impl Tool {
    /// The tool's own spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::Wrk2 => "wrk2",
            Self::Ab => "ab",
            Self::Oha => "oha",
            Self::K6 => "k6",
            Self::H2load => "h2load",
            Self::Hyperfoil => "Hyperfoil",
        }
    }
}

/// What a tool's times measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// Service time, from the actual start of a request; it understates stalls.
    Service,
    /// Response time, from the intended start.
    Response,
}

impl Timing {
    /// The name in documents and histogram tags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
        }
    }
}

/// Times in milliseconds, as reported and rounded by a tool.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Times {
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Longest.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
}

impl Times {
    /// Stores a time under its percentile; ignores other percentiles.
    fn set(&mut self, percent: f64, ms: f64) {
        let slot = match percent {
            50.0 => &mut self.p50,
            90.0 => &mut self.p90,
            99.0 => &mut self.p99,
            99.9 => &mut self.p999,
            100.0 => &mut self.max,
            _ => return,
        };
        *slot = Some(ms);
    }
}

/// Report of a load tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reported {
    /// Tool that printed the report.
    pub tool: Tool,
    /// Requests that got a response or failed.
    pub requests: u64,
    /// Failed requests, by kind if known; `null` if the tool does not report failures.
    pub failed: Option<Failures>,
    /// Duration of the measurement.
    pub seconds: Option<f64>,
    /// Requests per second as reported; most tools include failed ones.
    pub requests_per_s: Option<f64>,
    /// Response times, as rounded by the tool.
    pub times_ms: Times,
    /// Whether its times start at the actual or the intended start of a request.
    pub timing: Timing,
    /// Bytes received, or only body bytes if the tool counts those.
    pub received_bytes: Option<u64>,
}

impl Reported {
    /// Requests that did not fail, according to the tool.
    pub fn ok(&self) -> u64 {
        self.requests.saturating_sub(self.failed.map_or(0, |failed| failed.total()))
    }

    fn new(tool: Tool, requests: u64) -> Self {
        Self {
            tool,
            requests,
            failed: None,
            seconds: None,
            requests_per_s: None,
            times_ms: Times::default(),
            timing: Timing::Service,
            received_bytes: None,
        }
    }
}

type ReportParser = fn(&str) -> Option<Reported>;

/// Program names, and the parsers for their output. Hyperfoil comes before wrk because their output is almost the same.
const READERS: [(&[&str], ReportParser); 6] = [
    (&["hyperfoil", "cli.sh", "wrk.sh", "wrk2.sh"], hyperfoil::read),
    (&["wrk", "wrk2"], wrk::read),
    (&["ab"], ab::read),
    (&["oha"], oha::read),
    (&["k6"], k6::read),
    (&["h2load"], h2load::read),
];

/// Parses the output of a command, with the lines of stdout and stderr in any order.
///
/// First tries the parser of the tool in the command, then all others, because the command may be a script.
pub fn read(command: &str, output: &str) -> Option<Reported> {
    let output = plain(output);
    let named = |names: &[&str]| words(command).any(|word| names.contains(&word));
    let (first, others): (Vec<_>, Vec<_>) = READERS.iter().partition(|(names, _)| named(names));
    let mut reported = first.iter().chain(&others).find_map(|(_, read)| read(&output))?;
    if reported.tool == Tool::Oha && command.contains("--latency-correction") {
        reported.timing = Timing::Response;
    }
    Some(reported)
}

/// The words of a command without their directories.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let apart = |c: char| c.is_whitespace() || ";|&()\"'".contains(c);
    command.split(apart).map(|word| word.rsplit('/').next().unwrap_or(word))
}

/// Removes terminal control sequences; keeps only the last text of an overwritten line.
fn plain(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut rest = output.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                // Parameters and intermediates, up to the final letter.
                while rest.next_if(|c| !('@'..='~').contains(c)).is_some() {}
                rest.next();
            }
            '\r' if rest.peek() != Some(&'\n') => {
                let line = plain.rfind('\n').map_or(0, |end| end + 1);
                plain.truncate(line);
            }
            '\r' | '\u{1b}' => {}
            c => plain.push(c),
        }
    }
    plain
}

/// The complete lines of the text. A last line without a line feed may be truncated, so it is omitted.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    text[..end].lines()
}

/// The complete lines from the last one for which `begins` is true; empty if there is no such line.
fn last_report(text: &str, begins: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut lines: Vec<&str> = lines(text).collect();
    let at = lines.iter().rposition(|line| begins(line)).unwrap_or(lines.len());
    lines.split_off(at)
}

/// Returns the trimmed text after `label` on the first line that begins with it.
fn after<'a>(lines: &[&'a str], label: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.trim_start().strip_prefix(label)).map(str::trim)
}
