//! A call to the binary: its arguments, its results, and its leftovers.

use crate::test_subjects::test_subjects;
use crate::waiting::{LONG, wait_for, wait_until};
use loadline::archive::Archive;
use loadline::clock::Clock;
use loadline::doubt::Doubt;
use loadline::record::{Document, Mark, PhaseRecord, Sample, Trial};
use loadline::subject::jdk::{FoundJdk, Places, discover};
use loadline::subject::processes::{self, Process};
use std::cell::Cell;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// The guaranteed time until the subject has ended, whatever happens to Loadline.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(5);
/// The supported releases to test.
const RELEASES: [u32; 2] = [17, 25];
const ALL_RELEASES: [u32; 3] = [17, 21, 25];
/// Releases that must be installed, such as `17,21,25`. If unset, the newest one is used.
const JDKS: &str = "LOADLINE_JDKS";
/// Subjects are pinned to the first core, so more of them would only wait for each other.
const AT_ONCE: usize = 2;

/// The releases for this run: those of [`RELEASES`] in `LOADLINE_JDKS`, else the newest installed one. Only nightly
/// runs test release-independent behavior on each release.
pub(crate) fn releases() -> Vec<u32> {
    chosen(&RELEASES)
}

/// Like [`releases`], but including the release in between, for release-specific behavior.
pub(crate) fn all_releases() -> Vec<u32> {
    chosen(&ALL_RELEASES)
}

/// Every installed release, in every run: for release-specific memory layouts, such as HotSpot's tables.
pub(crate) fn every_release() -> Vec<u32> {
    found(&ALL_RELEASES)
}

/// The newest release for this run, if one JDK suffices.
pub(crate) fn newest() -> Vec<u32> {
    releases().pop().into_iter().collect()
}

fn chosen(asked: &[u32]) -> Vec<u32> {
    let listed = listed();
    if !listed.is_empty() {
        let both: Vec<u32> = asked.iter().copied().filter(|release| listed.contains(release)).collect();
        return found(if both.is_empty() { &listed } else { &both });
    }
    let newest = asked.iter().rev().copied().find(|release| jdk(*release).is_some());
    newest.map_or_else(|| found(asked), |newest| vec![newest])
}

fn listed() -> Vec<u32> {
    let listed = std::env::var(JDKS).unwrap_or_default();
    let number =
        |release: &str| release.trim().parse().unwrap_or_else(|_| panic!("{JDKS}={listed} is not a list of releases"));
    listed.split(',').filter(|release| !release.trim().is_empty()).map(number).collect()
}

/// The installed ones of these releases. A missing one is skipped, or a failure if `LOADLINE_JDKS` lists it.
fn found(asked: &[u32]) -> Vec<u32> {
    let (here, missing): (Vec<u32>, Vec<u32>) = asked.iter().partition(|release| jdk(**release).is_some());
    for release in missing {
        let listed = listed();
        assert!(!listed.contains(&release), "{JDKS} lists {listed:?}, but there is no JDK {release}");
        loadline_test_support::record(JDKS, &format!("there is no JDK {release}"));
    }
    here
}

/// A release that is quick to copy: a runtime without a compiler, if one was fetched.
pub(crate) fn small() -> Vec<u32> {
    let is_fetched = |release: &u32| jdk(*release).is_some_and(|jdk| jdk.home.starts_with(fetched_jdks()));
    every_release().into_iter().find(is_fetched).map_or_else(newest, |release| vec![release])
}

/// The release `name`, if installed.
pub(crate) fn release(name: u32) -> Vec<u32> {
    found(&[name])
}

/// A JDK of this release: installed, or fetched by `tests/jvm/fetch-jdks`.
pub(crate) fn jdk(release: u32) -> Option<FoundJdk> {
    let mut places = Places::usual();
    places.parents.push(fetched_jdks());
    discover(&places, Clock::start()).into_iter().find(|jdk| jdk.release == release)
}

