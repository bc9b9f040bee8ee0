//! Reports that outside load tools print at their end, as values: text to [`Reported`], nothing else.
//!
//! One file for each tool. An unknown tool, a text that was cut short and a sentence that reads differently in another
//! version yield `None` or less, never a wrong number. Only complete lines count. A count is taken only once no later
//! line can change it. If a tool prints both a count and what it was computed from, they must agree. Only the last of
//! several reports in one output counts.

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

/// A tool whose output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// wrk.
    Wrk,
    /// wrk2, which prints as wrk does.
    Wrk2,
    /// ApacheBench.
    Ab,
    /// oha.
    Oha,
    /// k6.
    K6,
    /// h2load of nghttp2.
    H2load,
    /// Hyperfoil, its `wrk` and its statistics.
    Hyperfoil,
}

impl Tool {
    /// As it calls itself.
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

/// From where to where a tool's times reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// From the actual start of a request: service time, which a server that stalls flatters.
    Service,
    /// From the intended start: response time.
    Response,
}

impl Timing {
    /// As documents and the tags of histograms name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
        }
    }
}

/// Times in milliseconds, as far as a tool tells them, rounded as it rounds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Times {
    /// Median.
    pub p50: Option<f64>,
    /// 90 %.
    pub p90: Option<f64>,
    /// 99 %.
    pub p99: Option<f64>,
    /// 99.9 %.
    pub p999: Option<f64>,
    /// Longest.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
}

impl Times {
    /// Puts a time at its percentile, in per cent; others are not kept.
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

/// The report of a tool on its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reported {
    /// The tool that printed the report.
    pub tool: Tool,
    /// Requests that the tool counts as answered or failed.
    pub requests: u64,
    /// Requests that the tool counts as failed, by kind as far as told; `None` where it says nothing of failures.
    pub failed: Option<Failures>,
    /// How long the tool measured, in seconds.
    pub seconds: Option<f64>,
    /// Requests per second, in its own words: with most tools failed ones count too.
    pub requests_per_s: Option<f64>,
    /// Times of the answers in ms, rounded as it rounds them.
    pub times_ms: Times,
    /// The start of its times: the actual start of a request, or the intended one.
    pub timing: Timing,
    /// Bytes received, or body bytes where it counts only those.
    pub received_bytes: Option<u64>,
}

impl Reported {
    /// Requests that did not fail, as far as the tool tells.
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

/// Program names and who reads what they print. Hyperfoil prints as wrk does, but for details: it comes before wrk.
const READERS: [(&[&str], ReportParser); 6] = [
    (&["hyperfoil", "cli.sh", "wrk.sh", "wrk2.sh"], hyperfoil::read),
    (&["wrk", "wrk2"], wrk::read),
    (&["ab"], ab::read),
    (&["oha"], oha::read),
    (&["k6"], k6::read),
    (&["h2load"], h2load::read),
];

/// Reads what a command printed, stdout and stderr in any order of their lines.
///
/// The reader of the tool the command names is asked first; then every other one, because the command may be a script.
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

/// The words of a command without their folders.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let apart = |c: char| c.is_whitespace() || ";|&()\"'".contains(c);
    command.split(apart).map(|word| word.rsplit('/').next().unwrap_or(word))
}

/// Without the control sequences of terminals, and of a line that was written over only what was seen last.
fn plain(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut rest = output.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                // Parameters and intermediates, up to the letter that says what is done.
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

/// The complete lines of a text. A last line without a line feed may be cut off, so it is left out.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    text[..end].lines()
}

/// The complete lines from the last one on that `begins` a report; empty if no line does.
fn last_report(text: &str, begins: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut lines: Vec<&str> = lines(text).collect();
    let at = lines.iter().rposition(|line| begins(line)).unwrap_or(lines.len());
    lines.split_off(at)
}

/// Returns the text after `label` on the first line that begins with it, without the spaces around it.
fn after<'a>(lines: &[&'a str], label: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.trim_start().strip_prefix(label)).map(str::trim)
}
