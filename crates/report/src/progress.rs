//! The live line on stderr during a trial, and messages around it.

use crate::record::Second;
use crate::terminal::{LINE_COLUMNS, WIDTH, folded_lines};
use crate::units::{Bytes, Span, grouped, milliseconds, per_second, visible};
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal, Write};

/// If the reported width is smaller than this, it is treated as unknown.
const COLUMNS_MIN: usize = 20;

/// Progress on stderr: a line rewritten in place on a terminal, one line per step elsewhere, nothing when quiet.
#[derive(Debug)]
pub struct Progress {
    quiet: bool,
    terminal: bool,
    live: bool,
}

impl Progress {
    /// Creates the output; silent if `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stderr().is_terminal(), live: false }
    }

    /// Prints a step on its own line.
    pub fn step(&mut self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Shows the current activity, only on a terminal.
    pub fn live_text(&mut self, text: &str) {
        if !self.quiet && self.terminal {
            let line: String = visible(text).chars().take(columns_of_terminal() - 3).collect();
            write_stderr(&format!("\r\x1b[K  {line}"));
            self.live = true;
        }
    }

    /// Shows the current state of a phase, only on a terminal.
    pub fn live(&mut self, phase: &str, done: u64, failed: u64, rate_per_s: f64, rss_bytes: u64) {
        let failures = if failed > 0 { format!("{} failed, ", grouped(failed)) } else { String::new() };
        let answers = match done + failed {
            0 => String::new(),
            _ => format!("{} ok, {failures}{}/s, ", grouped(done), grouped(rate_per_s.round() as u64)),
        };
        self.live_text(&format!("{phase}: {answers}RSS {}", Bytes(rss_bytes)));
    }

    /// Prints an important message, even when quiet.
    pub fn warn(&mut self, text: &str) {
        let clear = self.clear();
        let columns = if self.terminal { columns_of_terminal() } else { LINE_COLUMNS };
        write_stderr(&format!("{clear}{}", folded_lines(text, columns)));
    }

    /// Clears the live line.
    pub fn clear_line(&mut self) {
        let clear = self.clear();
        write_stderr(clear);
    }

    fn clear(&mut self) -> &'static str {
        if std::mem::take(&mut self.live) { "\r\x1b[K" } else { "" }
    }
}

/// The terminal's columns, at most a page's; a tiny value means an unknown size.
fn columns_of_terminal() -> usize {
    let columns = tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if columns < COLUMNS_MIN { WIDTH } else { columns.min(WIDTH) }
}

/// A closed stderr is no reason to stop measuring.
fn write_stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The last second of a load without a trial: `steady 3s of 10s: 4,998/s, p50 0.412 p99 1.23 ms, 3 failed, 25 open, 12
/// waiting`.
pub fn load_line(second: &Second, elapsed_s: f64, planned: Option<Span>) -> String {
    let rate = per_second(second.achieved_per_s);
    let of = match planned {
        // At the end, the load still waits for due and in-flight requests.
        Some(span) if elapsed_s > span.as_s() + 0.5 => format!(" of {span} (draining)"),
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
        text.push_str(&format!(", {} waiting", grouped(waiting)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Quantiles;

    #[test]
    fn the_live_line_summarizes_the_last_second() {
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
        let expect = "steady 3s of 10s: 4,998/s, p50 0.412 p99 1.23 ms, 3 failed, 25 open, 12 waiting";
        assert_eq!(load_line(&second, 3.01, Some(Span::seconds(10))), expect);
        assert!(load_line(&second, 11.2, Some(Span::seconds(10))).starts_with("steady 11s of 10s (draining): "));
        assert!(load_line(&second, 11.2, None).starts_with("steady 11s: "));
    }
}
