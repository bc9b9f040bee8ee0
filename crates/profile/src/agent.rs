//! async-profiler in a JVM: as an option of its start, or loaded into one that runs.
//!
//! Its options are words between commas. Errors do not come back through the attach socket, but for a code (100: it
//! does not take the options; 200: it did not do it); it prints them, and the option `log` lets it print into a file:
//!
//! ```text
//! start,nativemem=0,alloc=65536,live,lib,features=comptask,jfr,jfropts=31,…,file=…,log=…
//! [ERROR] Profiler already started
//! ```
//!
//! # What stays in a JVM
//! The library cannot be unloaded (it is linked with `-z nodelete`). After [`Session::stop`] it records nothing and has
//! no thread, no file and no open descriptor. These stay until the JVM ends: its mapping (2.5 MiB of address space),
//! its tables of symbols (18 MiB of RSS with JDK 17 and 25 on x86_64), and its hooks, which `malloc` and `free` of all
//! libraries go through. Methods that it traced are as they were before (seen with `-Xlog:redefine`). A second
//! recording uses the copy that is loaded.

use crate::calls::trace_words;
use crate::folder::{Folder, is_plain};
use crate::library::{FILE_NAME, Library};
use loadline_base::clock::Clock;
use loadline_base::error::{Error, Result};
use loadline_jvm::observe::Unavailable;
use loadline_jvm::observe::attach::Attach;
use loadline_jvm::observe::maps;
use loadline_jvm::observe::procfs::Process;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

const RECORDING: &str = "recording.jfr";
const LOG: &str = "profiler.log";
/// Bytes that are read of the profiler's log.
const LOG_BYTES_MAX: u64 = 64 << 10;
/// Lines of it that an error carries.
const LINES_MAX: usize = 5;
/// To load the library and start takes some 100 ms, and a second or two where a JVM has 100,000 classes; to stop it
/// writes the tables of all stacks.
const WITHIN: Duration = Duration::from_secs(60);
/// The profiler stops by itself so long after it should have been stopped: Loadline may have been killed.
const GRACE: Duration = Duration::from_secs(60);
/// One part of a recording has at most so many bytes: some 1.5 million events, which are sorted in 50 MB.
const CHUNK_BYTES: u64 = 32 << 20;
/// Parts that are complete can be read after the JVM was killed. Each has all tables, some MB on a large server.
const CHUNK_S: u64 = 60;
/// Neither the machine nor the properties of the JVM, which may be secrets, its libraries, its CPU or its heap: bits 0
/// to 4 of async-profiler's `JfrOption`.
const JFR_OPTIONS: u32 = 31;
/// A few hundred samples show the origin of live objects. A busy JVM allocates some 100 MB/s.
const HEAP_EVERY_BYTES: u64 = 64 << 10;

/// The words that start a recording into a file of this folder: each native allocation, so that sizes are exact, some
/// of the objects that are alive at the end, and each start of a process and opening of a file.
fn start_words(folder: &Path) -> String {
    let (file, log) = (folder.join(RECORDING), folder.join(LOG));
    // `lib`: frames name their library; `comptask`: a compiler's stack names what is compiled.
    format!(
        "start,nativemem=0,alloc={HEAP_EVERY_BYTES},live,lib,features=comptask{},jfr,jfropts={JFR_OPTIONS},\
         chunksize={CHUNK_BYTES},chunktime={CHUNK_S},file={},log={}",
        trace_words(),
        file.display(),
        log.display()
    )
}

/// A JVM that is to be started with the profiler: the option, and where it will record.
///
/// The files are in a private folder, removed with this value, as the library may be: it must outlive the JVM. A JVM
/// under another user cannot write there.
#[derive(Debug)]
pub struct Launch {
    /// The option of `java`: `-agentpath:…`. It has no spaces, and so can be in `JAVA_TOOL_OPTIONS`, too.
    pub argument: String,
    /// The profiler's library, which the option names.
    pub library: Library,
    folder: Folder,
}

impl Launch {
    /// Makes the folder and the option.
    ///
    /// # Errors
    /// If no folder can be made.
    pub fn prepare(library: Library) -> Result<Self> {
        let folder = Folder::temporary(&[RECORDING, LOG])?;
        let argument = format!("-agentpath:{}={}", library.path().display(), start_words(folder.path()));
        Ok(Self { argument, library, folder })
    }

