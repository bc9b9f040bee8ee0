//! `loadline watch` on the command line: what it rejects, and what it does without JVMs.

use crate::called::loadline;
use crate::waiting::{LONG, wait_for, wait_until};
use loadline_test_support::{KilledOnDrop, answer, skip};
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::pipe;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Processes that map a file named `libjvm.so` as code but are not JVMs.
struct Crowd {
    all: Vec<KilledOnDrop>,
    folder: TempDir,
}

impl Crowd {
    /// `None`, after reporting a skip, if this program has no library to copy.
    fn of(number: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libjvm.so");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let Some(own) = maps.split_whitespace().find(|word| word.contains("/libgcc_s.so")) else {
            skip("LOADLINE_TOOLS", "this test has no libgcc_s.so to copy");
            return None;
        };
        std::fs::copy(own, &library).unwrap();
        let start = |_| KilledOnDrop(Command::new("sleep").arg("600").env("LD_PRELOAD", &library).spawn().unwrap());
        Some(Self { all: (0..number).map(start).collect(), folder })
    }

    /// A watch of all of them with this output, and the address of its metrics.
    fn watched(&self, options: &[&str], stdout: impl Into<Stdio>) -> (Child, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command.arg("watch").args(self.all.iter().map(|process| process.0.id().to_string()));
        command.args(["--account", "never", "--listen", "127.0.0.1:0", "--history"]);
        command.arg(self.folder.path().join("histories")).args(options).stdout(stdout).stderr(Stdio::piped());
        let mut watch = command.spawn().unwrap();
        // Its stderr stays open for later messages.
        let mut lines = BufReader::new(watch.stderr.as_mut().unwrap()).lines();
        let line = lines.find_map(|line| line.unwrap().split("metrics at ").nth(1).map(str::to_owned)).unwrap();
        (watch, line.split_whitespace().next().unwrap().to_owned())
    }
}

fn asked(address: &str, path: &str) -> String {
    answer(address, &format!("GET {path} HTTP/1.1"))
}

/// Whether a process's first thread is blocked writing to stdout.
pub(crate) fn writes(pid: &str) -> bool {
    let call = if cfg!(target_arch = "aarch64") { "64 0x1 " } else { "1 0x1 " };
    std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|now| now.starts_with(call))
}

/// The descriptors of a full pipe.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reads, writes) = pipe().unwrap();
    fcntl_setfl(&writes, OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writes, &[0; 4096]).is_ok() {}
    fcntl_setfl(&writes, OFlags::empty()).unwrap();
    (reads, writes)
}

