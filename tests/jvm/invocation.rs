//! One call of the binary: what is asked, what came of it, and what is left of it.

use loadline::archive::Archive;
use loadline::clock::Clock;
use loadline::doubt::Doubt;
use loadline::record::{Document, Mark, PhaseRecord, Sample, Trial};
use loadline::subject::jdk::{FoundJdk, Places, discover};
use loadline::subject::processes::{self, Process};
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Far more than any call here takes; only a broken one waits that long.
pub(crate) const LONG: Duration = Duration::from_secs(90);
/// What the design promises for the end of the subject, whatever happens to Loadline.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(5);
/// The releases that must work.
const RELEASES: [u32; 2] = [17, 25];
/// Subjects are pinned to the first core: more of them at once would only wait for each other.
const AT_ONCE: usize = 2;

/// The releases of [`RELEASES`] found here; says which are missing.
pub(crate) fn releases() -> Vec<u32> {
    let found: Vec<u32> = discover(&Places::usual(), Clock::start()).iter().map(|jdk| jdk.release).collect();
    let (here, missing): (Vec<u32>, Vec<u32>) = RELEASES.iter().partition(|release| found.contains(release));
    for release in missing {
        println!("skipped for JDK {release}, because it was not found");
    }
    here
}

/// The newest of them, where one JDK shows enough.
pub(crate) fn newest() -> Vec<u32> {
    releases().pop().into_iter().collect()
}

/// `name`, where it was found.
pub(crate) fn release(name: u32) -> Vec<u32> {
    releases().into_iter().filter(|release| *release == name).collect()
}

/// A JDK of this release.
pub(crate) fn jdk(release: u32) -> Option<FoundJdk> {
    discover(&Places::usual(), Clock::start()).into_iter().find(|jdk| jdk.release == release)
}

/// A call to be made.
#[derive(Debug)]
pub(crate) struct Call {
    folder: TempDir,
    options: Vec<String>,
    command: Vec<String>,
    shares: usize,
}

/// Words without blanks in them.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_whitespace().map(str::to_owned)
}

impl Call {
    /// `loadline VERB …`; an archive goes to [`Call::archive`] where the verb makes one.
    pub(crate) fn verb(words_: &str) -> Self {
        let options = words(words_).collect();
        Self { folder: tempfile::tempdir().unwrap(), options, command: Vec::new(), shares: 1 }
    }

    /// `loadline weigh`, with little load and little rest.
    pub(crate) fn weigh() -> Self {
        let mut call = Self::verb("weigh -n 200 --rest 200ms").with("--url http://127.0.0.1:{port}/hello");
        let out = call.archive().display().to_string();
        call.options.extend(["--out".to_owned(), out]);
        call
    }

    /// The same with `--json`, on a JDK.
    pub(crate) fn on(release: u32) -> Self {
        Self::weigh().with("--json").with(&format!("--jdk {release}"))
    }

    /// One more option, with its value if it has one, without blanks in it. The same option given before is replaced.
    pub(crate) fn with(mut self, option: &str) -> Self {
        let options: Vec<String> = words(option).collect();
        assert!(options.len() <= 2, "one at a time: {option}");
        let repeated = ["--jvm", "--env", "--header", "--only"].contains(&options[0].as_str());
        if let (false, Some(at)) = (repeated, self.options.iter().position(|known| *known == options[0])) {
            self.options.drain(at..at + options.len());
        }
        self.options.extend(options);
        self
    }

    /// One more word, which may have blanks in it.
    pub(crate) fn with_argument(mut self, word: &Path) -> Self {
        self.options.push(word.display().to_string());
        self
    }

    /// The option with its value is dropped.
    pub(crate) fn without(mut self, option: &str) -> Self {
        let at = self.options.iter().position(|known| known == option).unwrap();
        self.options.drain(at..at + 2);
        self
    }

    /// One of our subjects with arguments; `{port}` is the first of most of them.
    pub(crate) fn subject(self, name: &str, arguments: &str) -> Self {
        let java = self.java(name, arguments);
        self.command(&words(&java).collect::<Vec<_>>())
    }

    /// The `java` command line of one of our subjects, for a script.
    pub(crate) fn java(&self, name: &str, arguments: &str) -> String {
        let jar = env!("LOADLINE_TEST_SUBJECTS_JAR");
        format!("java {} -cp {jar} loadline.subjects.{name} {arguments}", self.marking())
    }

