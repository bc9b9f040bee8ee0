//! async-profiler in a JVM: as a startup option, or loaded into a running JVM.
//!
//! Its options are separated by commas. The attach socket returns only a code for errors (100: invalid options; 200:
//! failed). The profiler prints the errors, and the option `log` redirects them to a file:
//!
//! ```text
//! start,nativemem=0,alloc=65536,live,lib,features=comptask,jfr,jfropts=31,…,file=…,log=…
//! [ERROR] Profiler already started
//! ```
//!
//! # What remains in a JVM
//! The library cannot be unloaded (it is linked with `-z nodelete`). After [`Session::stop`], it records nothing and
//! has no thread, file, or open descriptor. Until the JVM exits, these remain: its mapping (2.5 MiB of address space),
//! its symbol tables (18 MiB of RSS with JDK 17 and 25 on x86_64), and its hooks. All libraries call `malloc` and
//! `free` through these hooks. Traced methods are restored (seen with `-Xlog:redefine`). A second recording uses the
//! loaded copy.

use crate::calls::trace_words;
use crate::folder::{is_plain, temporary, text};
use crate::library::{FILE_NAME, Library};
use loadline_base::clock::Clock;
use loadline_base::error::{Error, Result};
use loadline_jvm::observe::Unavailable;
use loadline_jvm::observe::attach::Attach;
use loadline_jvm::observe::maps;
use loadline_jvm::observe::own_folder::OwnFolder;
use loadline_jvm::observe::procfs::Process;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

const RECORDING: &str = "recording.jfr";
const LOG: &str = "profiler.log";
/// Maximum number of bytes read from the profiler's log.
const LOG_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of log lines in an error.
const LINES_MAX: usize = 5;
/// Loading and starting take about 100 ms, or one to two seconds in a JVM with 100,000 classes; stopping writes the
/// tables of all stacks.
const WITHIN: Duration = Duration::from_secs(60);
/// The profiler stops on its own this long after the planned end, in case Loadline was killed.
const GRACE: Duration = Duration::from_secs(60);
/// Maximum size of a recording's chunk: about 1.5 million events, which take 50 MB to sort.
const CHUNK_BYTES: u64 = 32 << 20;
/// Complete chunks are readable even if the JVM is killed. Each contains all tables, a few MB on a large server.
const CHUNK_S: u64 = 60;
/// Excludes the machine and the JVM's properties (which may contain secrets), libraries, CPU, and heap: bits 0 to 4 of
/// async-profiler's `JfrOption`.
const JFR_OPTIONS: u32 = 31;
/// A few hundred samples show the origin of live objects. A busy JVM allocates about 100 MB/s.
const HEAP_EVERY_BYTES: u64 = 64 << 10;

/// The options that start a recording in this directory. The recording has each native allocation, for exact sizes; a
/// sample of the objects alive at the end; and every start of a process and opening of a file.
fn start_words(folder: &Path) -> String {
    let (file, log) = (folder.join(RECORDING), folder.join(LOG));
    // `lib`: frames include their library; `comptask`: a compiler's stack includes the method being compiled.
    format!(
        "start,nativemem=0,alloc={HEAP_EVERY_BYTES},live,lib,features=comptask{},jfr,jfropts={JFR_OPTIONS},\
         chunksize={CHUNK_BYTES},chunktime={CHUNK_S},file={},log={}",
        trace_words(),
        file.display(),
        log.display()
    )
}

/// A JVM to be started with the profiler: the option, and the path of the recording.
///
/// The files, possibly including the library, are in a private directory that is removed with this value: it must
/// outlive the JVM. Another user's JVM cannot write to the directory.
#[derive(Debug)]
pub struct Launch {
    /// The option of `java`: `-agentpath:…`. It contains no spaces, so `JAVA_TOOL_OPTIONS` can contain it.
    pub argument: String,
    /// The profiler's library, which the option refers to.
    pub library: Library,
    folder: OwnFolder,
}

impl Launch {
    /// Creates the directory and the option. Fails if no directory can be created.
    pub fn prepare(library: Library) -> Result<Self> {
        let folder = temporary(&[RECORDING, LOG])?;
        let argument = format!("-agentpath:{}={}", library.path().display(), start_words(folder.path()));
        Ok(Self { argument, library, folder })
    }

    /// Opens the recording after the JVM has exited; it is truncated if the JVM was killed. Fails if the JVM lacked
    /// the option, or if the profiler did not start; the error then contains the profiler's messages.
    pub fn recording(&self) -> Result<File> {
        let said = text(&self.folder, LOG, LOG_BYTES_MAX);
        if let Some(error) = refusal(&said) {
            return Err(error);
        }
        self.folder.file(RECORDING).map_err(|cause| {
            Error::subject(format!("the JVM did not write a recording: {}", loadline_base::error::plain(&cause)))
                .hint("make sure the JVM gets the profiler's option; a start script may drop it")
        })
    }
}

/// A recording in a running JVM.
#[derive(Debug)]
pub struct Session {
    attach: Attach,
    process: Process,
    folder: OwnFolder,
    library: PathBuf,
    stopped: bool,
}

/// The result of a session.
#[derive(Debug)]
pub struct Recorded {
    /// The recording; the file has already been unlinked.
    pub file: File,
    /// Why it may be incomplete, as reported by the JVM or the profiler.
    pub doubt: Option<String>,
}

