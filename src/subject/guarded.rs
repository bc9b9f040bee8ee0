//! Loadline's side of a guardian: starts it, handles its reports, and cleans up if it was killed.

use super::guardian::NAME;
use super::keeper::Removal;
use super::processes::{self, Process, kill_all, reap};
use super::protocol::{Exit, GUARDIAN_VARIABLE, GUARDIAN_WORD, Order, Refusal, Report, line};
use super::secrets;
use crate::clock::Clock;
use crate::error::{Error, Result, plain};
use crate::kernel::process::strings;
use rustix::process::{getpid, set_child_subreaper};
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A start needs two execs, which take seconds if memory is short.
const START_WITHIN: Duration = Duration::from_secs(30);
/// The guardian stops killing after 10 s and then removes a cgroup; after this time it is killed itself.
const GUARDIAN_EXIT_WITHIN: Duration = Duration::from_secs(20);
/// For a guardian that removes a container before and after the kill, within 10 s each.
const REMOVAL_WITHIN: Duration = Duration::from_secs(20);
/// How long processes of a killed guardian may take to die.
const STRAYS_WITHIN: Duration = Duration::from_secs(10);
/// The interval between checks of a guardian that is about to exit.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// Starts guardians. `running` starts subjects, `driver` starts drivers, and `build_step` runs builds.
#[derive(Debug, Clone)]
pub struct Spawner {
    program: PathBuf,
    /// The clock for everything started.
    pub clock: Clock,
    /// Loadline's CPUs before it pinned itself.
    pub cpus: Vec<u32>,
}

impl Spawner {
    /// Uses this program as the guardian.
    pub fn new(clock: Clock) -> Self {
        Self::with_program("/proc/self/exe", clock)
    }

    /// Uses another program as the guardian, because a test binary is not Loadline.
    pub fn with_program(program: impl Into<PathBuf>, clock: Clock) -> Self {
        // Makes Loadline, not init, adopt the orphans of a killed guardian. A kernel that refuses (before 3.4) cannot
        // run Rust programs anyway.
        let _ = set_child_subreaper(Some(getpid()));
        Self { program: program.into(), clock, cpus: super::cpus::available() }
    }

    /// Starts a guardian and the ordered command, which reads `stdin` if the order requires it.
    pub(super) fn guard(&self, order: &Order, stdin: Option<PipeReader>) -> Result<(Guarded, PipeReader)> {
        let failed =
            |cause: std::io::Error| Error::machine(format!("cannot start a guardian process: {}", plain(&cause)));
        let (control, theirs) = UnixStream::pair().map_err(failed)?;
        let (output, write) = std::io::pipe().map_err(failed)?;
        let child = self.spawn(order, theirs, OwnedFd::from(write), stdin).map_err(failed)?;
        let guardian_pid = child.id();
        let known = Arc::new(CommandStatus::default());
        let hearing = control.try_clone().map_err(failed)?;
        let watcher = Watcher { child, known: Arc::clone(&known), removal: order.removal.clone(), clock: self.clock };
        let thread = std::thread::Builder::new().name("guardian".to_owned());
        let thread = thread.spawn(move || watcher.run(hearing)).map_err(failed)?;
        let mut guarded = Guarded { guardian_pid, control, known, thread: Some(thread), command_pid: 0 };
        // A guardian that is already dead does not respond, which the wait below detects.
        let _ = guarded.control.write_all(&line(order));
        guarded.command_pid = guarded.await_start(order)?;
        Ok((guarded, output))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the module that starts processes")]
    fn spawn(
        &self,
        order: &Order,
        control: UnixStream,
        errors: OwnedFd,
        stdin: Option<PipeReader>,
    ) -> std::io::Result<Child> {
        // The guardian prints nothing: its stdout may be the command's input.
        let output = stdin.map_or_else(|| errors.try_clone(), |stdin| Ok(OwnedFd::from(stdin)))?;
        let mut command = std::process::Command::new(&self.program);
        // Removes secrets from the guardian too, because a subject can read its ancestors' environment.
        let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for name in secrets::withheld(order, variables) {
            command.env_remove(name);
        }
        command
            .arg0(NAME)
            .arg(GUARDIAN_WORD)
            .stdin(Stdio::from(OwnedFd::from(control)))
            .stdout(output)
            .stderr(errors)
            .spawn()
    }
}

/// A command and its guardian. Dropping it ends both.
#[derive(Debug)]
pub(super) struct Guarded {
    pub guardian_pid: u32,
    pub command_pid: u32,
    control: UnixStream,
    known: Arc<CommandStatus>,
    thread: Option<JoinHandle<()>>,
}

/// The known state of the command.
#[derive(Debug, Default)]
struct CommandStatus {
    state: Mutex<CommandState>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone)]
