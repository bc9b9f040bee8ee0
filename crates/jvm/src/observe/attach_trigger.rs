//! The handshake's side effects: the file that turns a SIGQUIT into an attach request (JDK 11–27,
//! `attachListener_posix.cpp: is_init_trigger`), such as `/tmp/.attach_pid13412`, and the signal itself.

use super::attach::POLL;
use super::inside;
use super::procfs::Process;
use crate::kernel::process::Status;
use loadline_base::clock::Clock;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;
use std::time::Duration;

/// A JVM in a long safepoint may see SIGQUIT only after the handshake was abandoned. Without the trigger file it would
/// print a thread dump, so the file outlives the handshake by up to this time.
const TRIGGER_LINGERS: Duration = Duration::from_secs(120);

/// The file that turns SIGQUIT into an attach request. Removed on drop.
#[derive(Debug)]
pub(super) struct Trigger {
    folder: OwnedFd,
    name: String,
}

impl Trigger {
    /// Creates the file in the JVM's `/tmp`, or in its working directory if that is not writable. `replace` removes a
    /// file that a killed tool left behind.
    pub(super) fn create(process: &Process, tmp: &OwnedFd, status: &Status, replace: bool) -> io::Result<Self> {
        let name = format!(".attach_pid{}", status.ns_pid);
        match Self::create_in(tmp.try_clone()?, &name, status, replace) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
            Err(e) => Self::create_in(inside::folder_of(process, "cwd")?, &name, status, replace).map_err(|_| e),
            created => created,
        }
    }

    fn create_in(folder: OwnedFd, name: &str, status: &Status, replace: bool) -> io::Result<Self> {
        if replace {
            let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
        }
        // EXCL: never follow a link that someone has put into `/tmp`.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o600))?;
        let trigger = Self { folder, name: name.to_owned() };
        // The JVM ignores another user's file.
        let owner = rustix::fs::fstat(&file)?;
        if (owner.st_uid, owner.st_gid) != (status.euid, status.egid) {
            rustix::fs::fchown(&file, Some(Uid::from_raw(status.euid)), Some(Gid::from_raw(status.egid)))?;
        }
        Ok(trigger)
    }

    /// Keeps the file in the background until the socket exists.
    pub(super) fn linger(self, tmp: Option<OwnedFd>, socket_name: String, clock: Clock) {
        let end = clock.now() + TRIGGER_LINGERS;
        let missing =
            move |tmp: &OwnedFd| rustix::fs::statat(tmp, socket_name.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_err();
        let wait = move || {
            let _until_dropped = self;
            while clock.now() < end && tmp.as_ref().is_none_or(&missing) {
                clock.sleep(100 * POLL);
            }
        };
        // If the thread cannot start, the closure is dropped immediately, and the file with it.
        let _ = std::thread::Builder::new().name("attach-linger".into()).spawn(wait);
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        // Fails if the JVM or another tool has already removed the file.
        let _ = rustix::fs::unlinkat(&self.folder, self.name.as_str(), AtFlags::empty());
    }
}

/// Sends SIGQUIT to exactly this process: the pidfd is opened before the process is checked to be alive.
pub(super) fn signal(process: &Process) -> io::Result<()> {
    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
    let pid = Pid::from_raw(process.pid() as i32).ok_or(io::ErrorKind::NotFound)?;
    let descriptor = pidfd_open(pid, PidfdFlags::empty());
    if !process.is_alive() {
        return Err(io::Error::other("the JVM has exited"));
    }
    match descriptor {
        Ok(descriptor) => pidfd_send_signal(&descriptor, Signal::QUIT)?,
        // Kernels before 5.3.
        Err(_) => kill_process(pid, Signal::QUIT)?,
    }
    Ok(())
}

/// The user who creates files and opens connections.
#[derive(Debug, Clone, Copy)]
pub(super) enum Acting {
    /// As Loadline's own user.
    Oneself,
    /// As the JVM's user: it is in another user namespace (a rootless container), where Loadline's root has no
    /// privileges.
    User(Uid, Gid),
}

impl Acting {
    pub(super) fn towards(process: &Process, status: &Status) -> Self {
        let theirs = process.link("ns/user").ok();
        let foreign = theirs.is_some() && theirs != std::fs::read_link("/proc/self/ns/user").ok();
        if foreign && rustix::process::geteuid().is_root() {
            return Self::User(Uid::from_raw(status.euid), Gid::from_raw(status.egid));
        }
        Self::Oneself
    }

    /// Calls `act`, if necessary on a separate thread that has switched to this user.
    pub(super) fn act<T: Send>(self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let Self::User(uid, gid) = self else { return act() };
        let changed = move || {
            set_thread_groups(&[])?;
            set_thread_res_gid(gid, gid, gid)?;
            set_thread_res_uid(uid, uid, uid)?;
            act()
        };
        let joined = std::thread::scope(|scope| scope.spawn(changed).join());
        joined.unwrap_or_else(|_| Err(io::Error::other("the thread for another user panicked")))
    }
}
