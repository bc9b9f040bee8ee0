//! The handshake's two outward acts: the file that tells HotSpot what a SIGQUIT means (JDK 11–25,
//! `attachListener_posix.cpp: is_init_trigger`), such as `/tmp/.attach_pid13412`, and the signal itself.

use super::attach::POLL;
use super::procfs::{Process, Status};
use crate::clock::Clock;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use std::io;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// A JVM in a long safepoint finds a late SIGQUIT after the handshake was given up. Without the trigger file it would
/// then print a thread dump, so the file outlives the handshake by up to this time.
const TRIGGER_LINGERS: Duration = Duration::from_secs(120);

/// The file that makes SIGQUIT a request to attach. Removed when dropped.
#[derive(Debug)]
pub(super) struct Trigger {
    folder: rustix::fd::OwnedFd,
    name: String,
}

impl Trigger {
    /// Creates it in the JVM's `/tmp`, or where that is not writable, in its working folder. `replace` removes one that
    /// was left behind by a tool that was killed.
    pub(super) fn create(process: &Process, status: &Status, replace: bool) -> io::Result<Self> {
        let name = format!(".attach_pid{}", status.ns_pid);
        match Self::create_in(process, "root/tmp", &name, status, replace) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
            Err(e) => Self::create_in(process, "cwd", &name, status, replace).map_err(|_| e),
            created => created,
        }
    }

    fn create_in(process: &Process, below: &str, name: &str, status: &Status, replace: bool) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(process.folder(), below, flags, Mode::empty())?;
        if replace {
            let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
        }
        // EXCL: never through a link that somebody has put into `/tmp`.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o600))?;
        let trigger = Self { folder, name: name.to_owned() };
        // The JVM ignores the file of another user.
        let owner = rustix::fs::fstat(&file)?;
        if (owner.st_uid, owner.st_gid) != (status.euid, status.egid) {
            rustix::fs::fchown(&file, Some(Uid::from_raw(status.euid)), Some(Gid::from_raw(status.egid)))?;
        }
        Ok(trigger)
    }

    /// Keeps the file until the socket is there after all, in the background.
    pub(super) fn linger(self, socket: PathBuf, clock: Clock) {
        let end = clock.now() + TRIGGER_LINGERS;
        let wait = move || {
            let _until_dropped = self;
            while clock.now() < end && !socket.exists() {
                sleep(100 * POLL);
            }
        };
        // Without a thread the closure is dropped at once, and the file with it.
        let _ = std::thread::Builder::new().name("attach-linger".into()).spawn(wait);
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        // Somebody else may have removed it already.
        let _ = rustix::fs::unlinkat(&self.folder, self.name.as_str(), AtFlags::empty());
    }
}

/// Sends SIGQUIT to this very process: the descriptor is taken before it is seen alive.
pub(super) fn signal(process: &Process) -> io::Result<()> {
    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
    let pid = Pid::from_raw(process.pid() as i32).ok_or(io::ErrorKind::NotFound)?;
    let descriptor = pidfd_open(pid, PidfdFlags::empty());
    if !process.is_alive() {
        return Err(io::Error::other("the JVM has ended"));
    }
    match descriptor {
        Ok(descriptor) => pidfd_send_signal(&descriptor, Signal::QUIT)?,
        // Kernels before 5.3.
        Err(_) => kill_process(pid, Signal::QUIT)?,
    }
    Ok(())
}