struct CommandState {
    started: Option<u32>,
    refused: Option<Refusal>,
    exit: Option<Exit>,
    /// Descendants that could not be killed.
    left: usize,
    /// Loadline closed the control stream.
    asked: bool,
    /// The guardian and its remaining processes have ended.
    over: bool,
    /// The guardian ended without being asked to.
    lost: bool,
}

impl CommandStatus {
    fn lock(&self) -> MutexGuard<'_, CommandState> {
        // The state has only plain values, so it is valid even if a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut CommandState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

impl Guarded {
    fn await_start(&self, order: &Order) -> Result<u32> {
        let waiting = |state: &mut CommandState| state.started.is_none() && state.refused.is_none() && !state.over;
        let waited = self.known.changed.wait_timeout_while(self.known.lock(), START_WITHIN, waiting);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0.clone();
        match (state.started, state.refused) {
            (Some(pid), _) => Ok(pid),
            (None, Some(refusal)) => Err(super::refusal::explain(&refusal, order)),
            (None, None) if state.over => Err(Error::machine("the server's guardian process died while starting it")),
            (None, None) => Err(Error::machine(format!(
                "the server's command was not running {} s after its guardian was started",
                START_WITHIN.as_secs()
            ))),
        }
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        self.known.lock().exit
    }

    /// Whether the guardian was killed or crashed, which also kills its descendants.
    pub(super) fn lost(&self) -> bool {
        self.known.lock().lost
    }

    /// Waits until the command ends or the time is up.
    pub(super) fn wait_exit(&self, within: Duration) {
        let waiting = |state: &mut CommandState| state.exit.is_none() && !state.over;
        drop(self.known.changed.wait_timeout_while(self.known.lock(), within, waiting));
    }

    /// The guardian's live descendants: the command and all processes it started.
    pub(super) fn processes(&self) -> Vec<Process> {
        processes::descendants(self.guardian_pid)
    }

    /// Kills everything and waits for it. Returns the number of processes that could not be killed.
    pub(super) fn finish(&mut self) -> usize {
        self.known.change(|state| state.asked = true);
        // Fails only if the guardian is already gone.
        let _ = self.control.shutdown(Shutdown::Write);
        if let Some(thread) = self.thread.take() {
            // All waits in the thread are bounded. If it panicked, the guardian still reacts to the closed stream.
            let _ = thread.join();
        }
        self.known.lock().left
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The thread that reads the guardian's reports and outlives it.
struct Watcher {
    child: Child,
    known: Arc<CommandStatus>,
    /// Removes the subject's container if the guardian cannot.
    removal: Option<Removal>,
    clock: Clock,
}

impl Watcher {
    fn run(mut self, control: UnixStream) {
        for line in BufReader::new(control).split(b'\n').map_while(std::io::Result::ok) {
            let Ok(report) = serde_json::from_slice::<Report>(&line) else { continue };
            self.known.change(|state| match report {
                Report::Started(pid) => state.started = Some(pid),
                Report::Refused(refusal) => state.refused = Some(refusal),
                Report::Exited(exit) => state.exit = Some(exit),
                Report::Left(left) => state.left = left,
            });
        }
        self.await_guardian();
        let mut left = self.end_strays();
        let orderly = matches!(self.child.try_wait(), Ok(Some(status)) if status.success());
        if let Some(removal) = self.removal.as_ref().filter(|_| !orderly) {
            left += usize::from(removal.run(self.clock).is_err());
        }
        self.known.change(|state| {
            state.left = state.left.max(left);
            state.lost = !state.asked;
            state.over = true;
        });
    }

    fn await_guardian(&mut self) {
        let removal = self.removal.as_ref().map_or(Duration::ZERO, |_| REMOVAL_WITHIN);
        let is_gone = || !matches!(self.child.try_wait(), Ok(None));
        if !self.clock.wait_until(GUARDIAN_EXIT_WITHIN + removal, LOOK_AGAIN_AFTER, is_gone) {
            // Both calls fail only for a process that is gone.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Kills the processes inherited from a killed guardian. After a clean exit, there are none.
    fn end_strays(&self) -> usize {
        let us = std::process::id();
        let guardian = self.child.id();
        let command = self.known.lock().started;
        let is_stray = |process: &Process| process.parent == us && belongs_to(process, guardian, command);
        let left = kill_all(|| processes::trees(is_stray), self.clock, STRAYS_WITHIN);
        for process in processes::all().iter().filter(|process| is_stray(process)) {
            reap(process.pid);
        }
        left
    }
}

/// Whether a process belongs to this guardian's subject: it is the command, is in its session, or inherited its mark.
fn belongs_to(process: &Process, guardian: u32, command: Option<u32>) -> bool {
    let is_marked = || {
        let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        strings(&environment).contains(&format!("{GUARDIAN_VARIABLE}={guardian}"))
    };
    command.is_some_and(|command| process.pid == command || process.session == command) || is_marked()
}
