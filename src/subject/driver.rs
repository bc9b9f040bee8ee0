//! A load driver program, guarded like the subject: starts it, reads its output, and ends it.

use super::guarded::{Guarded, Spawner};
use super::heard::{Heard, Keeps};
use super::log_file::LogFile;
use super::output::readable;
use super::protocol::{Exit, Order};
use crate::error::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A load tool's summary takes a few KiB. Earlier output, such as a line per failed request, is unbounded; only the log
/// keeps all of it.
const TAIL_BYTES: usize = 1 << 20;

/// A driver's command line and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverLaunch {
    /// A command line for `sh -c`.
    pub line: String,
    /// Working directory; `None` means Loadline's.
    pub dir: Option<PathBuf>,
    /// CPUs that it may use.
    pub cpus: Vec<u32>,
    /// The file for all output, up to 64 MiB.
    pub log: Option<PathBuf>,
}

/// A started driver. Dropping it kills it and its descendants.
#[derive(Debug)]
pub struct DriverRunning {
    guarded: Guarded,
    heard: Arc<Heard<Tail>>,
}

/// How a driver ended.
#[derive(Debug)]
pub struct DriverEnd {
    /// `None` if the driver was killed.
    pub exit: Option<Exit>,
    /// The end of stdout and stderr: complete lines except the last, at most 1 MiB.
    pub text: String,
    /// Processes that could not be killed: 0 unless a device hangs.
    pub left: usize,
    /// Why the log is incomplete, apart from its size limit.
    pub log_trouble: Option<Error>,
}

#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Spawner {
    /// Starts a driver. Fails if its log cannot be created, or if no shell can be started in its directory on its CPUs.
    pub fn start_driver(&self, launch: &DriverLaunch) -> Result<DriverRunning> {
        // Fails before anything is started.
        let log = launch.log.as_deref().map(LogFile::create).transpose()?;
        let cpus = Some(launch.cpus.clone());
        let order = Order { dir: launch.dir.clone(), cpus, ..Order::of_shell(&launch.line) };
        let (guarded, pipe) = self.guard(&order, None)?;
        let heard = Heard::begin(pipe, Tail::default(), log, self.clock)?;
        Ok(DriverRunning { guarded, heard })
    }
}

impl DriverRunning {
    /// The driver's exit, if it has ended. Its background processes may still be running.
    pub fn exit(&self) -> Option<Exit> {
        self.guarded.exit()
    }

    /// Whether the guardian was killed, which also kills the driver.
    pub fn lost(&self) -> bool {
        self.guarded.lost()
    }

    /// The guardian, which reaps all of the driver's processes: its children's CPU time is the driver's.
    pub fn guardian_pid(&self) -> u32 {
        self.guarded.guardian_pid
    }

    /// Kills the remaining processes and reads the last output.
    pub fn end(mut self) -> DriverEnd {
        let exit = self.guarded.exit();
        let left = self.guarded.finish();
        // If the reader does not finish, a process could not be killed; use the output so far.
        self.heard.drain();
        let mut heard = self.heard.lock();
        let text = String::from_utf8_lossy(&heard.kept.0).into_owned();
        DriverEnd { exit, text, left, log_trouble: heard.log_trouble.take() }
    }
}

impl DriverEnd {
    /// The last `count` nonempty lines, oldest first, safe for a terminal.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let lines = self.text.lines().rev().filter(|line| !line.trim().is_empty());
        let mut lines: Vec<String> = lines.take(count).map(|line| readable(line.as_bytes())).collect();
        lines.reverse();
        lines
    }
}

impl Keeps for Tail {
    /// Appends; drops the oldest lines beyond twice the limit.
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
    fn the_last_lines_are_kept_completely() {
        let mut kept = Tail::default();
        for n in 0..400_000 {
            kept.take(format!("line {n}\n").as_bytes(), Duration::ZERO);
        }
        let Tail(tail) = kept;
        assert!(tail.len() <= 2 * TAIL_BYTES && tail.len() > TAIL_BYTES / 2, "{}", tail.len());
        assert!(tail.starts_with(b"line ") && tail.ends_with(b"line 399999\n"));
    }

    #[test]
    fn last_lines_are_safe_for_a_terminal() {
        let end = DriverEnd { exit: None, text: "a\nb\u{1b}[2J\r\n\n \nc".to_owned(), left: 0, log_trouble: None };
        assert_eq!(end.last_lines(2), ["b\u{fffd}[2J", "c"]);
    }
}