/// Whether a release's JVM starts with these options; reports a skip if not, because some builds lack a collector.
pub(crate) fn starts_with(release: u32, options: &str) -> bool {
    let mut java = Command::new(jdk(release).unwrap().java);
    let started = java.args(options.split_whitespace()).arg("-version").output().unwrap();
    if !started.status.success() {
        loadline_test_support::skip("LOADLINE_COLLECTORS", &format!("JDK {release} does not start with `{options}`"));
    }
    started.status.success()
}

fn fetched_jdks() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("jdks")
}

/// A call to make.
#[derive(Debug)]
pub(crate) struct Call {
    folder: TempDir,
    options: Vec<String>,
    command: Vec<String>,
    shares: usize,
    /// The requested JDK, which Loadline may not know.
    jdk: Option<FoundJdk>,
    /// The time to wait for its end.
    patience: Duration,
}

/// Splits at spaces.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_whitespace().map(str::to_owned)
}

impl Call {
    /// `loadline VERB …`; its archive, if any, is in [`Call::archive`].
    pub(crate) fn verb(words_: &str) -> Self {
        let options = words(words_).collect();
        Self {
            folder: tempfile::tempdir().unwrap(),
            options,
            command: Vec::new(),
            shares: 1,
            jdk: None,
            patience: LONG,
        }
    }

    /// `loadline weigh`, with little load and rest.
    pub(crate) fn weigh() -> Self {
        Self::trial_of("weigh")
    }

    /// A verb that runs a command's trial, with little load and rest.
    fn trial_of(verb: &str) -> Self {
        Self::verb(&format!("{verb} -n 200 --rest 200ms")).with("--url http://127.0.0.1:{port}/hello").archiving()
    }

    /// Puts the archive into [`Call::archive`].
    pub(crate) fn archiving(self) -> Self {
        let out = self.archive();
        self.with("--out").with_argument(&out)
    }

    /// The call for a scenario with this name and text, in the call's directory. Its archive is in [`Call::archive`].
    pub(crate) fn of_scenario(self, name: &str, text: &str) -> Self {
        let file = format!("{name}.loadline.yaml");
        std::fs::write(self.folder().join(&file), text).unwrap();
        self.with_argument(Path::new(&file)).archiving()
    }

    /// `loadline explain --json`, on a JDK.
    pub(crate) fn explaining(release: u32) -> Self {
        Self::trial_of("explain").with("--json").of_jdk(release)
    }

    /// `loadline weigh --json`, on a JDK.
    pub(crate) fn on(release: u32) -> Self {
        Self::weigh().with("--json").of_jdk(release)
    }

    /// Uses a JDK, installed or fetched.
    pub(crate) fn of_jdk(self, release: u32) -> Self {
        Self { jdk: jdk(release), ..self }.with(&format!("--jdk {release}"))
    }

    /// Adds an option, with its value if any, without spaces. Replaces an earlier one.
    pub(crate) fn with(mut self, option: &str) -> Self {
        let options: Vec<String> = words(option).collect();
        assert!(options.len() <= 2, "only one option per call: {option}");
        let repeated =
            ["--jvm", "--env", "--header", "--only", "--target", "--try", "--skip"].contains(&options[0].as_str());
        if let (false, Some(at)) = (repeated, self.options.iter().position(|known| *known == options[0])) {
            self.options.drain(at..at + options.len());
        }
        self.options.extend(options);
        self
    }

    /// Adds an argument, which may contain spaces.
    pub(crate) fn with_argument(mut self, word: &Path) -> Self {
        self.options.push(word.display().to_string());
        self
    }

    /// For many trials, each of which may have to wait for other tests.
    pub(crate) fn of_many_trials(self) -> Self {
        Self { patience: 5 * LONG, ..self }
    }

    /// Adds these JVM options, separated by spaces.
    pub(crate) fn with_jvm(self, options: &str) -> Self {
        options.split_whitespace().fold(self, |call, option| call.with(&format!("--jvm {option}")))
    }

    /// Excludes these remedies, separated by spaces.
    pub(crate) fn skipping(self, remedies: &str) -> Self {
        remedies.split_whitespace().fold(self, |call, id| call.with(&format!("--skip {id}")))
    }

