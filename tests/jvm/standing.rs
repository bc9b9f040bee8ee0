//! A standalone JVM: the test starts it without Loadline, communicates line by line, and kills it by pid.

use crate::invocation::{Call, GONE_WITHIN, Permit, Ran, jdk};
use crate::ports::free_ports;
use crate::test_subjects::test_subjects;
use crate::waiting::{LONG, wait_for, wait_until};
use loadline::clock::Clock;
use loadline::kernel::process::Stat;
use loadline::observe::procfs;
use loadline::observe::smaps::{self, Smaps};
use loadline::record::{AccountDocument, AccountRecord};
use loadline::subject::processes;
use loadline_test_support::skip;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// A user's options and settings that would change the JVM's memory.
const FOREIGN: [&str; 5] =
    ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"];

/// A JVM to start.
#[derive(Debug)]
pub(crate) struct LaunchPlan {
    release: u32,
    options: String,
    env: Vec<(String, String)>,
    before: Vec<String>,
    /// Replaces the release's own `java`.
    java: Option<String>,
}

impl LaunchPlan {
    /// This release with these JVM options.
    pub(crate) fn on(release: u32, options: &str) -> Self {
        Self { release, options: options.to_owned(), env: Vec::new(), before: Vec::new(), java: None }
    }

    /// Adds an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts it as a child of another program, which ends with it.
    pub(crate) fn below(mut self, before: &[&str]) -> Self {
        self.before = before.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Uses another `java`; the release then applies only to the tools.
    pub(crate) fn java(mut self, program: &str) -> Self {
        self.java = Some(program.to_owned());
        self
    }

    /// Starts the subject. In its arguments, `{port}` is a free port and `{folder}` a directory that lasts as long as
    /// the subject.
    pub(crate) fn start(self, subject: &str, arguments: &str) -> Standing {
        let class = format!("loadline.subjects.{subject}");
        self.start_with(&["-cp", test_subjects(), &class], arguments)
    }

    /// Like `start`, with a source file that its JDK compiles.
    pub(crate) fn start_source(self, class_path: &str, source: &Path, arguments: &str) -> Standing {
        self.start_with(&["-cp", class_path, &source.display().to_string()], arguments)
    }

    /// Starts a server and waits until it responds.
    #[track_caller]
    pub(crate) fn serving(self, subject: &str) -> Standing {
        let server = self.start(subject, "{port}");
        server.answers();
        server
    }

    /// Starts a subject that does one piece of work, and lets it do that; returns its figures afterward.
    #[track_caller]
    pub(crate) fn worked(self, subject: &str) -> (Standing, Figures) {
        let mut standing = self.start(subject, "");
        let _ = standing.says("BEFORE");
        standing.go_on();
        let figures = standing.says("AFTER");
        (standing, figures)
    }

    fn start_with(self, what: &[&str], arguments: &str) -> Standing {
        let permit = Permit::one();
        let (folder, jdk) = (tempfile::tempdir().unwrap(), jdk(self.release).unwrap());
        let [port] = free_ports();
        let java = self.java.unwrap_or_else(|| jdk.java.display().to_string());
        let mut words: Vec<String> = self.before.clone();
        words.push(java);
        words.extend(self.options.split_whitespace().map(str::to_owned));
        words.extend(what.iter().map(|word| (*word).to_owned()));
        let arguments = arguments.replace("{port}", &port.to_string());
        let arguments = arguments.replace("{folder}", &folder.path().display().to_string());
        words.extend(arguments.split_whitespace().map(str::to_owned));

        let mut command = Command::new(&words[0]);
        for name in FOREIGN {
            command.env_remove(name);
        }
        command.args(&words[1..]).envs(self.env).stdin(Stdio::piped()).stdout(Stdio::piped());
        let stderr = File::create(folder.path().join("stderr")).unwrap();
        let mut child = command.stderr(stderr).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let pid = child.id();
        Standing { child, lines, folder, home: jdk.home, pid, port, _permit: permit }
    }
}

/// A running subject; killed on drop.
#[derive(Debug)]
pub(crate) struct Standing {
    child: Child,
    lines: BufReader<ChildStdout>,
    folder: TempDir,
    home: PathBuf,
    pid: u32,
    port: u16,
    _permit: Permit,
}

impl Standing {
    /// The JVM's pid.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The port for `{port}`.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The figures in its next line, which must begin with this word.
    pub(crate) fn says(&mut self, word: &str) -> Figures {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let figures = line.strip_prefix(word).unwrap_or_else(|| {
            let stderr = std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
            panic!("the subject printed `{}`, not `{word} …`:\n{stderr}", line.trim_end())
        });
        let pairs = figures.split_whitespace().filter_map(|pair| pair.split_once('='));
        Figures(pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect())
    }

