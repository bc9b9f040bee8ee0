//! The Java agent that Loadline carries (`java/agent`), the one source that speaks from inside a JVM: Netty's pools.
//!
//! Into a running JVM it is loaded through the attach socket (`load instrument false JAR=out=FILE`, JDK 11–27); from
//! JDK 21 on the JVM then writes a warning to its stderr, unless it runs with `-XX:+EnableDynamicAgentLoading`. A
//! subject of our own is started with it (`-javaagent:JAR=ask=FIFO`) and asked through the FIFO.
//!
//! Cost, once: 1 to 8 MB of RSS, of which 1 to 3 MB are the agent's; later reports some 20 to 70 ms on one thread and
//! some milliseconds on each event loop.

use super::attach::Attach;
use super::netty::{self, NettyPools, REPORT_BYTES_MAX};
use super::procfs::Process;
use super::{Read, Reading, Unavailable};
use loadline_base::clock::Clock;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The agent, as `java/compile` makes it.
const JAR: &[u8] = include_bytes!("../../../../java/compiled/agent.jar");
const JAR_NAME: &str = "agent.jar";
const FIFO_NAME: &str = "ask";
const REPORT_NAME: &str = "pools.json";
const SOURCE: &str = "agent";
/// A report takes well below a second, of which event loops have 2 s; the rest is for a machine that is busy.
const REPORT_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks for a report.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// No other user may write into the folder, whose jar is loaded into a JVM.
const PRIVATE: Mode = Mode::RWXU;

/// Loads the agent into a running JVM and takes its report. The files it needs are gone when this returns.
///
/// The folder has the same name each time, so that the JVM's class path does not grow with each report.
pub fn survey(process: &Process, attach: &Attach, clock: &Clock) -> Read<NettyPools> {
    Reading::take(clock, || {
        let status = process.status(clock)?.value;
        let name = format!(".loadline-{}", status.ns_pid);
        let owner = (status.euid, status.egid);
        let unusable = |cause: io::Error| failed("its files cannot be put into the JVM's /tmp", &cause);
        let folder = attach.in_tmp(|tmp| AgentFolder::create(tmp, &name, owner)).map_err(unusable)?;
        attach.in_tmp(|_| folder.write(JAR_NAME, JAR, owner)).map_err(unusable)?;
        let before = rss(process, clock);
        let inside = format!("/tmp/{name}");
        attach.load_agent(&format!("{inside}/{JAR_NAME}"), &format!("out={inside}/{REPORT_NAME}"), REPORT_WITHIN)?;
        let text = folder.read(REPORT_NAME).map_err(|cause| no_report(&cause))?;
        let mut pools = netty::parse(&text)?;
        pools.agent.attached = true;
        pools.agent.rss_bytes = before.zip(rss(process, clock)).map(|(before, after)| after - before);
        Ok(pools)
    })
}

fn rss(process: &Process, clock: &Clock) -> Option<i64> {
    process.statm(clock).ok().map(|statm| statm.value.resident.0.cast_signed())
}

/// The error for an action that failed, with its cause.
fn failed(what: &str, cause: &io::Error) -> Unavailable {
    Unavailable::new(SOURCE, format!("{what}: {}", loadline_base::error::plain(cause)))
}

fn no_report(cause: &io::Error) -> Unavailable {
    match cause.kind() {
        io::ErrorKind::NotFound => Unavailable::new(SOURCE, "the JVM loaded it, but it wrote no report"),
        _ => failed("its report cannot be read", cause),
    }
}

/// A folder of Loadline's in the `/tmp` of a JVM. Removed when dropped, with the agent's files.
#[derive(Debug)]
struct AgentFolder {
    above: OwnedFd,
    name: String,
    itself: OwnedFd,
}

