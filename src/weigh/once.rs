//! A single measurement of a running JVM outside any trial, for `loadline account`.

use super::flags;
use super::identity::identity;
use super::objects::record as live_objects;
use super::watched::Watched;
use super::weighing::{AskNmt, MarkSettings, Moment};
use crate::clock::Clock;
use crate::doubt::{Doubt, NOW};
use crate::error::{Error, Result};
use crate::observe::hotspot::flags::Flags;
use crate::observe::procfs::Process;
use crate::observe::{elf, maps};
use crate::record::{ACCOUNT_SCHEMA, AccountDocument, DoubtRecord, HeapDumpRecord, Jvm, Mark, ObjectsRecord};
use crate::scenario::{Asking, Kind};
use crate::units::Bytes;
use std::path::{Path, PathBuf};

/// How to measure a running JVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountOptions {
    /// Whether its threads may be paused for a few milliseconds, for a consistent reading.
    pub stop: bool,
    /// Whether to load the agent afterward, to list Netty's pools.
    pub netty: bool,
    /// When to attach for data that its tables may have.
    pub asking: Asking,
}

/// Commands after the measurement that trigger a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Collecting {
    /// List live objects by class.
    pub classes: bool,
    /// Write a heap dump to this new file, an absolute path.
    pub heap_dump: Option<PathBuf>,
}

impl AccountOptions {
    /// Measures process `pid`, without a collection or trim. The caller adds time, command, machine, and findings.
    pub(crate) fn weigh(self, pid: u32, clock: &Clock) -> Result<AccountDocument> {
        self.weigh_then(pid, clock, &Collecting::default(), &mut |_| ())
    }

    /// Like `weigh`, followed by the commands that trigger a collection. `announce` receives the cost of each in
    /// advance. Errors: `Request` if `pid` is not a JVM, is Loadline itself, or is gone; `Machine` without permission;
    /// `Subject` if it ends during the measurement.
    pub(crate) fn weigh_then(
        self,
        pid: u32,
        clock: &Clock,
        then: &Collecting,
        announce: &mut dyn FnMut(&str),
    ) -> Result<AccountDocument> {
        check_jvm(pid, clock)?;
        let mut doubts = Vec::new();
        let watched = Watched::open(pid, true, Kind::Jvm, *clock, &mut doubts)?.asked(self.asking);
        self.weigh_watched(watched, doubts, then, announce)
    }

    /// Like `weigh`, for a JVM that was already opened, or a copy of one.
    pub(super) fn weigh_watched(
        self,
        mut watched: Watched,
        mut doubts: Vec<Doubt>,
        then: &Collecting,
        announce: &mut dyn FnMut(&str),
    ) -> Result<AccountDocument> {
        let pid = watched.process.pid();
        let command = watched.process.cmdline().unwrap_or_default();
        let mut jvm = watched.describe_from_outside();
        let identity = identity(&mut watched, &command);
        let flags = watched.flags().ok();
        let replied = watched.replied_flags();
        let weigh = MarkSettings { moment: Moment::Running, nmt: AskNmt::IfOn, stop: self.stop, regions: true };
        let weighed = weigh.weigh(&mut watched, NOW, &mut doubts);
        if has_ended(&watched) {
            let ended = format!("the process with pid {pid} exited while being read");
            return Err(Error::subject(ended).hint("specify the process ID of a JVM that keeps running"));
        }
        let mut mark = weighed.mark;
        if mark.account.is_none() {
            let why = weighed.failed.join("; ");
            return Err(Error::machine(format!("the process with pid {pid} could not be read: {why}"))
                .hint("run Loadline as the same user as the JVM, or as root"));
        }
        let mut failed = weighed.failed;
        if self.netty || then.asks() {
            watched.attach(&mut doubts);
        }
        if self.netty {
            // Last, because the agent adds memory.
            let pools = if takes_agent(&jvm) { watched.survey() } else { Err(TOO_OLD.to_owned()) };
            mark.netty = pools.map_err(|why| failed.push(why)).ok();
        }
        let (objects, heap_dump) = then.collect(&watched, &mark, announce, &mut failed)?;
        doubts.extend(failed.into_iter().map(|why| Doubt::ReadFailed { mark: NOW.to_owned(), why }));
        jvm.allocator = weighed.allocator;
        jvm.collector = weighed.collector;
        let in_force = |flags: &Flags| flags.changed().all_spelled();
        jvm.flags = flags.as_ref().map(in_force).or(replied);
        let flags = flags.map(flags::record);
        Ok(AccountDocument {
            schema: ACCOUNT_SCHEMA.to_owned(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            jvm,
            subject_command: command,
            identity: Some(identity),
            mark,
            rss_bytes_peak: weighed.rss_bytes_peak,
            flags,
            objects,
            heap_dump,
            doubts: doubts.into_iter().map(DoubtRecord::from).collect(),
            ..AccountDocument::default()
        })
    }
}

impl Collecting {
    fn asks(&self) -> bool {
        self.classes || self.heap_dump.is_some()
    }