    /// Tells this call's processes from all others.
    fn marking(&self) -> String {
        format!("-Dmarking={}", self.folder.path().display())
    }

    /// Any command.
    pub(crate) fn command<W: AsRef<str>>(mut self, command: &[W]) -> Self {
        self.command = command.iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// A script for `sh`; ends in `; true` or similar so that the shell stays.
    pub(crate) fn script(self, script: &str) -> Self {
        self.command(&["sh", "-c", script])
    }

    /// No other JVM of these tests runs beside it.
    pub(crate) fn alone(mut self) -> Self {
        self.shares = AT_ONCE;
        self
    }

    /// It starts no JVM: the one it asks holds the share already.
    pub(crate) fn beside(mut self) -> Self {
        self.shares = 0;
        self
    }

    /// The whole command line but the program, for a shell.
    pub(crate) fn shown(&self) -> String {
        let words: Vec<String> = [self.options.as_slice(), &["--".to_owned()], &self.command].concat();
        loadline::scenario::shell_words(&words)
    }

    /// A folder that lasts as long as the call.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where its archive goes.
    pub(crate) fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// Starts it, in a process group of its own as a shell would.
    pub(crate) fn start(self) -> Started {
        // Whoever holds a share must not wait for another.
        let permit = (self.shares > 0).then(|| Permit::take(self.shares));
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command.args(&self.options).current_dir(self.folder.path()).process_group(0);
        if !self.command.is_empty() {
            command.arg("--").args(&self.command);
        }
        let stream = |name: &str| File::create(self.folder.path().join(name)).unwrap();
        let child = command.stdout(stream("stdout")).stderr(stream("stderr")).spawn().unwrap();
        Started { call: self, child, permit }
    }

    /// Runs it to its end. Nothing it started may be left then.
    pub(crate) fn run(self) -> Ran {
        self.start().wait()
    }
}

/// A call under way; killed when dropped.
#[derive(Debug)]
pub(crate) struct Started {
    call: Call,
    child: Child,
    /// Given back as soon as it has ended.
    permit: Option<Permit>,
}

impl Started {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its archive, as far as it is written.
    pub(crate) fn archive(&self) -> PathBuf {
        self.call.archive()
    }

    /// What it said so far on stderr.
    pub(crate) fn said(&self) -> String {
        read(&self.call.folder().join("stderr"))
    }

    /// Waits until it says this on stderr.
    pub(crate) fn until_said(&mut self, text: &str) {
        let clock = Clock::start();
        while !self.said().contains(text) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && clock.now() < LONG, "it never said `{text}`:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The processes of its subject that carry our marking, shells included.
    pub(crate) fn subjects(&self) -> Vec<Process> {
        marked(&self.call.marking(), self.pid())
    }

    /// The JVM among them.
    pub(crate) fn jvm(&self) -> Process {
        let java = |process: &Process| {
            let exe = std::fs::read_link(format!("/proc/{}/exe", process.pid));
            exe.is_ok_and(|exe| exe.ends_with("bin/java"))
        };
        self.subjects().into_iter().find(java).unwrap()
    }

    /// Sends a signal to Loadline alone.
    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, &self.pid().to_string());
    }

    /// Sends a signal to its process group, as a terminal does.
    pub(crate) fn signal_group(&self, signal: &str) {
        kill(signal, &format!("-{}", self.pid()));
    }