    /// Removes an option with its value.
    pub(crate) fn without(mut self, option: &str) -> Self {
        let at = self.options.iter().position(|known| known == option).unwrap();
        self.options.drain(at..at + 2);
        self
    }

    /// A test subject with arguments; `{port}` is usually the first.
    pub(crate) fn subject(self, name: &str, arguments: &str) -> Self {
        let java = self.java(name, arguments);
        self.command(&words(&java).collect::<Vec<_>>())
    }

    /// A test subject's `java` command line, for a script.
    pub(crate) fn java(&self, name: &str, arguments: &str) -> String {
        let jar = test_subjects();
        format!("java {} -cp {jar} loadline.subjects.{name} {arguments}", self.marking())
    }

    /// Distinguishes this call's processes from all others.
    fn marking(&self) -> String {
        format!("-Dmarking={}", self.folder.path().display())
    }

    /// Any command.
    pub(crate) fn command<W: AsRef<str>>(mut self, command: &[W]) -> Self {
        self.command = command.iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// A script for `sh`; must end in `; true` or similar, so that the shell keeps running.
    pub(crate) fn script(self, script: &str) -> Self {
        self.command(&["sh", "-c", script])
    }

    /// Excludes other JVMs of these tests.
    pub(crate) fn alone(mut self) -> Self {
        self.shares = AT_ONCE;
        self
    }

    /// For a call that does not start a JVM: the JVM that it reads already has a share.
    pub(crate) fn beside(mut self) -> Self {
        self.shares = 0;
        self
    }

    /// The command line without the program, for a shell.
    pub(crate) fn shown(&self) -> String {
        let words: Vec<String> = [self.options.as_slice(), &["--".to_owned()], &self.command].concat();
        loadline::scenario::shell_words(&words)
    }

    /// A directory that lasts as long as the call.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The directory of its archive.
    pub(crate) fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// Starts it in its own process group, like a shell.
    pub(crate) fn start(self) -> Started {
        // A test with a share must not wait for another share.
        let permit = (self.shares > 0).then(|| Permit::take(self.shares));
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command.args(&self.options).current_dir(self.folder.path()).process_group(0);
        if !self.command.is_empty() {
            command.arg("--").args(&self.command);
        }
        if let Some(jdk) = self.jdk.as_ref().filter(|jdk| jdk.home.starts_with(fetched_jdks())) {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::env::split_paths(&path).chain([jdk.home.join("bin")]);
            command.env("PATH", std::env::join_paths(folders).unwrap());
        }
        let stream = |name: &str| File::create(self.folder.path().join(name)).unwrap();
        let child = command.stdout(stream("stdout")).stderr(stream("stderr")).spawn().unwrap();
        Started { call: self, child, permit }
    }

    /// Runs it to completion. No process may be left.
    pub(crate) fn run(self) -> Ran {
        self.start().wait()
    }
}

/// A running call; killed on drop.
#[derive(Debug)]
pub(crate) struct Started {
    call: Call,
    child: Child,
    /// Returned when the call has ended.
    permit: Option<Permit>,
}

impl Started {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its archive so far.
    pub(crate) fn archive(&self) -> PathBuf {
        self.call.archive()
    }

    /// Its stderr so far.
    pub(crate) fn said(&self) -> String {
        read(&self.call.folder().join("stderr"))
    }

    /// Waits for this text on stderr.
    pub(crate) fn until_said(&mut self, text: &str) {
        wait_until(&format!("stderr contains `{text}`"), LONG, || {
            // When its end is visible, its output is complete.
            let ended = self.child.try_wait().unwrap();
            let said = self.said();
            assert!(ended.is_none() || said.contains(text), "it ended without writing `{text}` to stderr:\n{said}");
            said.contains(text)
        });
    }

    /// Waits for this text on stdout.
    pub(crate) fn until_shown(&mut self, text: &str) {
        let shown = self.call.folder().join("stdout");
        wait_until(&format!("stdout contains `{text}`"), LONG, || {
            let ended = self.child.try_wait().unwrap();
            let so_far = read(&shown);
            assert!(ended.is_none() || so_far.contains(text), "it never showed `{text}`:\n{so_far}{}", self.said());
            so_far.contains(text)
        });
    }

