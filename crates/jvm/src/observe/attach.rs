//! HotSpot's attach protocol (JDK 11–27, `attachListener_posix.cpp`, wire format 1), implemented without a JDK.
//!
//! The JVM listens on `/tmp/.java_pidNSPID` in its mount namespace. It opens that socket when it receives SIGQUIT and
//! finds a file `/tmp/.attach_pidNSPID` (or one in its working directory). A request is five zero-terminated strings;
//! the reply is a code, a newline, and the text, up to the end of the stream:
//!
//! ```text
//! > 1\0jcmd\0VM.version\0\0\0
//! < 0\nOpenJDK 64-Bit Server VM version 17.0.15+6-Debian-1deb12u1\nJDK 17.0.15\n
//! ```
//!
//! JDK 25 sends each word of a reply as the command prints it (JDK-8319055, JDK-8354460), partly from inside a
//! safepoint. For 25 KB of `VM.metaspace vslist`, that is 2,191 writes instead of 1 and 48 ms of safepoint, plus the
//! delays of the reader. If the JVM can send the whole reply afterward, it is asked to do so: `jcmd streaming=0`.
//!
//! The handshake takes 2–8 ms and 0.12–0.20 MB of RSS in the JVM for its listener thread, once.

use super::attach_guard::may_signal;
use super::attach_reply::{self, Deadline};
use super::attach_trigger::{Acting, Trigger, signal};
use super::inside::Inside;
use super::procfs::Process;
use super::{Read, Reading, Unavailable, stacks};
use crate::kernel::process::{Status, age};
use loadline_base::clock::Clock;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::AtFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub(super) const SOURCE: &str = "attach";
/// The thread that a JVM starts to listen for requests.
const LISTENER: &str = "Attach Listener";
/// Time between SIGQUIT and the socket: 2–8 ms, or longer if a safepoint intervenes.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// Even on a slow machine, a JVM installs its signal handlers within this time of its start.
pub const STARTING_WITHIN: Duration = Duration::from_secs(5);
/// The slowest command is a full collection of a large heap (`GC.run`).
pub const REPLY_WITHIN: Duration = Duration::from_secs(60);
/// Other tools' handshakes take less than this; an older trigger file is a leftover.
const OTHERS_WITHIN: Duration = Duration::from_secs(1);
/// The interval between checks for the socket.
pub(super) const POLL: Duration = Duration::from_millis(1);

/// A JVM that accepts commands. Each command uses its own connection.
#[derive(Debug)]
pub struct Attach {
    pid: u32,
    /// The JVM's `/tmp`.
    tmp: OwnedFd,
    socket_name: String,
    /// Whether the JVM writes to the socket while a command runs, unless the request disables that.
    streams: bool,
    acting: Acting,
    clock: Clock,
}

/// Whether a JVM can answer commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachable {
    /// The JVM is already listening.
    Listens,
    /// The JVM would listen once asked to.
    WouldListen,
}

impl Attach {
    /// Whether the JVM can be attached to, as far as Loadline can tell without touching it. The error is the reason.
    pub fn possible(process: &Process, clock: &Clock) -> Result<Attachable, Unavailable> {
        let status = process.status(clock)?.value;
        // The socket file may be a leftover from an earlier JVM with this pid.
        let listens = stacks::names(process)?.iter().any(|(_, name)| name == LISTENER);
        match listens {
            true => Ok(Attachable::Listens),
            false => may_signal(process, &status, clock).map(|()| Attachable::WouldListen),
        }
    }