    /// Its stderr so far.
    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    /// Sends the line that it waits for.
    pub(crate) fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Waits until it responds to a request, because a server does not announce readiness.
    #[track_caller]
    pub(crate) fn answers(&self) {
        let ask = || -> std::io::Result<String> {
            let mut peer = TcpStream::connect(("127.0.0.1", self.port))?;
            peer.set_read_timeout(Some(LONG))?;
            peer.write_all(b"GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            peer.read_to_string(&mut answer)?;
            Ok(answer)
        };
        wait_for("the server responds", LONG, || match ask() {
            Ok(answer) if answer.starts_with("HTTP/1.1 20") => Ok(()),
            other => Err(other),
        });
    }

    /// Refers to the child of the started process.
    pub(crate) fn in_child(mut self) -> Self {
        let parent = self.child.id();
        let java = || processes::descendants(parent).into_iter().find(|process| process.name == "java");
        self.pid = wait_for("a JVM runs as its descendant", LONG, || java().ok_or(parent)).pid;
        self
    }

    /// Asserts that it is running and not stopped; a Loadline has a moment to resume it.
    #[track_caller]
    pub(crate) fn runs_on(&self) {
        let state = || Stat::of(self.pid).map(|stat| stat.state);
        let runs = |state: &char| "SRD".contains(*state);
        wait_for("the JVM keeps running", GONE_WITHIN, || state().filter(runs).ok_or_else(state));
    }

    /// `loadline account` on it.
    pub(crate) fn account_call(&self, options: &str) -> Call {
        Call::verb(&format!("account {} {options}", self.pid)).beside()
    }

    /// Its complete account; the JVM must keep running. Other tests may measure every JVM of the machine; if one of
    /// them holds this JVM for too long, the account is retried.
    pub(crate) fn document(&self, options: &str) -> AccountDocument {
        wait_for("no other Loadline holds it", LONG, || {
            let ran = self.account_call(&format!("--json {options}")).run().expect(0);
            self.runs_on();
            let document = account_of(&ran);
            match document.doubts.iter().find(|of| of.text.contains("another Loadline")) {
                Some(held) => Err(held.text.clone()),
                None => Ok(document),
            }
        })
    }

    /// Its account record.
    pub(crate) fn account(&self) -> AccountRecord {
        self.document("").mark.account.unwrap()
    }

    /// Its RSS according to the kernel.
    pub(crate) fn rss_bytes(&self) -> u64 {
        smaps::read_rollup(&self.proc(), &Clock::start()).unwrap().value.rss.0
    }

    /// Waits until RSS no longer changes: a JVM that has just started still gives memory back.
    pub(crate) fn wait_until_steady(&self) {
        const READINGS: u32 = 10;
        let (mut last, mut steady) = (0, 0);
        wait_until("RSS no longer changes", LONG, || {
            let now = self.rss_bytes();
            steady = if now.abs_diff(last) <= 64 << 10 { steady + 1 } else { 0 };
            last = now;
            steady >= READINGS
        });
    }

    /// Every mapping with its memory.
    pub(crate) fn smaps(&self) -> Smaps {
        smaps::read(&self.proc(), &Clock::start()).unwrap().value
    }

    fn proc(&self) -> procfs::Process {
        procfs::Process::open(self.pid).unwrap()
    }

    /// A command of the JDK's `jcmd`; `None` if not available.
    pub(crate) fn jcmd(&self, command: &str) -> Option<String> {
        let jcmd = self.home.join("bin/jcmd");
        if !jcmd.is_file() {
            skip("LOADLINE_TOOLS", "a JDK has no jcmd");
            return None;
        }
        let said = Command::new(jcmd).args([&self.pid.to_string(), command]).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{text}");
        Some(text)
    }

    pub(crate) fn kill(&mut self) {
        // Killing an ended process fails, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The document printed by a call.
pub(crate) fn account_of(ran: &Ran) -> AccountDocument {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|cause| panic!("{cause}: {}", ran.stdout))
}

/// Figures that a subject reports.
#[derive(Debug)]
pub(crate) struct Figures(HashMap<String, u64>);

impl Figures {
    /// A figure that must exist.
    pub(crate) fn of(&self, name: &str) -> u64 {
        *self.0.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }
}
