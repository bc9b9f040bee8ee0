//! Loadline's bundled Java agent (`java/agent`), the only data source that runs inside a JVM: it reports Netty's pools.
//!
//! A running JVM loads it through the attach socket (`load instrument false JAR=out=FILE`, JDK 11–27). As of JDK 21,
//! the JVM then prints a warning to its stderr, unless it runs with `-XX:+EnableDynamicAgentLoading`. Loadline starts
//! its own subjects with the agent (`-javaagent:JAR=ask=FIFO`) and queries it through the FIFO.
//!
//! One-time cost: 1 to 8 MB of RSS, 1 to 3 MB of it for the agent. Each later report takes about 20 to 70 ms on one
//! thread and a few milliseconds on each event loop.

use super::attach::Attach;
use super::netty::{self, NettyPools, REPORT_BYTES_MAX};
use super::own_folder::{OwnFolder, open_above, own_user};
use super::procfs::Process;
use super::{Read, Reading, Unavailable};
use loadline_base::clock::Clock;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

/// The agent, built by `java/compile`.
const JAR: &[u8] = include_bytes!("../../../../java/compiled/agent.jar");
const JAR_NAME: &str = "agent.jar";
const FIFO_NAME: &str = "ask";
const REPORT_NAME: &str = "pools.json";
const SOURCE: &str = "agent";
/// A report takes well under a second, plus up to 2 s of waiting for event loops; the rest allows for a busy machine.
const REPORT_WITHIN: Duration = Duration::from_secs(10);
/// The interval between checks for a report.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// All files that the directory ever contains: the agent writes a report next to the last one.
const FILES: &[&str] = &[JAR_NAME, FIFO_NAME, REPORT_NAME, "pools.json.part"];

/// Loads the agent into a running JVM and reads its report. Before returning, removes the files that this requires.
///
/// The directory has the same name each time, so the JVM's class path does not grow with each report.
pub fn survey(process: &Process, attach: &Attach, clock: &Clock) -> Read<NettyPools> {
    Reading::take(clock, || {
        let status = process.status(clock)?.value;
        let name = format!(".loadline-{}", status.ns_pid);
        let owner = (status.euid, status.egid);
        let unusable = |cause: io::Error| failed("its files cannot be written to the JVM's /tmp", &cause);
        let taken = |tmp: &_| OwnFolder::taken(tmp, (&name, Path::new("/tmp")), FILES, owner);
        let folder = attach.in_tmp(taken).map_err(unusable)?;
        attach.in_tmp(|_| folder.write(JAR_NAME, JAR)).map_err(unusable)?;
        let before = rss(process, clock);
        let inside = format!("/tmp/{name}");
        attach.load_agent(&format!("{inside}/{JAR_NAME}"), &format!("out={inside}/{REPORT_NAME}"), REPORT_WITHIN)?;
        let text = report(&folder).map_err(|cause| no_report(&cause))?;
        let mut pools = netty::parse(&text)?;
        pools.agent.attached = true;
        pools.agent.rss_bytes = before.zip(rss(process, clock)).map(|(before, after)| after - before);
        Ok(pools)
    })
}

fn rss(process: &Process, clock: &Clock) -> Option<i64> {
    process.statm(clock).ok().map(|statm| statm.value.resident.0.cast_signed())
}

fn failed(what: &str, cause: &io::Error) -> Unavailable {
    Unavailable::new(SOURCE, format!("{what}: {}", loadline_base::error::plain(cause)))
}

fn no_report(cause: &io::Error) -> Unavailable {
    match cause.kind() {
        io::ErrorKind::NotFound => Unavailable::new(SOURCE, "the JVM loaded it, but it did not write a report"),
        _ => failed("its report cannot be read", cause),
    }
}

/// The report as the JVM wrote it, of bounded size.
fn report(folder: &OwnFolder) -> io::Result<String> {
    let mut bytes = Vec::new();
    folder.file(REPORT_NAME)?.take(REPORT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The agent that a subject is started with, and the FIFO for querying it.
#[derive(Debug)]
pub struct SubjectAgent {
    folder: OwnFolder,
}

impl SubjectAgent {
    /// Puts the jar and the FIFO into a new directory `name` below `above`.
    pub fn prepare(above: &Path, name: &str) -> Result<Self, Unavailable> {
        let made = || -> io::Result<Self> {
            let folder = OwnFolder::taken(&open_above(above)?, (name, above), FILES, own_user())?;
            folder.write(JAR_NAME, JAR)?;
            rustix::fs::mknodat(&folder, FIFO_NAME, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            Ok(Self { folder })
        };
        made().map_err(|cause| failed(&format!("its files cannot be written to {}", above.display()), &cause))
    }

    /// The option that starts a JVM with the agent.
    pub fn option(&self) -> String {
        let path = self.folder.path().display();
        format!("-javaagent:{path}/{JAR_NAME}=ask={path}/{FIFO_NAME}")
    }

    /// Asks for a report and waits for it. Fails if no agent is listening, or none responds in time.
    pub fn ask(&self, process: &Process, clock: &Clock) -> Read<NettyPools> {
        Reading::take(clock, || {
            self.folder.remove(REPORT_NAME);
            let before = rss(process, clock);
            self.send().map_err(|cause| match cause.raw_os_error() {
                Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => {
                    Unavailable::new(SOURCE, "none of the server's JVMs loaded it; was `-javaagent` passed on?")
                }
                _ => failed("it cannot be queried", &cause),
            })?;
            let mut pools = netty::parse(&self.wait(process, clock)?)?;
            pools.agent.rss_bytes = before.zip(rss(process, clock)).map(|(before, after)| after - before);
            Ok(pools)
        })
    }

    /// Writes the request to the FIFO without waiting for a reader: if there is none, there is no agent.
    fn send(&self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fifo = rustix::fs::openat(&self.folder, FIFO_NAME, flags, Mode::empty())?;
        let question = format!("{}\n", self.folder.path().join(REPORT_NAME).display());
        File::from(fifo).write_all(question.as_bytes())
    }

    fn wait(&self, process: &Process, clock: &Clock) -> Result<String, Unavailable> {
        let end = clock.now() + REPORT_WITHIN;
        loop {
            match report(&self.folder) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                done => return done.map_err(|cause| no_report(&cause)),
            }
            if !process.is_alive() {
                return Err(Unavailable::new(SOURCE, "the JVM has exited"));
            }
            if clock.now() >= end {
                let why = format!("it did not write a report within {} s", REPORT_WITHIN.as_secs());
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
    fn asking_a_jvm_without_the_agent_fails_immediately() {
        let above = tempfile::tempdir().unwrap();
        let standing = SubjectAgent::prepare(above.path(), ".x").unwrap();
        assert!(standing.option().starts_with("-javaagent:") && standing.option().contains("agent.jar=ask="));
        let clock = Clock::start();
        let this = Process::open(std::process::id()).unwrap();
        let cause = standing.ask(&this, &clock).unwrap_err();
        assert!(cause.why.starts_with("none of the server's JVMs loaded"), "{cause}");
    }
}
