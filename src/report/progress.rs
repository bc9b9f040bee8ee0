//! The live line on stderr while a trial runs, and the talk around it.

use crate::units::{Bytes, grouped};
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
            let clear = self.clear();
            write_stderr(&format!("{clear}{text}\n"));
        }
    }

    /// The state of what runs, in words; shown on a terminal only.
    pub fn live_text(&mut self, text: &str) {
        if !self.quiet && self.terminal {
            write_stderr(&format!("\r\x1b[K  {text}"));
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

    /// Said even when quiet: something the user must know.
    pub fn warn(&mut self, text: &str) {
        let clear = self.clear();
        write_stderr(&format!("{clear}{text}\n"));
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
