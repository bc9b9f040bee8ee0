//! HotSpot's attach protocol (JDK 11–27, `attachListener_posix.cpp`, wire format 1), spoken without a JDK.
//!
//! The JVM listens on `/tmp/.java_pidNSPID` in its mount namespace. It opens that socket when SIGQUIT finds a file
//! `/tmp/.attach_pidNSPID` (or one in its working folder). A request is five strings, each ended by a zero byte; the
//! answer is a code, a newline and the text, up to the end of the stream:
//!
//! ```text
//! > 1\0jcmd\0VM.version\0\0\0
//! < 0\nOpenJDK 64-Bit Server VM version 17.0.15+6-Debian-1deb12u1\nJDK 17.0.15\n
//! ```
//!
//! JDK 25 sends each word of an answer as the command prints it (JDK-8319055, JDK-8354460), some from inside a
//! safepoint. For 25 KB of `VM.metaspace vslist` that is 2,191 writes and 48 ms of safepoint instead of 1, plus the
//! time that the reader waits. A JVM that can send the whole answer afterwards is asked to: `jcmd streaming=0`.
//!
//! Handshake 2–8 ms once; +0.12–0.20 MB of RSS in the JVM once, for its listener thread.

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
/// The thread that a JVM starts to listen.
const LISTENER: &str = "Attach Listener";
/// From SIGQUIT to the socket: 2–8 ms; longer only when a safepoint is in the way.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// A JVM on a slow machine installs its signal handlers within this time of its start.
pub const STARTING_WITHIN: Duration = Duration::from_secs(5);
/// A full collection of a large heap (`GC.run`) is the slowest thing asked.
pub const REPLY_WITHIN: Duration = Duration::from_secs(60);
/// How long the handshake of another tool takes at most; an older trigger file was left behind.
const OTHERS_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks for the socket.
pub(super) const POLL: Duration = Duration::from_millis(1);

/// A JVM that answers commands. Each command is a connection of its own.
#[derive(Debug)]
pub struct Attach {
    pid: u32,
    /// The JVM's `/tmp`.
    tmp: OwnedFd,
    socket_name: String,
    /// Whether the JVM prints into the socket while a command runs, unless the request turns that off.
    streams: bool,
    acting: Acting,
    clock: Clock,
}

/// How far a JVM is from answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachable {
    /// The JVM was asked before, or listens from its start.
    Listens,
    /// The JVM would listen when it is asked to.
    WouldListen,
}

impl Attach {
    /// Whether the JVM could be attached to, as far as Loadline can find out without touching it.
    ///
    /// # Errors
    /// Why it could not.
    pub fn possible(process: &Process, clock: &Clock) -> Result<Attachable, Unavailable> {
        let status = process.status(clock)?.value;
        // A file of the socket's name may be of an earlier JVM with this pid.
        let listens = stacks::names(process)?.iter().any(|(_, name)| name == LISTENER);
        match listens {
            true => Ok(Attachable::Listens),
            false => may_signal(process, &status, clock).map(|()| Attachable::WouldListen),
        }
    }