    /// Waits for all of these strings on stderr, in this order.
    pub(crate) fn until_said_in_order(&mut self, texts: &[&str]) {
        self.until_said(texts[0]);
        wait_until(&format!("stderr contains {texts:?}, in this order"), LONG, || {
            let said = self.said();
            let rest = texts.iter().try_fold(said.as_str(), |rest, text| Some(rest.split_once(text)?.1));
            rest.is_some()
        });
    }

    /// Polls without pause until ptrace holds this process, which takes a few milliseconds; returns false if the
    /// call ended first.
    pub(crate) fn until_it_holds(&mut self, pid: u32) -> bool {
        let clock = Clock::start();
        while clock.now() < LONG && self.child.try_wait().unwrap().is_none() {
            // The kernel reports the tracing thread.
            let status = read(Path::new(&format!("/proc/{pid}/status")));
            let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:\t"));
            let is_its_own = |thread: &str| Path::new(&format!("/proc/{}/task/{thread}", self.pid())).exists();
            if tracer.is_some_and(|thread| thread != "0" && is_its_own(thread)) {
                return true;
            }
        }
        false
    }

    /// Correct responses so far, from its timeline.
    pub(crate) fn answered(&self) -> u64 {
        let folders = std::fs::read_dir(self.archive()).into_iter().flatten().flatten();
        let texts = folders.map(|folder| read(&folder.path().join("timeline.jsonl")));
        // The last line may be incomplete.
        let last = |text: String| text.lines().rev().find_map(|line| serde_json::from_str::<Sample>(line).ok());
        texts.filter_map(last).map(|sample| sample.ok).max().unwrap_or(0)
    }

    /// Its subject's processes with the marking, including shells.
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

    /// Signals only Loadline.
    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, &self.pid().to_string());
    }

    /// Signals its process group, like a terminal.
    pub(crate) fn signal_group(&self, signal: &str) {
        kill(signal, &format!("-{}", self.pid()));
    }

    /// Waits for its end. No process may be left, or only briefly after a sudden death.
    pub(crate) fn wait(mut self) -> Ran {
        let folder = self.call.folder().to_path_buf();
        let patience = self.call.patience;
        let status =
            wait_for("it ends", patience, || self.child.try_wait().unwrap().ok_or(read(&folder.join("stderr"))));
        let left = || Some(self.subjects()).filter(|left| !left.is_empty());
        wait_for("its subject is gone", gone_within(status), || left().map_or(Ok(()), Err));
        self.permit = None;
        let (stdout, stderr) = (read(&self.call.folder().join("stdout")), self.said());
        Ran { status, stdout, stderr, pid: self.pid(), archive: self.call.archive(), _started: self }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // The guardian ends the subject; killing an ended child fails, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The time in which a call's processes must be gone: a killed call leaves them to its guardian.
fn gone_within(status: ExitStatus) -> Duration {
    if status.signal().is_some() { GONE_WITHIN } else { Duration::ZERO }
}

fn kill(signal: &str, whom: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), "--", whom]).status().unwrap();
    assert!(sent.success(), "kill -{signal} {whom}");
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

/// The processes with this text in their command line, except one.
pub(crate) fn marked(text: &str, but: u32) -> Vec<Process> {
    let all = processes::all().into_iter();
    all.filter(|process| process.pid != but && process.lives && command_line(process).contains(text)).collect()
}

/// The complete command line, unlike `Process::command`.
fn command_line(process: &Process) -> String {
    read(Path::new(&format!("/proc/{}/cmdline", process.pid))).replace('\0', " ")
}

/// A finished call.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) pid: u32,
    pub(crate) archive: PathBuf,
    /// Keeps the directory.
    _started: Started,
}

