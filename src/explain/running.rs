//! A running JVM: records it through its attach socket and, if requested, makes it write a heap dump. Both change the
//! JVM, so the caller measures it first.

use super::{NATIVE, enter_dump, native, noted};
use crate::clock::Clock;
use crate::error::{Error, Result, plain};
use crate::observe::attach::Attach;
use crate::observe::heap_dump;
use crate::observe::procfs::Process;
use crate::record::{ExplanationRecord, Jvm, NO_OBJECTS};
use crate::subject::names;
use loadline_profile::agent::Session;
use loadline_profile::library::Library;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often to check for an interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A collection wakes the threads that free the native memory of dead objects; this gives them time.
const CLEANED_WITHIN: Duration = Duration::from_secs(1);

pub(crate) struct ExplainRequest<'a> {
    pub pid: u32,
    /// As for [`super::profiler`].
    pub profiler: Option<&'a Path>,
    /// The recording time.
    pub span: Duration,
    /// Whether to write a heap dump.
    pub heap: bool,
}

/// Records a JVM, and reads which code and objects hold its memory. Ends early on an interrupt or if the JVM ends;
/// announces each action on the JVM through `say`. Fails if there is no such process, or if neither part is available.
pub(crate) fn running(
    asked: &ExplainRequest<'_>,
    jvm: &Jvm,
    clock: Clock,
    stop: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&str),
) -> Result<ExplanationRecord> {
    let mut found = ExplanationRecord::default();
    let process = || Process::open(asked.pid).map_err(|cause| Error::request(cause.to_string()));
    let watched = process()?;
    let session = Library::find(asked.profiler).and_then(|library| {
        say(&format!(
            "loading {} into pid {}: about 20 MiB of it stays in the JVM until the JVM exits",
            library.path().display(),
            asked.pid
        ));
        let session = Session::start(process()?, &library, asked.span, &clock)?;
        say(&format!("recording pid {} for {} s", asked.pid, asked.span.as_secs()));
        Ok((library.path().display().to_string(), session))
    });
    let session = match (session, asked.heap) {
        (Err(error), false) => return Err(error),
        (session, _) => noted(&mut found, NATIVE, session),
    };
    let ends = clock.now() + if session.is_some() { asked.span } else { Duration::ZERO };
    while clock.now() < ends && !stop() && watched.is_alive() {
        clock.park(LOOK_EVERY.min(ends - clock.now()));
    }
    let recorded_until = clock.since_epoch(clock.now_ns());
    if asked.heap && !stop() {
        say("heap dump: a full GC, then a pause while the JVM writes its live objects");
        let dump = dumped(&watched, clock);
        if let Some(dump) = noted(&mut found, NO_OBJECTS, dump) {
            enter_dump(&dump, Some(jvm), &mut found);
        }
        clock.sleep(CLEANED_WITHIN);
    }
    if let Some((name, session)) = session {
        let recorded = session.stop().and_then(|recorded| {
            found.missing.extend(recorded.doubt.map(|why| format!("Native memory by code may be incomplete: {why}.")));
            native::enter(recorded.file, Some(recorded_until), &mut found)
        });
        noted(&mut found, NATIVE, recorded);
        found.profiler = Some(name);
    }
    Ok(found)
}

/// Makes the JVM write a heap dump to its `/tmp`; the name is removed before this returns.
fn dumped(process: &Process, clock: Clock) -> Result<File> {
    let unavailable = |cause: crate::observe::Unavailable| Error::machine(cause.why);
    let attach = Attach::connect(process, &clock).map_err(unavailable)?.value;
    let name = format!("loadline-explain-{}.hprof", names::random());
    let written = heap_dump::write(process, &attach, &PathBuf::from("/tmp").join(&name));
    let file = attach.in_tmp(|tmp| {
        let file = openat(tmp, &name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        // A truncated dump takes up space, too.
        let removed = unlinkat(tmp, &name, AtFlags::empty());
        let file = file?;
        removed?;
        Ok(File::from(file))
    });
    written.map_err(unavailable)?;
    file.map_err(|cause| Error::machine(format!("cannot read the heap dump in the JVM's /tmp: {}", plain(&cause))))
}