#[test]
fn a_stuck_watch_still_responds_and_ends_on_request() {
    let Some(crowd) = Crowd::of(1) else { return };
    for ends_by in [Some(Signal::TERM), None] {
        // Its first turn reports the process found, into a full pipe that the test does not read.
        let (reads, writes_to) = full_pipe();
        let options: &[&str] = if ends_by.is_none() { &["--for", "3s"] } else { &[] };
        let (mut watch, address) = crowd.watched(options, writes_to);
        wait_until("its turn is blocked", LONG, || writes(&watch.id().to_string()));
        assert!(asked(&address, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"), "{ends_by:?}");
        if let Some(signal) = ends_by {
            kill_process(Pid::from_child(&watch), signal).unwrap();
        }
        wait_until("it ends", LONG, || watch.try_wait().unwrap().is_some());
        assert_eq!(watch.wait().unwrap().code(), Some(0), "{ends_by:?}");
        drop(reads);
    }
}

#[test]
fn apparent_jvms_are_watched_under_unique_names_with_a_health_check() {
    let Some(crowd) = Crowd::of(20) else { return };
    let (mut watch, address) = crowd.watched(&["--every", "100ms"], Stdio::null());
    let health = asked(&address, "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 OK\r\n") && health.contains("\r\n\r\nok: "), "{health}");
    let text = wait_for("all of them are watched", LONG, || {
        let is_all = |text: &String| text.matches("loadline_jvm_info{").count() == crowd.all.len();
        Some(asked(&address, "/metrics")).filter(is_all).ok_or("not yet")
    });
    assert!(text.contains("jvm=\"sleep\"") && text.contains("jvm=\"sleep#20\""), "{text}");
    for metric in ["turns_total", "finds_failed_total 0", "left_out_jvms 0", "set_aside_processes"] {
        assert!(text.contains(&format!("\nloadline_watch_{metric}")), "{metric}: {text}");
    }
    kill_process(Pid::from_child(&watch), Signal::TERM).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

#[test]
fn invalid_watch_options_are_explained_with_a_hint() {
    let check = |options: &[&str], says: &[&str]| loadline(&[&["watch"], options].concat()).refused(says);
    check(&[], &["--all", "--post-mortem"]);
    check(&["--all", "4711"], &["cannot be used with"]);
    check(&["nobody"], &["`nobody` is not a process ID"]);
    check(&["--all", "--account", "sometimes"], &["is not an account trigger", "at:75%"]);
    check(&["--all", "--account", "at:0%"], &["is not an account trigger"]);
    check(&["--all", "--listen", "9773"], &["is not an address", "127.0.0.1:9773"]);
    check(&["--all", "--every", "1ms"], &["every 1ms", "10ms"]);
    check(&["--all", "--keep", "1"], &["is too small for the history", "4.0 MiB"]);
    check(&["--all", "--attach", "twice"], &["twice", "never, once"]);
    check(&["--all", "--owners", "all"], &["`all` is not a number of owners", "top:5"]);
    check(&["--all", "--owners", "top:21"], &["top:20"]);
    check(&["--all", "--html", "page.html"], &["--post-mortem"]);
    check(&["--post-mortem", "1", "--for", "1s"], &["cannot be used with"]);
    check(&["--all", "--json"], &["--json", "--once"]);
    check(&["--all", "--web-config", "web.yaml"], &["--listen"]);
    check(&["--post-mortem", "/no/such/file"], &["cannot be read as a history", "or a process ID"]);
}

#[test]
fn a_watch_of_a_missing_process_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().display().to_string();
    // No process has a pid above Linux's maximum.
    for options in [&["--once"][..], &[]] {
        loadline(&[&["watch", "4194305", "--history", &history], options].concat()).refused(&["pid 4194305"]);
    }
    loadline(&["watch", "--post-mortem", "4194305", "--history", &history]).refused(&["no history of pid 4194305"]);
    let called = loadline(&["watch", "--all", "--history", "/proc/nowhere"]);
    assert!(called.code == 4 && called.stderr.contains("/proc/nowhere"), "{called}");
}

#[test]
fn a_web_config_is_accepted_or_rejected_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.yaml");
    let check = |text: &str, says: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let [file, history] = [&file, folder.path()].map(|path| path.display().to_string());
        let words = ["watch", "4194305", "--history", &history, "--listen", "127.0.0.1:0", "--web-config", &file];
        loadline(&words).refused(says);
    };
    check("basic_auth_users: {me: x}", &["basic_auth_users", "client_ca_file"]);
    check("rate_limit: {interval: 1s}", &["tls_server_config"]);
    check("tls_server_config: {cert_file: a.crt, key_file: a.key}", &["a.crt"]);
    check("tls_server_config: {cert_file: a.crt}", &["no `cert_file` or no `key_file`"]);
    let required = "client_auth_type: RequireAndVerifyClientCert";
    check(&format!("tls_server_config: {{cert_file: a, key_file: b, {required}}}"), &["client_ca_file"]);
    check("tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}", &["TLS10", "TLS12"]);
    check("nonsense: [", &["web.yaml"]);
    // A file without TLS is not an error, so the call continues to the nonexistent pid.
    check("{}", &["pid 4194305"]);
    check("# nothing yet\n", &["pid 4194305"]);
}