    /// Makes the JVM listen. Sends SIGQUIT only if it is known to be harmless: see `attach_guard`.
    pub fn connect(process: &Process, clock: &Clock) -> Read<Self> {
        Reading::take(clock, || {
            process.must_live(SOURCE)?;
            let status = process.status(clock)?.value;
            let tmp = Inside::folder(process, "/tmp").map(Inside::into_fd);
            let mut attach = Self {
                pid: process.pid(),
                tmp: tmp.map_err(|e| denied(&status, &e))?,
                socket_name: format!(".java_pid{}", status.ns_pid),
                streams: false,
                acting: Acting::towards(process, &status),
                clock: *clock,
            };
            match attach.open(HANDSHAKE_WITHIN) {
                Ok(_) => {}
                // No socket, or a leftover from an earlier JVM with this pid.
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                    attach.handshake(process)?;
                }
                Err(e) => return Err(denied(&status, &e)),
            }
            attach.streams = attach.may_stream()?;
            Ok(attach)
        })
    }

    /// Sends a diagnostic command, as `jcmd PID COMMAND` does. If the JVM refuses, the error contains its message.
    pub fn jcmd(&self, command: &str) -> Read<String> {
        self.jcmd_within(command, REPLY_WITHIN)
    }

    /// Like [`Attach::jcmd`], with its own time limit.
    pub fn jcmd_within(&self, command: &str, within: Duration) -> Read<String> {
        let reading = self.request("jcmd", [command, "", ""], within)?;
        match &reading.value {
            (0, _) => Ok(reading.map(|(_, text)| text)),
            (code, text) => Err(Unavailable::new(SOURCE, format!("`{command}` failed ({code}): {}", text.trim()))),
        }
    }

    /// Loads a Java agent, as `VirtualMachine.loadAgent` does; returns once its `agentmain` has run.
    pub(super) fn load_agent(&self, jar: &str, options: &str, within: Duration) -> Result<(), Unavailable> {
        let arguments = ["instrument", "false", &format!("{jar}={options}")];
        let (code, text) = self.request("load", arguments, within)?.value;
        let why = match (code, loaded(&text)) {
            (0, Ok(())) => return Ok(()),
            (0, Err(why)) => why,
            _ => text.trim().to_owned(),
        };
        Err(Unavailable::new(SOURCE, format!("the JVM did not load the agent: {why}")))
    }

    /// Loads a native agent, as `VirtualMachine.loadAgentPath` does; returns once its `Agent_OnAttach` has run. The
    /// path is as seen in the JVM's mount namespace. A library stays loaded until the JVM exits. Fails if the JVM does
    /// not allow agents (`-XX:-EnableDynamicAgentLoading`), cannot load the library, or the agent rejects the options.
    /// The error contains the JVM's message, or else the agent's code.
    pub fn load_library(&self, path: &str, options: &str, within: Duration) -> Result<(), Unavailable> {
        let (code, text) = self.request("load", [path, "true", options], within)?.value;
        let text = text.trim();
        let why = match text.strip_prefix("return code:").map(str::trim) {
            Some("0") if code == 0 => return Ok(()),
            Some(agents) => format!("the agent returned code {agents}"),
            None if text.is_empty() => format!("code {code}"),
            None => text.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Err(Unavailable::new(SOURCE, format!("the JVM did not load {path}: {why}")))
    }

    /// Acts in the JVM's `/tmp`, as the JVM's user if only that user is permitted. Fails if the action does.
    pub fn in_tmp<T: Send>(&self, act: impl FnOnce(&OwnedFd) -> io::Result<T> + Send) -> io::Result<T> {
        self.acting.act(|| act(&self.tmp))
    }

    /// Whether replies may be sent while commands run: JDK 25 lists the options of a request, and older versions reject
    /// the query.
    fn may_stream(&self) -> Result<bool, Unavailable> {
        let (code, options) = self.request("getversion", ["options", "", ""], REPLY_WITHIN)?.value;
        Ok(code == 0 && options.split([' ', ',']).any(|option| option.trim() == "streaming"))
    }

    /// Returns the reply's code and text.
    fn request(&self, operation: &str, arguments: [&str; 3], within: Duration) -> Read<(i32, String)> {
        let argument = arguments[0];
        if arguments.iter().any(|argument| argument.contains('\0') || argument.len() >= 1024) {
            return Err(Unavailable::new(SOURCE, "a command must be shorter than 1024 bytes, without NUL bytes"));
        }
        // Limits connecting and sending; the reader limits the reply.
        let brief = within.min(HANDSHAKE_WITHIN);
        let reading = Reading::take(&self.clock, || {
            let deadline = Deadline { end: self.clock.now() + within, within, clock: self.clock };
            attach_reply::drain(&mut self.send(operation, arguments, brief)?, deadline)
        });
        let reading =
            reading.map_err(|e: io::Error| Unavailable::new(SOURCE, format!("`{argument}`: {}", plain(&e, brief))))?;
        let text = String::from_utf8_lossy(&reading.value).into_owned();
        let (code, text) = parse_reply(&text)
            .ok_or_else(|| Unavailable::new(SOURCE, format!("the JVM did not respond to `{argument}`")))?;
        Ok(reading.map(|_| (code, text.to_owned())))
    }

    /// Sends a request; the caller must read the reply immediately.
    fn send(&self, operation: &str, arguments: [&str; 3], within: Duration) -> io::Result<UnixStream> {
        let mut stream = self.open(within)?;
        stream.set_write_timeout(Some(within))?;
        let whole = if self.streams { " streaming=0" } else { "" };
        stream.write_all(format!("1\0{operation}{whole}\0{}\0", arguments.join("\0")).as_bytes())?;
        Ok(stream)
    }

    /// Connects, waiting no longer than `within` even if the JVM's queue is full.
    ///
    /// Anyone can put a socket into `/tmp`, and containers that share it also share names. So only a socket on which
    /// this very process listens is trusted.
    fn open(&self, within: Duration) -> io::Result<UnixStream> {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(within))?;
        // Uses the descriptor, because the path through `/proc/PID/root` could lead to a later process with that pid.
        let path = format!("/proc/self/fd/{}/{}", self.tmp.as_raw_fd(), self.socket_name);
        let address = SocketAddrUnix::new(path)?;
        self.acting.act(|| Ok(rustix::net::connect(&socket, &address)?))?;
        let listener = sockopt::socket_peercred(&socket)?.pid.as_raw_pid();
        if listener != self.pid as i32 {
            let why = format!("the socket /tmp/{} belongs to process {listener}", self.socket_name);
            return Err(io::Error::other(why));
        }
        Ok(UnixStream::from(socket))
    }

    /// Removes the socket's file, if there is one.
    fn remove_socket(&self) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.tmp, self.socket_name.as_str(), AtFlags::empty()) {
            Err(e) if e != rustix::io::Errno::NOENT => Err(e.into()),
            _ => Ok(()),
        }
    }

    /// Asks the JVM to open its socket.
    fn handshake(&self, process: &Process) -> Result<(), Unavailable> {
        let status = self.wait_until_harmless(process)?;
        let Some(trigger) = self.trigger(process, &status)? else { return Ok(()) };
        // While its socket file exists, the JVM believes that it is listening, and prints a thread dump on SIGQUIT.
        self.remove_socket().and_then(|()| signal(process)).map_err(|e| denied(&status, &e))?;
        let end = self.clock.now() + HANDSHAKE_WITHIN;
        while self.clock.now() < end {
            match self.open(HANDSHAKE_WITHIN) {
                Ok(_) => return Ok(()),
                Err(_) if !process.is_alive() => return Err(Unavailable::new(SOURCE, "the JVM has exited")),
                Err(_) => self.clock.sleep(POLL),
            }
        }
        trigger.linger(self.tmp.try_clone().ok(), self.socket_name.clone(), self.clock);
        let why = format!("the JVM did not open its attach socket within {} s", HANDSHAKE_WITHIN.as_secs());
        Err(Unavailable::new(SOURCE, why))
    }

    /// Creates the trigger file; `None` if another tool has just attached and the JVM is already listening.
    fn trigger(&self, process: &Process, status: &Status) -> Result<Option<Trigger>, Unavailable> {
        let end = self.clock.now() + OTHERS_WITHIN;
        loop {
            let replace = self.clock.now() >= end;
            let trigger = self.acting.act(|| Trigger::create(process, &self.tmp, status, replace));
            // Check again as late as possible: a second SIGQUIT for one listener prints a thread dump.
            if self.open(HANDSHAKE_WITHIN).is_ok() {
                return Ok(None);
            }
            match trigger {
                Ok(trigger) => return Ok(Some(trigger)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && self.clock.now() < end => self.clock.sleep(POLL),
                Err(e) => return Err(denied(status, &e)),
            }
        }
    }

    /// While the JVM is still starting, waits until SIGQUIT is safe.
    fn wait_until_harmless(&self, process: &Process) -> Result<Status, Unavailable> {
        let end = self.clock.now() + STARTING_WITHIN;
        loop {
            let status = process.status(&self.clock)?.value;
            match may_signal(process, &status, &self.clock) {
                Ok(()) => return Ok(status),
                Err(why) if why.is_early && self.clock.now() < end && is_young(process) => self.clock.sleep(10 * POLL),
                Err(why) => return Err(why),
            }
        }
    }
}