    /// Waits for its end. Nothing it started may be left then, but for a moment after a sudden death.
    pub(crate) fn wait(mut self) -> Ran {
        let clock = Clock::start();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(clock.now() < LONG, "it runs for ever:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        };
        let clock = Clock::start();
        let within = if status.signal().is_some() { GONE_WITHIN } else { Duration::ZERO };
        loop {
            let left = self.subjects();
            if left.is_empty() {
                break;
            }
            assert!(clock.now() < within, "left behind: {left:?}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
        self.permit = None;
        let (stdout, stderr) = (read(&self.call.folder().join("stdout")), self.said());
        Ran { status, stdout, stderr, pid: self.pid(), archive: self.call.archive(), _started: self }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // The guardian ends the subject; a child that has ended already cannot be killed, and need not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(signal: &str, whom: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), "--", whom]).status().unwrap();
    assert!(sent.success(), "kill -{signal} {whom}");
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

/// The processes, but one, whose command line carries this text.
pub(crate) fn marked(text: &str, but: u32) -> Vec<Process> {
    let all = processes::all().into_iter();
    all.filter(|process| process.pid != but && process.lives() && command_line(process).contains(text)).collect()
}

/// All of it; `Process::command` is cut for the screen.
fn command_line(process: &Process) -> String {
    read(Path::new(&format!("/proc/{}/cmdline", process.pid))).replace('\0', " ")
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) pid: u32,
    pub(crate) archive: PathBuf,
    /// Holds the folder.
    _started: Started,
}

impl Ran {
    /// Its exit code; none where a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Stops the test, with all that was said, unless it ended like this.
    pub(crate) fn expect(self, code: i32) -> Self {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        assert_eq!(self.code(), Some(code), "stderr:\n{stderr}\nstdout:\n{stdout}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        self
    }

    /// Stops the test unless stderr holds all of these, in this order.
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        let mut rest = self.stderr.as_str();
        for text in texts {
            let at = rest.find(text).unwrap_or_else(|| panic!("`{text}` is not said, or too early:\n{}", self.stderr));
            rest = &rest[at + text.len()..];
        }
        self
    }

    /// The result document.
    pub(crate) fn document(&self) -> Document {
        serde_json::from_str(&self.stdout).unwrap_or_else(|cause| panic!("{cause}: {}", self.stdout))
    }

    /// Its only trial.
    pub(crate) fn trial(&self) -> Trial {
        let mut trials = self.document().trials;
        assert_eq!(trials.len(), 1);
        trials.remove(0)
    }

    /// The archive read back.
    pub(crate) fn archived(&self) -> Archive {
        loadline::archive::read(&self.archive).unwrap()
    }

    /// A file of the only trial's folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let archived = self.archived();
        self.archive.join(archived.trials[0].folder.as_ref().unwrap()).join(name)
    }

    /// What the subject printed, as archived.
    pub(crate) fn subject_log(&self) -> String {
        read(&self.file("subject.log"))
    }

    /// The timeline.
    pub(crate) fn timeline(&self) -> Vec<Sample> {
        read(&self.file("timeline.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A mark that must be there.
pub(crate) fn mark<'a>(trial: &'a Trial, name: &str) -> &'a Mark {
    trial.mark(name).unwrap_or_else(|| panic!("no mark {name}: {:?}", mark_names(trial)))
}

pub(crate) fn mark_names(trial: &Trial) -> Vec<&str> {
    trial.marks.iter().map(|mark| mark.name.as_str()).collect()
}

/// A phase that must be there; its counts must add up.
pub(crate) fn phase<'a>(trial: &'a Trial, name: &str) -> &'a PhaseRecord {
    let phase = trial.phases.iter().find(|phase| phase.name == name);
    let phase = phase.unwrap_or_else(|| panic!("no phase {name}: {:?}", trial.phases));
    assert_eq!(phase.requests, phase.ok + phase.failed.total(), "{phase:?}");
    phase
}

/// Whether a doubt of this kind was raised.
pub(crate) fn doubts(trial: &Trial, kind: impl Fn(&Doubt) -> bool) -> bool {
    trial.doubts.iter().any(|doubt| kind(&doubt.doubt))
}

/// A share of the machine; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit(usize);

/// Shares given out, and calls that wait for the whole machine. They go first, or they would wait for the last test.
static SHARES: Mutex<(usize, usize)> = Mutex::new((0, 0));
static CHANGED: Condvar = Condvar::new();

impl Permit {
    /// What one JVM needs.
    pub(crate) fn one() -> Self {
        Self::take(1)
    }

    fn take(count: usize) -> Self {
        let whole = usize::from(count == AT_ONCE);
        let mut shares = SHARES.lock().unwrap_or_else(PoisonError::into_inner);
        shares.1 += whole;
        let mut shares = CHANGED
            .wait_while(shares, |(taken, waiting)| *taken + count > AT_ONCE || (whole == 0 && *waiting > 0))
            .unwrap_or_else(PoisonError::into_inner);
        *shares = (shares.0 + count, shares.1 - whole);
        Self(count)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        SHARES.lock().unwrap_or_else(PoisonError::into_inner).0 -= self.0;
        CHANGED.notify_all();
    }
}