    /// The recording, once the JVM has ended. A JVM that was killed leaves one that is cut off.
    ///
    /// # Errors
    /// If the profiler did not start, with its words; if the JVM was started without the option.
    pub fn recording(&self) -> Result<File> {
        let said = self.folder.text(LOG, LOG_BYTES_MAX);
        if let Some(error) = refusal(&said) {
            return Err(error);
        }
        self.folder.file(RECORDING).map_err(|cause| {
            Error::subject(format!("the JVM left no recording: {}", loadline_base::error::plain(&cause)))
                .hint("the option of the profiler must reach the JVM: a script may start it with other options")
        })
    }
}

/// A recording in a JVM that runs.
#[derive(Debug)]
pub struct Session {
    attach: Attach,
    process: Process,
    folder: Folder,
    /// The library as the JVM names it.
    library: PathBuf,
    stopped: bool,
}

/// The result of a session.
#[derive(Debug)]
pub struct Recorded {
    /// The recording; its name is gone already.
    pub file: File,
    /// Why it may be incomplete, with the words of the JVM or of the profiler.
    pub doubt: Option<String>,
}

impl Session {
    /// Loads the library into a running JVM and starts to record. Sends what `jcmd` would send (see
    /// [`loadline_jvm::observe::attach`]). If Loadline is killed, the profiler stops by itself a minute after
    /// `within`, the time that the recording is meant to take.
    ///
    /// # Errors
    /// If the JVM cannot be attached to, forbids agents or cannot load the library, or if another profiler records.
    /// The error has the words of the JVM or of the profiler.
    pub fn start(process: Process, library: &Library, within: Duration, clock: &Clock) -> Result<Self> {
        library.fits(&process, clock)?;
        let status = process.status(clock).map_err(refused)?.value;
        let attach = Attach::connect(&process, clock).map_err(refused)?.value;
        // The same name each time: the JVM then finds the library that it has loaded, instead of one more.
        let name = format!(".loadline-profiler-{}", status.ns_pid);
        let files = &[RECORDING, LOG, FILE_NAME];
        let owner = (status.euid, status.egid);
        let made = attach.in_tmp(|tmp| {
            let folder = Folder::taken(tmp, (&name, Path::new("/tmp")), files, owner)?;
            folder.write(FILE_NAME, library.bytes())?;
            Ok(folder)
        });
        let folder = made.map_err(|cause| Error::io("put the profiler into", "the JVM's /tmp", &cause))?;
        let library = loaded(&process, clock).unwrap_or_else(|| folder.path().join(FILE_NAME));
        let mut session = Self { attach, process, folder, library, stopped: true };
        let stops_after = (within + GRACE).as_secs().max(1);
        let words = format!("{},timeout={stops_after}", start_words(session.folder.path()));
        let mut started = session.order(&words);
        if started.as_ref().is_err_and(|error| error.what.contains("No such file")) {
            // musl looks for the file of a copy that it has loaded, and that one is gone: a second one is loaded.
            session.library = session.folder.path().join(FILE_NAME);
            started = session.order(&words);
        }
        if let Err(error) = started {
            session.close_log();
            return Err(error);
        }
        session.stopped = false;
        Ok(session)
    }