    /// Runs the commands; unreadable objects are a failed read, but a failed dump is an error.
    fn collect(
        &self,
        watched: &Watched,
        mark: &Mark,
        announce: &mut dyn FnMut(&str),
        failed: &mut Vec<String>,
    ) -> Result<(Option<ObjectsRecord>, Option<HeapDumpRecord>)> {
        let used = mark.heap.used_bytes;
        let mut objects = None;
        if self.classes {
            announce(&price_of_objects(used));
            match watched.histogram() {
                Ok(histogram) => objects = Some(live_objects(&histogram, None)),
                Err(why) => failed.push(format!("no live objects by class: {why}")),
            }
        }
        let Some(path) = &self.heap_dump else { return Ok((objects, None)) };
        announce(&price_of_dump(used, path));
        let dumped = watched.dump_heap(path);
        let refused = |why: String| {
            Error::machine(format!("no heap dump: {why}")).hint(
                "the JVM writes the dump as its own user, so that user needs write access, and the directory \
                       must be visible to the JVM",
            )
        };
        Ok((objects, Some(dumped.map_err(refused)?)))
    }
}

fn heap_in_use(used: Option<u64>) -> String {
    used.map_or("a heap of unknown size".to_owned(), |bytes| format!("a heap with {} in use", Bytes(bytes)))
}

/// The cost of listing live objects, for the announcement.
pub(crate) fn price_of_objects(used: Option<u64>) -> String {
    format!("live objects: a full GC of {} pauses the JVM now", heap_in_use(used))
}

/// The cost of a heap dump, for the announcement.
pub(crate) fn price_of_dump(used: Option<u64>, path: &Path) -> String {
    let heap = heap_in_use(used);
    let path = path.display();
    format!("heap dump: a full GC of {heap}; the JVM pauses to write {path}")
}

/// Why no agent is loaded: an older JVM cannot read its classes, and would print that to the subject's stderr.
const TOO_OLD: &str = "Netty's pools: the agent needs JDK 11 or newer";
/// The first release that can read the agent's classes.
const AGENT_RELEASE_MIN: u32 = 11;

/// Whether the JVM can load the agent. JDK 9 and later report `17.0.15+6`; JDK 8 reports `25.412-b08`.
fn takes_agent(jvm: &Jvm) -> bool {
    let Some(version) = &jvm.version else { return true };
    let release = version.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    version.contains('+') && release.is_none_or(|release: u32| release >= AGENT_RELEASE_MIN)
}

/// Whether it has ended, is ending (a process frees its memory before it counts as dead), or has executed another
/// program, like a JVM's forked child.
fn has_ended(watched: &Watched) -> bool {
    let maps = maps::read(&watched.process, &watched.clock);
    !watched.lives() || maps.is_ok_and(|maps| maps::libjvm(&maps.value).is_none())
}

/// The JVM options in a process's initial environment; `None` if there are none, or it is unreadable.
pub(crate) fn tool_options(pid: u32) -> Option<String> {
    let environ = Process::open(pid).ok()?.environ().ok()?;
    let own = environ.iter().find_map(|set| set.strip_prefix("JAVA_TOOL_OPTIONS="));
    own.filter(|own| !own.is_empty()).map(str::to_owned)
}

/// Checks that this is a readable JVM. Errors: `Request` if it is not a JVM, is Loadline itself, or is gone; `Machine`
/// without permission.
pub(crate) fn check_jvm(pid: u32, clock: &Clock) -> Result<()> {
    let refuse = |what: String| Err(Error::request(what).hint(LIST_JVMS));
    let gone = || refuse(format!("there is no process with pid {pid}"));
    if pid == std::process::id() {
        return refuse(format!("pid {pid} is Loadline itself"));
    }
    let Ok(process) = Process::open(pid) else { return gone() };
    let Ok(stat) = process.stat(clock) else { return gone() };
    if stat.value.has_ended() {
        return refuse(format!("the process with pid {pid} has exited but has not been reaped (zombie)"));
    }
    let process_of = process.status(clock).map_or(pid, |status| status.value.tgid);
    if process_of != pid {
        return refuse(format!("{pid} is a thread of the process with pid {process_of}"));
    }
    let name = stat.value.comm;
    let why = match maps::read(&process, clock) {
        Ok(maps) if maps::libjvm(&maps.value).is_some() => return Ok(()),
        Ok(_) if elf::is_native_image(&process) => {
            let what = format!("the process with pid {pid} ({name}) is a GraalVM native image, not a HotSpot JVM");
            let hint = "`kind: native` in a scenario weighs it as a program without a JVM";
            return Err(Error::request(what).hint(hint));
        }
        Ok(_) => return refuse(format!("the process with pid {pid} ({name}) is not a HotSpot JVM")),
        Err(_) if !process.is_alive() => return gone(),
        // The hint below covers the rest.
        Err(why) => why.why.split(';').next().unwrap_or_default().to_owned(),
    };
    match process.status(clock).map(|status| status.value.euid) {
        Ok(uid) if uid != rustix::process::geteuid().as_raw() => {
            Err(Error::machine(format!("the process with pid {pid} belongs to another user"))
                .hint("run Loadline as that user, or as root"))
        }
        _ => Err(Error::machine(format!("the process with pid {pid} cannot be read: {why}"))
            .hint("run Loadline as the same user as the JVM, or as root")),
    }
}

/// The hint for a pid that is not a JVM's.
pub(crate) const LIST_JVMS: &str =
    "`loadline account --all` lists the JVMs on this machine, including those in containers";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn an_old_jvm_gets_no_agent() {
        let takes = |version: Option<&str>| takes_agent(&Jvm { version: version.map(str::to_owned), ..Jvm::default() });
        assert!(["11.0.13+8-LTS", "17.0.15+6-Debian-1deb12u1", "25+36-LTS"].into_iter().all(|text| takes(Some(text))));
        assert!(!["25.412-b08", "9.0.4+11", "25.71-b15"].into_iter().any(|text| takes(Some(text))));
        assert!(takes(None));
    }

    #[test]
    fn missing_processes_and_loadline_itself_are_rejected() {
        for (pid, what) in [(u32::MAX, "there is no process with pid"), (std::process::id(), "is Loadline itself")] {
            let error = check_jvm(pid, &Clock::start()).unwrap_err();
            assert!(error.kind == ErrorKind::Request && error.what.contains(what), "{error}");
        }
    }
}