impl Session {
    /// Loads the library into a running JVM and starts recording. Sends what `jcmd` would send (see
    /// [`loadline_jvm::observe::attach`]). If Loadline is killed, the profiler stops on its own a minute after
    /// `within`, the planned duration. Fails if the JVM cannot be attached to, forbids agents, or cannot load the
    /// library, or if another profiler is recording. The error contains the message of the JVM or the profiler.
    pub fn start(process: Process, library: &Library, within: Duration, clock: &Clock) -> Result<Self> {
        library.fits(&process, clock)?;
        let status = process.status(clock).map_err(refused)?.value;
        let attach = Attach::connect(&process, clock).map_err(refused)?.value;
        // The name is always the same, so the JVM finds the library that it has already loaded.
        let name = format!(".loadline-profiler-{}", status.ns_pid);
        let files = &[RECORDING, LOG, FILE_NAME];
        let owner = (status.euid, status.egid);
        let made = attach.in_tmp(|tmp| {
            let folder = OwnFolder::taken(tmp, (&name, Path::new("/tmp")), files, owner)?;
            folder.write(FILE_NAME, library.bytes())?;
            Ok(folder)
        });
        let folder = made.map_err(|cause| Error::io("copy the profiler to", "the JVM's /tmp", &cause))?;
        let library = loaded(&process, clock).unwrap_or_else(|| folder.path().join(FILE_NAME));
        let mut session = Self { attach, process, folder, library, stopped: true };
        let stops_after = (within + GRACE).as_secs().max(1);
        let words = format!("{},timeout={stops_after}", start_words(session.folder.path()));
        let mut started = session.order(&words);
        if started.as_ref().is_err_and(|error| error.what.contains("No such file")) {
            // musl looks for the file of the loaded copy, which is gone, so a second copy is loaded.
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

    /// Ends the recording and removes the files from the JVM's `/tmp`. Fails if there is no recording. If the JVM has
    /// exited, returns what was written so far, with a doubt.
    pub fn stop(mut self) -> Result<Recorded> {
        let ended = self.end();
        let file = self.folder.file(RECORDING);
        match (file, ended) {
            (Ok(file), Ok(())) => Ok(Recorded { file, doubt: None }),
            (Ok(file), Err(error)) => {
                let gone = !self.process.is_alive();
                let why = if gone { "the JVM exited during the recording".to_owned() } else { error.what };
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

    /// Sends a command without an action or a log file, which makes the profiler close its log file.
    fn close_log(&self) {
        let _ = self.attach.load_library(&self.shown(), "loglevel=none", WITHIN);
    }

    fn shown(&self) -> String {
        self.library.display().to_string()
    }

    /// Sends a command to the profiler; on failure, returns its output.
    fn order(&self, words: &str) -> Result<()> {
        self.attach
            .load_library(&self.shown(), words, WITHIN)
            .map_err(|cause| refusal(&text(&self.folder, LOG, LOG_BYTES_MAX)).unwrap_or_else(|| refused(cause)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.stopped {
            // The caller has given up, so nothing reads an error.
            let _ = self.end();
        }
    }
}

/// The copy of async-profiler that the JVM has already loaded, by its path in the JVM. A second copy would record
/// too, and neither knows about the other.
fn loaded(process: &Process, clock: &Clock) -> Option<PathBuf> {
    let mappings = maps::read(process, clock).ok()?.value;
    let own = mappings.iter().find(|mapping| mapping.file_name().starts_with("libasyncProfiler"))?;
    let path = own.file()?;
    // Another program may have loaded it from a path that options cannot contain.
    let path = PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(path));
    is_plain(&path).then_some(path)
}

/// The error for a refusal by the JVM, with a hint on how to allow the operation.
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

fn refusal(said: &str) -> Option<Error> {
    let lines = said.lines().filter(|line| line.contains("[ERROR]"));
    let lines: Vec<String> = lines.map(|line| line.replace("[ERROR]", "").trim().to_owned()).take(LINES_MAX).collect();
    let first = lines.first()?;
    let error = match first.as_str() {
        "Profiler already started" => Error::machine("another profiler is already recording in this JVM")
            .hint("stop it (`asprof stop PID`), and try again"),
        words => Error::machine(format!("the profiler did not start: {words}")),
    };
    Some(error.said(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_separated_by_commas() {
        let traced = "trace=java.lang.ProcessBuilder.start,trace=sun.nio.ch.FileChannelImpl.open,\
            trace=java.io.RandomAccessFile.open,trace=java.io.FileOutputStream.open";
        let expect = format!(
            "start,nativemem=0,alloc=65536,live,lib,features=comptask,{traced},jfr,jfropts=31,chunksize=33554432,\
             chunktime=60,file=/t/recording.jfr,log=/t/profiler.log"
        );
        assert_eq!(start_words(Path::new("/t")), expect);
    }

    #[test]
    fn profiler_messages_become_errors() {
        assert!(refusal("Profiling started\n").is_none());
        let busy = refusal("[ERROR] Profiler already started\n").unwrap();
        assert_eq!(busy.what, "another profiler is already recording in this JVM");
        let other = refusal("[WARN] x\n[ERROR] Could not open Flight Recorder output file\n").unwrap();
        assert_eq!(other.what, "the profiler did not start: Could not open Flight Recorder output file");
        assert_eq!(other.said, ["Could not open Flight Recorder output file"]);
    }

    #[test]
    fn the_hint_says_how_to_allow_agents() {
        let hint = |why: &str| refused(Unavailable::new("attach", why)).hint.unwrap_or_default();
        assert!(hint("Dynamic agent loading is not enabled. Use …").contains("+EnableDynamicAgentLoading"));
        assert!(hint("the JVM runs with -XX:+DisableAttachMechanism").contains("without"));
        assert!(hint("x: failed to map segment from shared object").contains("noexec"));
        assert_eq!(hint("no permission"), "");
    }
}