impl AgentFolder {
    /// Creates the folder for a user; takes over one that was left behind, if no other user can have made that.
    fn create(above: &OwnedFd, name: &str, (uid, gid): (u32, u32)) -> io::Result<Self> {
        match rustix::fs::mkdirat(above, name, PRIVATE) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(cause) => return Err(cause.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let itself = rustix::fs::openat(above, name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&itself)?;
        let own = [uid, rustix::process::geteuid().as_raw()].contains(&found.st_uid);
        if !own || Mode::from_raw_mode(found.st_mode) != PRIVATE {
            return Err(io::Error::other(format!("a folder {name} of user {} is in the way", found.st_uid)));
        }
        let folder = Self { above: above.try_clone()?, name: name.to_owned(), itself };
        folder.clear();
        if (found.st_uid, found.st_gid) != (uid, gid) {
            rustix::fs::fchown(&folder.itself, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        Ok(folder)
    }

    fn write(&self, name: &str, bytes: &[u8], (uid, gid): (u32, u32)) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.itself, name, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::fchown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        File::from(file).write_all(bytes)
    }

    /// Reads a file of the JVM's making: a plain one, of bounded size.
    fn read(&self, name: &str) -> io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.itself, name, flags, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is not a file"));
        }
        let mut bytes = Vec::new();
        File::from(file).take(REPORT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn remove(&self, name: &str) {
        // Fails for a file that is not there.
        let _ = rustix::fs::unlinkat(&self.itself, name, AtFlags::empty());
    }

    fn clear(&self) {
        let part = format!("{REPORT_NAME}.part");
        for name in [JAR_NAME, FIFO_NAME, REPORT_NAME, part.as_str()] {
            self.remove(name);
        }
    }
}

impl Drop for AgentFolder {
    fn drop(&mut self) {
        self.clear();
        // A folder with files of somebody else stays.
        let _ = rustix::fs::unlinkat(&self.above, self.name.as_str(), AtFlags::REMOVEDIR);
    }
}

/// The agent that a subject is started with, and the FIFO by which it is asked.
#[derive(Debug)]
pub struct SubjectAgent {
    folder: AgentFolder,
    path: PathBuf,
}

impl SubjectAgent {
    /// Puts jar and FIFO into a new folder of this name below `above`.
    ///
    /// # Errors
    /// Fails if the folder or its files cannot be made.
    pub fn prepare(above: &Path, name: &str) -> Result<Self, Unavailable> {
        let made = || -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let descriptor = rustix::fs::open(above, flags, Mode::empty())?;
            let user = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            let folder = AgentFolder::create(&descriptor, name, user)?;
            folder.write(JAR_NAME, JAR, user)?;
            rustix::fs::mknodat(&folder.itself, FIFO_NAME, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            Ok(Self { folder, path: above.join(name) })
        };
        made().map_err(|cause| failed(&format!("its files cannot be put into {}", above.display()), &cause))
    }

    /// The option that starts a JVM with the agent.
    pub fn option(&self) -> String {
        let path = self.path.display();
        format!("-javaagent:{path}/{JAR_NAME}=ask={path}/{FIFO_NAME}")
    }

    /// Asks for a report and waits for it.
    ///
    /// # Errors
    /// Fails if no agent listens, or none answers in time.
    pub fn ask(&self, process: &Process, clock: &Clock) -> Read<NettyPools> {
        Reading::take(clock, || {
            self.folder.remove(REPORT_NAME);
            let before = rss(process, clock);
            self.send().map_err(|cause| match cause.raw_os_error() {
                Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => {
                    Unavailable::new(SOURCE, "no JVM of the subject listens to it; was `-javaagent` passed on?")
                }
                _ => failed("it cannot be asked", &cause),
            })?;
            let mut pools = netty::parse(&self.wait(process, clock)?)?;
            pools.agent.rss_bytes = before.zip(rss(process, clock)).map(|(before, after)| after - before);
            Ok(pools)
        })
    }

    /// Writes the question into the FIFO, without waiting for a reader: without one there is no agent.
    fn send(&self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fifo = rustix::fs::openat(&self.folder.itself, FIFO_NAME, flags, Mode::empty())?;
        let question = format!("{}\n", self.path.join(REPORT_NAME).display());
        File::from(fifo).write_all(question.as_bytes())
    }

    fn wait(&self, process: &Process, clock: &Clock) -> Result<String, Unavailable> {
        let end = clock.now() + REPORT_WITHIN;
        loop {
            match self.folder.read(REPORT_NAME) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                done => return done.map_err(|cause| no_report(&cause)),
            }
            if !process.is_alive() {
                return Err(Unavailable::new(SOURCE, "the JVM has ended"));
            }
            if clock.now() >= end {
                let why = format!("it gave no report within {} s", REPORT_WITHIN.as_secs());
                return Err(Unavailable::new(SOURCE, why));
            }
            clock.sleep(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_left_behind_is_taken_over_and_one_of_others_is_not() {
        let above = tempfile::tempdir().unwrap();
        let first = SubjectAgent::prepare(above.path(), ".x").unwrap();
        assert!(first.option().starts_with("-javaagent:") && first.option().contains("agent.jar=ask="));
        std::mem::forget(first);
        let second = SubjectAgent::prepare(above.path(), ".x").unwrap();
        drop(second);
        assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 0);
        std::fs::create_dir(above.path().join(".x")).unwrap();
        let cause = SubjectAgent::prepare(above.path(), ".x").unwrap_err();
        assert!(cause.why.contains("is in the way"), "{cause}");
    }

    #[test]
    fn without_a_reader_nobody_is_waited_for() {
        let above = tempfile::tempdir().unwrap();
        let standing = SubjectAgent::prepare(above.path(), ".x").unwrap();
        let clock = Clock::start();
        let this = Process::open(std::process::id()).unwrap();
        let cause = standing.ask(&this, &clock).unwrap_err();
        assert!(cause.why.starts_with("no JVM of the subject listens"), "{cause}");
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let above = tempfile::tempdir().unwrap();
        let standing = SubjectAgent::prepare(above.path(), ".x").unwrap();
        let report = standing.path.join(REPORT_NAME);
        std::os::unix::fs::symlink("/proc/self/status", &report).unwrap();
        assert!(standing.folder.read(REPORT_NAME).is_err());
        std::fs::remove_file(&report).unwrap();
        assert!(standing.folder.read(FIFO_NAME).is_err());
    }
}
