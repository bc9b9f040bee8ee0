//! Processes from `/proc`: finds descendants, and signals and kills whole trees.

use crate::clock::Clock;
use crate::kernel::machine;
use crate::kernel::process::{Stat, strings, ticks_per_s};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use std::collections::HashSet;
use std::fs;
use std::time::Duration;

/// The interval between checks of a tree that is being killed.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// A process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Pid in this namespace.
    pub pid: u32,
    /// Pid of the parent.
    pub parent: u32,
    /// ID of the session.
    pub session: u32,
    /// The kernel's name for it, at most 15 bytes.
    pub name: String,
    /// Whether it is alive; a zombie is not, unless only its first thread ended.
    pub lives: bool,
    /// Whether it has begun to end; the kernel may take a second to free its memory.
    pub is_ending: bool,
    /// Clock ticks since boot; with the pid, uniquely identifies a process.
    pub started_ticks: u64,
}

impl Process {
    /// Reads a process; `None` if it is gone.
    pub fn read(pid: u32) -> Option<Self> {
        let stat = Stat::of(pid)?;
        Some(Self {
            pid,
            parent: stat.parent,
            session: stat.session,
            lives: stat.lives(),
            is_ending: stat.is_ending,
            name: stat.comm,
            started_ticks: stat.start_ticks,
        })
    }

    /// The current state of the same process; `None` if it is gone or its pid was reused.
    pub(super) fn now(&self) -> Option<Self> {
        Self::read(self.pid).filter(|now| now.started_ticks == self.started_ticks)
    }

    /// Whether it is alive and has not begun to end.
    pub(super) fn is_there(&self) -> bool {
        self.now().is_some_and(|now| now.lives && !now.is_ending)
    }

    /// Its start relative to the clock's origin, with the resolution of a tick; `None` if unknown.
    pub(super) fn started_at(&self, clock: Clock) -> Option<Duration> {
        let started = Duration::from_secs_f64(self.started_ticks as f64 / ticks_per_s() as f64);
        clock.now().checked_sub(machine::uptime()?.saturating_sub(started))
    }

    /// Its command line, at most 120 characters, or its name in brackets.
    pub fn command(&self) -> String {
        let line = strings(&fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default()).join(" ");
        match line.trim() {
            "" => format!("[{}]", self.name),
            line if line.chars().count() > 120 => line.chars().take(119).chain(['…']).collect(),
            line => line.to_owned(),
        }
    }

    /// Signals exactly this process; does nothing if its pid was reused.
    pub fn signal(&self, signal: Signal) {
        let Some(pid) = pid_of(self.pid) else { return };
        // The descriptor pins the process, so the start time can identify it.
        let Ok(pinned) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if self.now().is_some() {
            // Fails only if the process has exited.
            let _ = pidfd_send_signal(pinned, signal);
        }
    }
}

/// Converts a pid for system calls.
pub(super) fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// All current processes.
pub fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::read).collect()
}

/// The descendants of `roots` in `processes`, without the roots.
fn below(processes: &[Process], roots: &[u32]) -> Vec<Process> {
    let mut known: HashSet<u32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for process in processes {
            if known.contains(&process.parent) && known.insert(process.pid) {
                found.push(process.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The live descendants of a process.
pub fn descendants(root: u32) -> Vec<Process> {
    below(&all(), &[root]).into_iter().filter(|process| process.lives).collect()
}

/// The live processes among these.
pub fn living(pids: Vec<u32>) -> Vec<Process> {
    pids.into_iter().filter_map(Process::read).filter(|process| process.lives).collect()
}

/// The live processes selected by `is_root`, with their descendants.
pub(super) fn trees(is_root: impl Fn(&Process) -> bool) -> Vec<Process> {
    let processes = all();
    let roots: Vec<&Process> = processes.iter().filter(|process| is_root(process)).collect();
    let pids: Vec<u32> = roots.iter().map(|root| root.pid).collect();
    let under = below(&processes, &pids);
    roots.into_iter().cloned().chain(under).filter(|process| process.lives).collect()
}

/// Kills everything that `find` returns until it is empty, for at most `within`. Returns the number left.
///
/// Stops a growing tree first, so that it cannot fork faster than it is killed.
pub(super) fn kill_all(mut find: impl FnMut() -> Vec<Process>, clock: Clock, within: Duration) -> usize {
    let until = clock.now() + within;
    let mut stopped: HashSet<(u32, u64)> = HashSet::new();
    // One empty scan is not sufficient: a scan of `/proc` misses a child whose parent ends during the scan.
    let mut empty_looks = 0;
    loop {
        let found = find();
        if found.is_empty() {
            empty_looks += 1;
            if empty_looks == 2 {
                return 0;
            }
            continue;
        }
        empty_looks = 0;
        let mut grown = false;
        for process in &found {
            if stopped.insert((process.pid, process.started_ticks)) {
                grown = true;
                process.signal(Signal::STOP);
            }
        }
        if !grown || clock.now() >= until {
            found.iter().for_each(|process| process.signal(Signal::KILL));
            if clock.now() >= until {
                return find().len();
            }
            clock.sleep(LOOK_AGAIN_AFTER);
        }
    }
}

/// Reaps a child that is dead or dying.
pub(super) fn reap(pid: u32) {
    if let Some(pid) = pid_of(pid) {
        // Not a child, or not dead yet: nothing to reap.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_tree_is_found_in_any_order() {
        let process = |pid, parent| Process { pid, parent, lives: true, ..Process::read(std::process::id()).unwrap() };
        let processes = [process(5, 4), process(4, 3), process(3, 1), process(9, 8), process(8, 1)];
        let mut pids: Vec<u32> = below(&processes, &[3]).iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [4, 5]);
    }
}