impl Ran {
    /// Its exit code; `None` if killed by a signal.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Waits until something that the call created is gone; after a normal end, that must be gone immediately.
    #[track_caller]
    pub(crate) fn leaves_none<T: std::fmt::Debug>(&self, what: &str, left: impl Fn() -> Vec<T>) {
        let left = || Some(left()).filter(|left| !left.is_empty());
        wait_for(&format!("{what} gone"), gone_within(self.status), || left().map_or(Ok(()), Err));
    }

    /// Checks the exit code; prints all output on failure.
    pub(crate) fn expect(self, code: i32) -> Self {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        assert_eq!(self.code(), Some(code), "stderr:\n{stderr}\nstdout:\n{stdout}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        self
    }

    /// Checks that it was rejected as an invalid request, with this text and an empty stdout.
    #[track_caller]
    pub(crate) fn refused(&self, words: &str) {
        assert_eq!((self.code(), self.stdout.as_str()), (Some(2), ""), "{}", self.stderr);
        let is_said = self.stderr.starts_with("error: ") && self.stderr.contains(words);
        assert!(is_said, "stderr lacks `{words}`:\n{}", self.stderr);
    }

    /// Checks that stderr contains all of these in order, ignoring line breaks.
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = flat(&self.stderr);
        let mut rest = said.as_str();
        for text in texts {
            let at = rest.find(&flat(text));
            let at = at.unwrap_or_else(|| panic!("stderr lacks `{text}`, or contains it too early:\n{}", self.stderr));
            rest = &rest[at + flat(text).len()..];
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

    /// The archive, read back.
    pub(crate) fn archived(&self) -> Archive {
        loadline::archive::read(&self.archive).unwrap()
    }

    /// A file in the only trial's directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let archived = self.archived();
        self.archive.join(archived.trials[0].folder.as_ref().unwrap()).join(name)
    }

    /// The archived output of the subject.
    pub(crate) fn subject_log(&self) -> String {
        read(&self.file("subject.log"))
    }

    /// The timeline.
    pub(crate) fn timeline(&self) -> Vec<Sample> {
        read(&self.file("timeline.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A mark that must exist.
pub(crate) fn mark<'a>(trial: &'a Trial, name: &str) -> &'a Mark {
    trial.mark(name).unwrap_or_else(|| panic!("no mark {name}: {:?}", mark_names(trial)))
}

pub(crate) fn mark_names(trial: &Trial) -> Vec<&str> {
    trial.marks.iter().map(|mark| mark.name.as_str()).collect()
}

/// A phase that must exist; its counts must add up.
pub(crate) fn phase<'a>(trial: &'a Trial, name: &str) -> &'a PhaseRecord {
    let phase = trial.phases.iter().find(|phase| phase.name == name);
    let phase = phase.unwrap_or_else(|| panic!("no phase {name}: {:?}", trial.phases));
    assert_eq!(phase.requests, phase.ok + phase.failed.total(), "{phase:?}");
    phase
}

/// Whether there is a doubt of this kind.
pub(crate) fn doubts(trial: &Trial, kind: impl Fn(&Doubt) -> bool) -> bool {
    trial.doubts.iter().any(|doubt| kind(&doubt.doubt))
}

/// A share of the machine, returned on drop.
#[derive(Debug)]
pub(crate) struct Permit(usize);

/// Shares in use, and calls waiting for the whole machine. The latter take precedence, because otherwise they would
/// wait for the last test.
static SHARES: Mutex<(usize, usize)> = Mutex::new((0, 0));
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// This test's shares. A test with shares never waits for more, because two of these would deadlock.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

impl Permit {
    /// Takes one JVM's share.
    pub(crate) fn one() -> Self {
        Self::take(1)
    }

    fn take(count: usize) -> Self {
        let owns = OWN.replace(OWN.get() + count) > 0;
        let mut shares = SHARES.lock().unwrap_or_else(PoisonError::into_inner);
        if owns {
            shares.0 += count;
            return Self(count);
        }
        let whole = usize::from(count == AT_ONCE);
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
        OWN.set(OWN.get().saturating_sub(self.0));
        SHARES.lock().unwrap_or_else(PoisonError::into_inner).0 -= self.0;
        CHANGED.notify_all();
    }
}