    /// Makes sure that the JVM listens. Sends SIGQUIT only where it is known to be harmless: see `attach_guard`.
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
                // No socket, or one left behind by an earlier JVM with this pid.
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                    attach.handshake(process)?;
                }
                Err(e) => return Err(denied(&status, &e)),
            }
            attach.streams = attach.may_stream()?;
            Ok(attach)
        })
    }

    /// Asks a diagnostic command, as `jcmd PID COMMAND` does. A refusal by the JVM carries its words.
    pub fn jcmd(&self, command: &str) -> Read<String> {
        self.jcmd_within(command, REPLY_WITHIN)
    }

    /// As [`Attach::jcmd`], for an answer that is worthless later.
    pub fn jcmd_within(&self, command: &str, within: Duration) -> Read<String> {
        let reading = self.request("jcmd", [command, "", ""], within)?;
        match &reading.value {
            (0, _) => Ok(reading.map(|(_, text)| text)),
            (code, text) => Err(Unavailable::new(SOURCE, format!("`{command}` failed ({code}): {}", text.trim()))),
        }
    }

    /// Loads a Java agent, as `VirtualMachine.loadAgent` does; returns when its `agentmain` has.
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

    /// Loads a native agent, as `VirtualMachine.loadAgentPath` does; returns when its `Agent_OnAttach` has. The path is
    /// the JVM's own, in its mount namespace. A library stays loaded until the JVM ends.
    ///
    /// # Errors
    /// If the JVM does not allow agents (`-XX:-EnableDynamicAgentLoading`), cannot load the library, or the agent
    /// refuses the options; with the JVM's words, or the agent's code where there are none.
    pub fn load_library(&self, path: &str, options: &str, within: Duration) -> Result<(), Unavailable> {
        let (code, text) = self.request("load", [path, "true", options], within)?.value;
        let text = text.trim();
        let why = match text.strip_prefix("return code:").map(str::trim) {
            Some("0") if code == 0 => return Ok(()),
            Some(agents) => format!("the agent ended with code {agents}"),
            None if text.is_empty() => format!("code {code}"),
            None => text.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Err(Unavailable::new(SOURCE, format!("the JVM did not load {path}: {why}")))
    }

    /// Does something in the JVM's `/tmp`, as the JVM's user where only that one may.
    ///
    /// # Errors
    /// Those of what is done.
    pub fn in_tmp<T: Send>(&self, act: impl FnOnce(&OwnedFd) -> io::Result<T> + Send) -> io::Result<T> {
        self.acting.act(|| act(&self.tmp))
    }

    /// Whether answers may be sent while commands run: JDK 25 lists the options of a request, older ones have none and
    /// refuse the question.
    fn may_stream(&self) -> Result<bool, Unavailable> {
        let (code, options) = self.request("getversion", ["options", "", ""], REPLY_WITHIN)?.value;
        Ok(code == 0 && options.split([' ', ',']).any(|option| option.trim() == "streaming"))
    }

    /// Code and text of the answer.
    fn request(&self, operation: &str, arguments: [&str; 3], within: Duration) -> Read<(i32, String)> {
        let argument = arguments[0];
        if arguments.iter().any(|argument| argument.contains('\0') || argument.len() >= 1024) {
            return Err(Unavailable::new(SOURCE, "a command must be shorter than 1024 bytes, without zero bytes"));
        }
        // To connect and to ask; how long the answer took, its reader says.
        let brief = within.min(HANDSHAKE_WITHIN);
        let reading = Reading::take(&self.clock, || {
            let deadline = Deadline { end: self.clock.now() + within, within, clock: self.clock };
            attach_reply::drain(&mut self.send(operation, arguments, brief)?, deadline)
        });
        let reading =
            reading.map_err(|e: io::Error| Unavailable::new(SOURCE, format!("`{argument}`: {}", plain(&e, brief))))?;
        let text = String::from_utf8_lossy(&reading.value).into_owned();
        let (code, text) = parse_reply(&text)
            .ok_or_else(|| Unavailable::new(SOURCE, format!("the JVM gave no answer to `{argument}`")))?;
        Ok(reading.map(|_| (code, text.to_owned())))
    }

    /// Sends a request; the answer is to be read at once.
    fn send(&self, operation: &str, arguments: [&str; 3], within: Duration) -> io::Result<UnixStream> {
        let mut stream = self.open(within)?;
        stream.set_write_timeout(Some(within))?;
        let whole = if self.streams { " streaming=0" } else { "" };
        stream.write_all(format!("1\0{operation}{whole}\0{}\0", arguments.join("\0")).as_bytes())?;
        Ok(stream)
    }

    /// Connects, waiting no longer than this even where the JVM's queue is full.
    ///
    /// Anyone may put a socket into `/tmp`, and containers that share it share names too: only a socket that this very
    /// process listens on is believed.
    fn open(&self, within: Duration) -> io::Result<UnixStream> {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(within))?;
        // Through the descriptor: the path through `/proc/PID/root` could lead to a later process of that pid.
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
        // If the JVM believes that it listens, a SIGQUIT would print a thread dump while its socket file exists.
        self.remove_socket().and_then(|()| signal(process)).map_err(|e| denied(&status, &e))?;
        let end = self.clock.now() + HANDSHAKE_WITHIN;
        while self.clock.now() < end {
            match self.open(HANDSHAKE_WITHIN) {
                Ok(_) => return Ok(()),
                Err(_) if !process.is_alive() => return Err(Unavailable::new(SOURCE, "the JVM has ended")),
                Err(_) => self.clock.sleep(POLL),
            }
        }
        trigger.linger(self.tmp.try_clone().ok(), self.socket_name.clone(), self.clock);
        let why = format!("the JVM did not open its socket within {} s", HANDSHAKE_WITHIN.as_secs());
        Err(Unavailable::new(SOURCE, why))
    }

    /// Creates the trigger file; `None` if another tool was just attaching and the JVM listens by now.
    fn trigger(&self, process: &Process, status: &Status) -> Result<Option<Trigger>, Unavailable> {
        let end = self.clock.now() + OTHERS_WITHIN;
        loop {
            let replace = self.clock.now() >= end;
            let trigger = self.acting.act(|| Trigger::create(process, &self.tmp, status, replace));
            // Once more, as late as possible: two SIGQUITs for one listener print a thread dump.
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

    /// Waits until SIGQUIT may be sent, as long as the JVM is still starting.
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

/// Whether the process started so recently that it may become ready.
fn is_young(process: &Process) -> bool {
    age(process.start_ticks()).is_none_or(|age| age <= 2 * STARTING_WITHIN)
}

/// `0\nTEXT` → code and text.
pub fn parse_reply(text: &str) -> Option<(i32, &str)> {
    let (code, rest) = text.split_once('\n').unwrap_or((text, ""));
    Some((code.trim().parse().ok()?, rest))
}

/// Interprets the answer to `load` (`attachListener.cpp`, `InvocationAdapter.c`): `return code: 0` if all went well.
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
            format!("no answer within {} s", within.as_secs())
        }
        _ => loadline_base::error::plain(cause),
    }
}

#[cfg(test)]
#[path = "attach_live.rs"]
mod live;
