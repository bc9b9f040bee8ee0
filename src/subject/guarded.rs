//! Loadline's end of a guardian: starts it, hears it, and cleans up after it when it was killed.

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

/// A start needs two execs; a machine that is short of memory can take seconds for them.
const START_WITHIN: Duration = Duration::from_secs(30);
/// The guardian itself gives up killing after 10 s and then removes a cgroup; after this it is killed.
const GUARDIAN_EXIT_WITHIN: Duration = Duration::from_secs(20);
/// The time for a guardian that removes a container before and after, each within 10 s.
const REMOVAL_WITHIN: Duration = Duration::from_secs(20);
/// How long strays of a killed guardian may take to die.
const STRAYS_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks at a guardian that is about to exit.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// Starts guardians: which program to run as one, and whose time counts. Its `start`, for a subject, is in `running`,
/// `start_driver` in `driver`, and `build` in `build_step`.
#[derive(Debug, Clone)]
pub struct Spawner {
    program: PathBuf,
    /// The clock of everything that is started.
    pub clock: Clock,
    /// The CPUs Loadline was given, before it pinned itself to some of them.
    pub cpus: Vec<u32>,
}

impl Spawner {
    /// Guardians are this very program.
    pub fn new(clock: Clock) -> Self {
        Self::with_program("/proc/self/exe", clock)
    }

    /// Guardians are this program: tests are not Loadline themselves.
    pub fn with_program(program: impl Into<PathBuf>, clock: Clock) -> Self {
        // Orphans of a guardian that was killed come to us, not to init. A kernel that refuses (before 3.4) cannot run
        // Rust programs either.
        let _ = set_child_subreaper(Some(getpid()));
        Self { program: program.into(), clock, cpus: super::cpus::available() }
    }

    /// Starts a guardian and the ordered command under it, which reads `stdin` where the order says so.
    pub(super) fn guard(&self, order: &Order, stdin: Option<PipeReader>) -> Result<(Guarded, PipeReader)> {
        let failed = |cause: std::io::Error| Error::machine(format!("cannot start a guardian: {}", plain(&cause)));
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
        // A guardian that is dead already does not answer: the wait below says so.
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
        // The guardian prints nothing: its standard output may carry what the command is to read.
        let output = stdin.map_or_else(|| errors.try_clone(), |stdin| Ok(OwnedFd::from(stdin)))?;
        let mut command = std::process::Command::new(&self.program);
        // The guardian does not have them either: the subject can read the environment of the processes above it.
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

/// A command under its guardian. Dropping it ends both.
#[derive(Debug)]
pub(super) struct Guarded {
    pub guardian_pid: u32,
    pub command_pid: u32,
    control: UnixStream,
    known: Arc<CommandStatus>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the command, as far as it is known.
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
    /// We ended the control stream.
    asked: bool,
    /// The guardian is gone and its strays are ended.
    over: bool,
    /// The guardian went without being asked.
    lost: bool,
}

impl CommandStatus {
    fn lock(&self) -> MutexGuard<'_, CommandState> {
        // The state is plain values: a thread that panicked left nothing half done.
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
            (None, None) if state.over => Err(Error::machine("the guardian of the subject died while it started")),
            (None, None) => Err(Error::machine(format!(
                "the subject's command was not running {} s after its guardian was started",
                START_WITHIN.as_secs()
            ))),
        }
    }

    /// How the command ended, when it did.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.known.lock().exit
    }

    /// Whether the guardian was killed or crashed. Its descendants are then dead too.
    pub(super) fn lost(&self) -> bool {
        self.known.lock().lost
    }

    /// Waits until the command's end is known or the time is over.
    pub(super) fn wait_exit(&self, within: Duration) {
        let waiting = |state: &mut CommandState| state.exit.is_none() && !state.over;
        drop(self.known.changed.wait_timeout_while(self.known.lock(), within, waiting));
    }

    /// The living descendants of the guardian: the command and all it started.
    pub(super) fn processes(&self) -> Vec<Process> {
        processes::descendants(self.guardian_pid)
    }

    /// Has everything killed, and waits until nothing is left. Returns how many could not be killed.
    pub(super) fn finish(&mut self) -> usize {
        self.known.change(|state| state.asked = true);
        // Fails only when the guardian is gone, which is what this asks for.
        let _ = self.control.shutdown(Shutdown::Write);
        if let Some(thread) = self.thread.take() {
            // Each wait in the thread has its bound. If it panicked, the guardian still acts on the closed stream.
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

/// The thread that hears the guardian and outlives it.
struct Watcher {
    child: Child,
    known: Arc<CommandStatus>,
    /// The removal of the subject's container, in the place of the guardian.
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

    /// Kills what a guardian that was itself killed left to us. After an orderly end there is nothing.
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

/// Whether a process is of the subject of this guardian: it is the command, or in its session, or inherited its mark.
fn belongs_to(process: &Process, guardian: u32, command: Option<u32>) -> bool {
    let is_marked = || {
        let environment = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        strings(&environment).contains(&format!("{GUARDIAN_VARIABLE}={guardian}"))
    };
    command.is_some_and(|command| process.pid == command || process.session == command) || is_marked()
}
