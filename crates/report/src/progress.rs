//! The live line on stderr while a trial runs, and the messages around it.

use crate::record::Second;
use crate::terminal::{LINE_COLUMNS, WIDTH, folded_lines};
use crate::units::{Bytes, Span, grouped, milliseconds, per_second, visible};
use std::io::{IsTerminal, Write};

/// Progress on stderr: a line rewritten in place on a terminal, one line for each step elsewhere, nothing when quiet.
#[derive(Debug)]
pub struct Progress {
    quiet: bool,
    terminal: bool,
    live: bool,
}

impl Progress {
    /// Progress on stderr, unless `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stderr().is_terminal(), live: false }
    }

    /// A step worth a line of its own.
    pub fn step(&mut self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// The state of what runs, in words; shown on a terminal only.
    pub fn live_text(&mut self, text: &str) {
        if !self.quiet && self.terminal {
            write_stderr(&format!("\r\x1b[K  {}", visible(text)));
            self.live = true;
        }
    }

    /// The state of the running phase of a trial; shown on a terminal only.
    pub fn live(&mut self, phase: &str, done: u64, failed: u64, rate_per_s: f64, rss_bytes: u64) {
        let failures = if failed > 0 { format!("{} failed, ", grouped(failed)) } else { String::new() };
        let answers = match done + failed {
            0 => String::new(),
            _ => format!("{} ok, {failures}{}/s, ", grouped(done), grouped(rate_per_s.round() as u64)),
        };
        self.live_text(&format!("{phase}: {answers}RSS {}", Bytes(rss_bytes)));
    }

    /// Prints something that the user must know, even when quiet.
    pub fn warn(&mut self, text: &str) {
        let clear = self.clear();
        let columns = if self.terminal { WIDTH } else { LINE_COLUMNS };
        write_stderr(&format!("{clear}{}", folded_lines(text, columns)));
    }

    /// Takes the live line away.
    pub fn clear_line(&mut self) {
        let clear = self.clear();
        write_stderr(clear);
    }

    fn clear(&mut self) -> &'static str {
        if std::mem::take(&mut self.live) { "\r\x1b[K" } else { "" }
    }
}

/// A closed stderr is no reason to stop weighing.
fn write_stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The last second of a load without a trial:
/// `steady 3s of 10s: 4,998/s, p50 0.412 p99 1.23 ms, 3 failed, 25 open, 12 wait`.
pub fn load_line(second: &Second, elapsed_s: f64, planned: Option<Span>) -> String {
    let rate = per_second(second.achieved_per_s);
    let of = match planned {
        // Requests that are due or in flight at the end are still awaited.
        Some(span) if elapsed_s > span.as_s() + 0.5 => format!(" of {span} (drain)"),
        Some(span) => format!(" of {span}"),
        None => String::new(),
    };
    let mut text = format!("{} {elapsed_s:.0}s{of}: {rate}/s", second.phase);
    if let Some(times) = second.response_ms.or(second.service_ms) {
        text.push_str(&format!(", p50 {} p99 {} ms", milliseconds(times.p50), milliseconds(times.p99)));
    }
    if second.failed > 0 {
        text.push_str(&format!(", {} failed", grouped(second.failed)));
    }
    text.push_str(&format!(", {} open", grouped(second.open_connections)));
    if let Some(waiting) = second.queue.filter(|waiting| *waiting > 0) {
        text.push_str(&format!(", {} wait", grouped(waiting)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Quantiles;

    #[test]
    fn the_live_line_says_what_the_last_second_was() {
        let times = Quantiles { p50: 0.412, p99: 1.23, ..Quantiles::default() };
        let second = Second {
            phase: "steady".to_owned(),
            achieved_per_s: 4998.0,
            failed: 3,
            open_connections: 25,
            queue: Some(12),
            service_ms: Some(times),
            ..Second::default()
        };
        let expect = "steady 3s of 10s: 4,998/s, p50 0.412 p99 1.23 ms, 3 failed, 25 open, 12 wait";
        assert_eq!(load_line(&second, 3.01, Some(Span::seconds(10))), expect);
        assert!(load_line(&second, 11.2, Some(Span::seconds(10))).starts_with("steady 11s of 10s (drain): "));
        assert!(load_line(&second, 11.2, None).starts_with("steady 11s: "));
    }
}
