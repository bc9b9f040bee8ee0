//! A program that drives the load, under the same guard as the subject: started, heard and ended, whatever it does.

use super::guarded::{Guarded, Spawner};
use super::heard::{Heard, Keeps};
use super::log_file::LogFile;
use super::output::readable;
use super::protocol::{Exit, Order};
use crate::error::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The summary of a load tool takes a few KiB; its lines before that, such as a line for each failed request,
/// has no bound, and is kept whole in the log only.
const TAIL_BYTES: usize = 1 << 20;

/// The command line of a driver, and where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverLaunch {
    /// A line for `sh -c`.
    pub line: String,
    /// Working directory; `None` is Loadline's own.
    pub dir: Option<PathBuf>,
    /// CPUs it may run on.
    pub cpus: Vec<u32>,
    /// The file for all that it prints, up to 64 MiB.
    pub log: Option<PathBuf>,
}

/// A driver that was started. Dropping it kills it and all it started.
#[derive(Debug)]
pub struct DriverRunning {
    guarded: Guarded,
    heard: Arc<Heard<Tail>>,
}

/// How a driver ended.
#[derive(Debug)]
pub struct DriverEnd {
    /// `None` where the driver was killed.
    pub exit: Option<Exit>,
    /// The end of what it printed, both streams: whole lines but for the last, at most 1 MiB.
    pub text: String,
    /// Processes of it that could not be killed: none, short of a hanging device.
    pub left: usize,
    /// Why the log is not complete, unless its bound is the reason.
    pub log_trouble: Option<Error>,
}

/// The end of what it printed.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Spawner {
    /// Starts a driver.
    ///
    /// # Errors
    /// When its log cannot be created, or no shell can be started in its folder on its CPUs.
    pub fn start_driver(&self, launch: &DriverLaunch) -> Result<DriverRunning> {
        // If the log cannot be created, the error comes before anything is started.
        let log = launch.log.as_deref().map(LogFile::create).transpose()?;
        let cpus = Some(launch.cpus.clone());
        let order = Order { dir: launch.dir.clone(), cpus, ..Order::of_shell(&launch.line) };
        let (guarded, pipe) = self.guard(&order, None)?;
        let heard = Heard::begin(pipe, Tail::default(), log, self.clock)?;
        Ok(DriverRunning { guarded, heard })
    }
}

impl DriverRunning {
    /// How the driver ended, when it did. Its background processes may run still.
    pub fn exit(&self) -> Option<Exit> {
        self.guarded.exit()
    }

    /// Whether the guardian was killed; the driver is then dead too.
    pub fn lost(&self) -> bool {
        self.guarded.lost()
    }

    /// The guardian, which collects all processes of the driver: the CPU time of its children is that of the driver.
    pub fn guardian_pid(&self) -> u32 {
        self.guarded.guardian_pid
    }

    /// Kills what is left of the driver and has its last words read.
    pub fn end(mut self) -> DriverEnd {
        let exit = self.guarded.exit();
        let left = self.guarded.finish();
        // A reader that does not end is kept by a process that could not be killed: the tail so far must do.
        self.heard.drain();
        let mut heard = self.heard.lock();
        let text = String::from_utf8_lossy(&heard.kept.0).into_owned();
        DriverEnd { exit, text, left, log_trouble: heard.log_trouble.take() }
    }
}

impl DriverEnd {
    /// The last lines that hold anything, at most `count`, oldest first, fit for a terminal.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let lines = self.text.lines().rev().filter(|line| !line.trim().is_empty());
        let mut lines: Vec<String> = lines.take(count).map(|line| readable(line.as_bytes())).collect();
        lines.reverse();
        lines
    }
}

impl Keeps for Tail {
    /// Appends; beyond twice the bound, the oldest lines go.
    fn take(&mut self, bytes: &[u8], _at: Duration) {
        let Self(tail) = self;
        tail.extend_from_slice(bytes);
        if tail.len() > 2 * TAIL_BYTES {
            let surplus = tail.len() - TAIL_BYTES;
            let line_end =
                tail[surplus..].iter().position(|&byte| byte == b'\n').map_or(surplus, |at| surplus + at + 1);
            tail.drain(..line_end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_whole() {
        let mut kept = Tail::default();
        for n in 0..400_000 {
            kept.take(format!("line {n}\n").as_bytes(), Duration::ZERO);
        }
        let Tail(tail) = kept;
        assert!(tail.len() <= 2 * TAIL_BYTES && tail.len() > TAIL_BYTES / 2, "{}", tail.len());
        assert!(tail.starts_with(b"line ") && tail.ends_with(b"line 399999\n"));
    }

    #[test]
    fn last_lines_are_fit_for_a_terminal() {
        let end = DriverEnd { exit: None, text: "a\nb\u{1b}[2J\r\n\n \nc".to_owned(), left: 0, log_trouble: None };
        assert_eq!(end.last_lines(2), ["b\u{fffd}[2J", "c"]);
    }
}