    /// Ends the recording and removes what was put into the JVM's `/tmp`.
    ///
    /// # Errors
    /// If there is no recording. If the JVM has ended, the result is what it had written, with a doubt.
    pub fn stop(mut self) -> Result<Recorded> {
        let ended = self.end();
        let file = self.folder.file(RECORDING);
        match (file, ended) {
            (Ok(file), Ok(())) => Ok(Recorded { file, doubt: None }),
            (Ok(file), Err(error)) => {
                let gone = !self.process.is_alive();
                let why = if gone { "the JVM ended while it was recorded".to_owned() } else { error.what };
                Ok(Recorded { file, doubt: Some(why) })
            }
            (Err(_), Err(error)) => Err(error),
            (Err(cause), Ok(())) => Err(Error::io("read", "the recording in the JVM's /tmp", &cause)),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.stopped = true;
        let log = self.folder.path().join(LOG);
        let ended = self.order(&format!("stop,log={}", log.display()));
        self.close_log();
        ended
    }

    /// Without an action and without a log: the profiler closes the file that it printed into.
    fn close_log(&self) {
        let _ = self.attach.load_library(&self.shown(), "loglevel=none", WITHIN);
    }

    fn shown(&self) -> String {
        self.library.display().to_string()
    }

    /// Lets the profiler do something, with what it printed where it did not.
    fn order(&self, words: &str) -> Result<()> {
        self.attach
            .load_library(&self.shown(), words, WITHIN)
            .map_err(|cause| refusal(&self.folder.text(LOG, LOG_BYTES_MAX)).unwrap_or_else(|| refused(cause)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.stopped {
            // The caller has given up: no one is left to read an error.
            let _ = self.end();
        }
    }
}

/// The copy of async-profiler that the JVM has loaded already, by the name that it has for the JVM: a second copy would
/// record as well, and neither knows of the other.
fn loaded(process: &Process, clock: &Clock) -> Option<PathBuf> {
    let mappings = maps::read(process, clock).ok()?.value;
    let own = mappings.iter().find(|mapping| mapping.file_name().starts_with("libasyncProfiler"))?;
    let path = own.file()?;
    // A path that options cannot name was loaded by somebody who did not need to.
    let path = PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(path));
    is_plain(&path).then_some(path)
}

/// Why the JVM did not do it, with what would allow it.
fn refused(cause: Unavailable) -> Error {
    let error = Error::machine(format!("the profiler cannot be loaded into the JVM: {}", cause.why));
    match () {
        () if cause.why.contains("Dynamic agent loading is not enabled") => {
            error.hint("start the JVM with `-XX:+EnableDynamicAgentLoading`")
        }
        () if cause.why.contains("DisableAttachMechanism") => {
            error.hint("start the JVM without `-XX:+DisableAttachMechanism`")
        }
        () if cause.why.contains("failed to map segment") => {
            error.hint("the JVM's /tmp is mounted `noexec`: start the JVM with the profiler's option instead")
        }
        () => error,
    }
}

/// The errors that the profiler printed.
fn refusal(said: &str) -> Option<Error> {
    let lines = said.lines().filter(|line| line.contains("[ERROR]"));
    let lines: Vec<String> = lines.map(|line| line.replace("[ERROR]", "").trim().to_owned()).take(LINES_MAX).collect();
    let first = lines.first()?;
    let error = match first.as_str() {
        "Profiler already started" => Error::machine("another profiler records in this JVM already")
            .hint("stop it, as with `asprof stop PID`, and try again"),
        words => Error::machine(format!("the profiler did not start: {words}")),
    };
    Some(error.said(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_words_between_commas() {
        let traced = "trace=java.lang.ProcessBuilder.start,trace=sun.nio.ch.FileChannelImpl.open,\
            trace=java.io.RandomAccessFile.open,trace=java.io.FileOutputStream.open";
        let expect = format!(
            "start,nativemem=0,alloc=65536,live,lib,features=comptask,{traced},jfr,jfropts=31,chunksize=33554432,\
             chunktime=60,file=/t/recording.jfr,log=/t/profiler.log"
        );
        assert_eq!(start_words(Path::new("/t")), expect);
    }

    #[test]
    fn words_of_the_profiler_become_errors() {
        assert!(refusal("Profiling started\n").is_none());
        let busy = refusal("[ERROR] Profiler already started\n").unwrap();
        assert_eq!(busy.what, "another profiler records in this JVM already");
        let other = refusal("[WARN] x\n[ERROR] Could not open Flight Recorder output file\n").unwrap();
        assert_eq!(other.what, "the profiler did not start: Could not open Flight Recorder output file");
        assert_eq!(other.said, ["Could not open Flight Recorder output file"]);
    }

    #[test]
    fn what_would_allow_an_agent_is_the_hint() {
        let hint = |why: &str| refused(Unavailable::new("attach", why)).hint.unwrap_or_default();
        assert!(hint("Dynamic agent loading is not enabled. Use …").contains("+EnableDynamicAgentLoading"));
        assert!(hint("the JVM runs with -XX:+DisableAttachMechanism").contains("without"));
        assert!(hint("x: failed to map segment from shared object").contains("noexec"));
        assert_eq!(hint("no permission"), "");
    }
}