/// Whether the process started so recently that it may still become ready.
fn is_young(process: &Process) -> bool {
    age(process.start_ticks()).is_none_or(|age| age <= 2 * STARTING_WITHIN)
}

/// `0\nTEXT` → code and text.
pub fn parse_reply(text: &str) -> Option<(i32, &str)> {
    let (code, rest) = text.split_once('\n').unwrap_or((text, ""));
    Some((code.trim().parse().ok()?, rest))
}

/// Interprets the reply to `load` (`attachListener.cpp`, `InvocationAdapter.c`): `return code: 0` means success.
fn loaded(text: &str) -> Result<(), String> {
    let code = text.trim().strip_prefix("return code:").and_then(|code| code.trim().parse::<i32>().ok());
    match code {
        Some(0) => Ok(()),
        Some(100) => Err("it cannot read the agent's jar".to_owned()),
        Some(101) => Err("the jar has no agent class".to_owned()),
        Some(102) => Err("the agent failed to start".to_owned()),
        Some(code) => Err(format!("code {code}")),
        None => Err(text.trim().to_owned()),
    }
}

fn denied(status: &Status, cause: &io::Error) -> Unavailable {
    let why = match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("no permission: the JVM belongs to user {}; run Loadline as that user or as root", status.euid)
        }
        _ => plain(cause, HANDSHAKE_WITHIN),
    };
    Unavailable::new(SOURCE, why)
}

fn plain(cause: &io::Error, within: Duration) -> String {
    match cause.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if cause.get_ref().is_none() => {
            format!("no response within {} s", within.as_secs())
        }
        _ => loadline_base::error::plain(cause),
    }
}

#[cfg(test)]
#[path = "attach_live.rs"]
mod live;
