//! `loadline __guardian`: a small process that ends the subject if Loadline dies, and dies with the subject.
//!
//! The guardian is the subject's parent and subreaper, so nothing the subject starts can leave its process tree. When
//! Loadline closes the control stream or dies, the guardian removes the container or step, kills the tree, removes the
//! cgroup, and exits. If the guardian itself is killed, the command dies with it (launcher) and Loadline inherits the
//! rest.

use super::processes::{Process, descendants, kill_all};
use super::protocol::{Exit, LAUNCHER_WORD, Order, Refusal, Report, StartStep, line};
use super::{made_cgroup, protocol};
use crate::clock::Clock;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, setsid, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A process in uninterruptible sleep (full disk queue, NFS) can take seconds to die.
const KILL_WITHIN: Duration = Duration::from_secs(10);
/// The process name; `pkill -9 loadline` must not match it, so that it can clean up.
pub(super) const NAME: &str = "ll-guardian";

/// Runs the guardian or the launcher if requested by the first argument; otherwise returns `None`.
///
/// `main` must call it first, because both must stay small and single-threaded.
pub fn main(first_argument: Option<&str>) -> Option<i32> {
    match first_argument? {
        protocol::GUARDIAN_WORD => Some(guard().map_or(70, |()| 0)),
        protocol::LAUNCHER_WORD => Some(super::launcher::main()),
        _ => None,
    }
}

fn guard() -> io::Result<()> {
    let clock = Clock::start();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // `setsid` fails only for a session leader.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    rustix::thread::set_name(c"ll-guardian")?;
    let deaths = watch_signals()?;
    let Ok(order) = Order::read(&control) else { return Ok(()) };
    let mut guardian = Guardian { control, deaths, launcher: None, command: None, exited: false };
    let outcome = guardian.launch(&order).and_then(|()| guardian.watch());
    guardian.reap();
    let was_at_work = !guardian.exited;
    let removed = guardian.remove(&order, clock);
    let mut left = kill_all(|| guardian.descendants(), clock, KILL_WITHIN);
    // A client that was still running may have created the container since.
    let removed = if was_at_work { guardian.remove(&order, clock) } else { removed };
    left += usize::from(removed.is_err());
    if left > 0 {
        guardian.report(&Report::Left(left));
    }
    order.cgroups.iter().for_each(|cgroup| made_cgroup::remove(cgroup, clock));
    outcome
}

/// A stream that receives a byte for every ended child. Ignores termination signals: whoever sends SIGTERM to all
/// processes (container end, batch system) wants Loadline to end the subject cleanly.
fn watch_signals() -> io::Result<UnixStream> {
    let (deaths, write) = UnixStream::pair()?;
    deaths.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, write)?;
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(deaths)
}

struct Guardian {
    control: UnixStream,
    deaths: UnixStream,
    /// Open until the launcher becomes the command or fails.
    launcher: Option<(UnixStream, Vec<u8>)>,
    command: Option<Pid>,
    exited: bool,
}

impl Guardian {
    /// Removes the container or step, whose processes need not descend from the guardian.
    fn remove(&mut self, order: &Order, clock: Clock) -> Result<(), String> {
        let removed = order.removal.as_ref().map_or(Ok(()), |removal| removal.run(clock));
        self.reap();
        removed
    }

    fn report(&mut self, report: &Report) {
        // If Loadline is gone, the control stream ends too.
        let _ = self.control.write_all(&line(report));
    }

    #[expect(clippy::disallowed_methods, reason = "this is the module that starts processes")]
    fn launch(&mut self, order: &Order) -> io::Result<()> {
        let (mut channel, theirs) = UnixStream::pair()?;
        // Dropping the Command closes this process's copy of the channel's other end.
        let child = std::process::Command::new("/proc/self/exe")
            .arg0("ll-launcher")
            .arg(LAUNCHER_WORD)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn();
        match child {
            Ok(child) => self.command = super::processes::pid_of(child.id()),
            Err(cause) => {
                self.report(&Report::Refused(Refusal::new(StartStep::Launcher, &cause)));
                return Ok(());
            }
        }
        // If the launcher died, SIGCHLD reports it.
        let _ = channel.write_all(&line(order));
        self.launcher = Some((channel, Vec::new()));
        Ok(())
    }

    /// Runs until the control stream ends.
    fn watch(&mut self) -> io::Result<()> {
        loop {
            let ready = self.wait_for_something()?;
            if ready[2] {
                self.hear_launcher();
            }
            if ready[1] {
                // Only the wake-up matters, not the bytes.
                let _ = self.deaths.read(&mut [0; 64]);
                self.reap();
            }
            if ready[0] && matches!(self.control.read(&mut [0; 64]), Ok(0) | Err(_)) {
                return Ok(());
            }
        }
    }

    /// Whether control, deaths, and launcher are readable.
    fn wait_for_something(&self) -> io::Result<[bool; 3]> {
        let mut polled = vec![PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.deaths, PollFlags::IN)];
        polled.extend(self.launcher.iter().map(|(channel, _)| PollFd::new(channel, PollFlags::IN)));
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
        let mut ready = [false; 3];
        for (ready, polled) in ready.iter_mut().zip(&polled) {
            *ready = !polled.revents().is_empty();
        }
        Ok(ready)
    }

    fn hear_launcher(&mut self) {
        let Some((channel, heard)) = &mut self.launcher else { return };
        let mut bytes = [0; 1024];
        match channel.read(&mut bytes) {
            Ok(n) if n > 0 => heard.extend_from_slice(&bytes[..n]),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            _ => self.launched(),
        }
    }

    /// Handles the end of the launcher's stream: the launcher became the command, or sent an error.
    fn launched(&mut self) {
        let Some((_, heard)) = self.launcher.take() else { return };
        let Some(pid) = self.command else { return };
        match serde_json::from_slice::<Refusal>(&heard) {
            Ok(refusal) => self.report(&Report::Refused(refusal)),
            Err(_) => self.report(&Report::Started(pid.as_raw_nonzero().get().unsigned_abs())),
        }
    }

    /// Live descendants to kill, after reaping dead ones.
    fn descendants(&mut self) -> Vec<Process> {
        self.reap();
        descendants(std::process::id())
    }

    /// Reaps every dead child, including orphans, and reports the command's exit.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let exit = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Exit::Code(code),
                (None, Some(signal)) => Exit::Signal(signal),
                (None, None) => continue,
            };
            if Some(pid) == self.command {
                self.exited = true;
                // Reads the launcher's message first; otherwise, a failed start would look like an exit.
                while self.launcher.is_some() {
                    self.hear_launcher();
                }
                self.report(&Report::Exited(exit));
            }
        }
    }
}
