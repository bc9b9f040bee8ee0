//! Attaches to real JVMs: `java` from PATH, and those in the usual directory of Linux distributions. Skipped with a
//! message if there is no `java`.

use super::*;
use crate::observe::hsperfdata::HsPerf;
use loadline_test_support::skip;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;

/// Prints a line, then waits until it is killed.
const WAITER: &str = "public class Waiter { public static void main(String[] a) throws Exception {\
                      System.out.println(\"READY\"); System.out.flush(); Thread.sleep(60_000); } }";

struct Jvm {
    child: Child,
    folder: tempfile::TempDir,
}

impl Jvm {
    /// Starts the program and waits until it runs.
    fn start(java: &Path, options: &[&str], uid: Option<u32>) -> Self {
        let (jvm, clock) = (Self::spawn(java, options, uid), Clock::start());
        while !jvm.log().contains("READY") {
            assert!(clock.now() < Duration::from_secs(60), "no READY: {}", jvm.log());
            sleep(10 * POLL);
        }
        jvm
    }

    #[expect(clippy::disallowed_methods, reason = "`observe` may not use `subject`, and needs a JVM to observe")]
    fn spawn(java: &Path, options: &[&str], uid: Option<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("Waiter.java"), WAITER).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(java);
        command.args(options).arg("Waiter.java").current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        if let Some(uid) = uid {
            command.uid(uid).gid(uid);
        }
        Self { child: command.spawn().unwrap(), folder }
    }

    fn process(&self) -> Process {
        Process::open(self.child.id()).unwrap()
    }

    /// Attaches, which must succeed.
    fn attach(&self) -> Attach {
        Attach::connect(&self.process(), &Clock::start()).unwrap().value
    }

    fn refusal(&self) -> String {
        Attach::connect(&self.process(), &Clock::start()).unwrap_err().why
    }

    /// Checks that the JVM did not take a signal as a request for a thread dump.
    #[track_caller]
    fn assert_silent(&self) {
        assert!(!self.log().contains("Full thread dump"), "{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every `java` on this machine: on PATH, and where distributions install JDKs.
fn javas() -> Vec<PathBuf> {
    let on_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut folders = on_path.unwrap_or_default();
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    folders.extend(installed.map(|home| home.path().join("bin")));
    let mut found: Vec<_> = folders.iter().filter_map(|folder| folder.join("java").canonicalize().ok()).collect();
    found.sort();
    found.dedup();
    if found.is_empty() {
        skip("LOADLINE_JDKS", "there is no `java`");
    }
    found
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn answers(attach: &Attach) -> bool {
    attach.jcmd("VM.version").is_ok()
}

/// Neither the trigger file nor a stray socket may remain.
fn assert_clean(process: &Process) {
    assert!(!process.path(&format!("root/tmp/.attach_pid{}", process.pid())).exists());
    assert!(!process.path(&format!("cwd/.attach_pid{}", process.pid())).exists());
}

#[test]
fn a_jvm_replies_to_commands() {
    let clock = Clock::start();
    for java in javas() {
        let jvm = Jvm::start(&java, &["-Xmx32m", "-XX:+UseSerialGC"], None);
        let process = jvm.process();
        let Reading { value: attach, cost_ns, .. } = Attach::connect(&process, &clock).unwrap();
        eprintln!("{}: handshake {} us", java.display(), cost_ns / 1000);
        let version = attach.jcmd("VM.version").unwrap();
        assert!(version.value.contains("version"), "{}", version.value);
        let version = super::super::vm_version::VmVersion::parse(&version.value).unwrap();
        assert!(version.feature >= 11);
        let why = attach.jcmd("No.such_command").unwrap_err().why;
        assert!(why.contains("Unknown diagnostic command"), "{why}");
        // The second time, the socket exists and no signal is needed.
        jvm.attach();
        assert_clean(&process);
        jvm.assert_silent();
    }
}

#[test]
fn a_removed_socket_is_requested_again() {
    let Some(java) = javas().pop() else { return };
    let jvm = Jvm::start(&java, &["-Xmx32m"], None);
    for stale in [false, true] {
        let attach = jvm.attach();
        assert!(answers(&attach));
        attach.remove_socket().unwrap();
        if stale {
            let path = jvm.process().path(&format!("root/tmp/{}", attach.socket_name));
            drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        }
    }
    assert!(answers(&jvm.attach()));
    jvm.assert_silent();
}

/// Checks that attaching is refused without SIGQUIT: no thread dump, still alive, and a reason that names the option.
fn refused(options: &[&str], expect: &str) {
    for java in javas() {
        let jvm = Jvm::start(&java, options, None);
        let (process, why) = (jvm.process(), jvm.refusal());
        assert!(why.contains(expect), "{options:?}: {why}");
        sleep(200 * POLL);
        assert!(process.is_alive());
        jvm.assert_silent();
        assert_clean(&process);
    }
}

#[test]
fn attaching_is_refused_if_an_option_disables_it() {
    refused(&["-XX:+DisableAttachMechanism"], "DisableAttachMechanism");
    refused(&["-XX:+DisableAttachMechanism", "-XX:-UsePerfData"], "DisableAttachMechanism");
}

/// With `-Xrs`, SIGQUIT would kill the JVM, which listens from its start instead.
#[test]
fn a_jvm_that_sigquit_would_kill_gets_no_signal() {
    for options in [&["-Xrs"][..], &["-Xrs", "-XX:-UsePerfData"]] {
        for java in javas() {
            let jvm = Jvm::start(&java, options, None);
            let (process, attach) = (jvm.process(), jvm.attach());
            assert!(answers(&attach));
            attach.remove_socket().unwrap();
            let why = jvm.refusal();
            assert!(why.contains("-Xrs"), "{why}");
            sleep(200 * POLL);
            assert!(process.is_alive());
            assert_clean(&process);
        }
    }
}

#[test]
fn attaching_is_refused_if_an_options_file_disables_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("options");
    fs::write(&file, "-XX:+DisableAttachMechanism\n-XX:-UsePerfData\n").unwrap();
    refused(&[&format!("@{}", file.display())], "DisableAttachMechanism");
    refused(&[&format!("-XX:VMOptionsFile={}", file.display())], "DisableAttachMechanism");
}

#[test]
fn attaching_works_without_hsperfdata() {
    let Some(java) = javas().pop() else { return };
    let jvm = Jvm::start(&java, &["-XX:-UsePerfData"], None);
    let why = HsPerf::open(&jvm.process(), &Clock::start()).unwrap_err().why;
    assert!(why.contains("-XX:-UsePerfData"), "{why}");
    assert!(answers(&jvm.attach()));
}

#[test]
fn root_attaches_to_another_users_jvm() {
    let clock = Clock::start();
    let Some(java) = javas().pop().filter(|_| is_root()) else {
        return skip("LOADLINE_MACHINE", "root and `java` are needed");
    };
    let jvm = Jvm::start(&java, &["-Xmx32m"], Some(65534));
    let process = jvm.process();
    assert_eq!(process.status(&clock).unwrap().value.euid, 65534);
    assert!(HsPerf::open(&process, &clock).unwrap().sample(&clock).unwrap().value.threads > 0);
    assert!(answers(&jvm.attach()));
    assert_clean(&process);
}

/// A pending signal would be taken as a request for a thread dump later.
#[test]
fn a_stopped_jvm_gets_no_signal() {
    use rustix::process::{Pid, Signal, kill_process};
    let clock = Clock::start();
    let Some(java) = javas().pop() else { return };
    let jvm = Jvm::start(&java, &["-XX:+PerfDisableSharedMem"], None);
    let process = jvm.process();
    let pid = Pid::from_raw(process.pid() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let bound = clock.now() + HANDSHAKE_WITHIN;
    while process.stat(&clock).unwrap().value.state != 'T' {
        assert!(clock.now() < bound);
        sleep(POLL);
    }
    let why = jvm.refusal();
    kill_process(pid, Signal::CONT).unwrap();
    assert!(why.contains("stopped"), "{why}");
    assert!(answers(&jvm.attach()));
    jvm.assert_silent();
}

#[test]
fn a_process_that_is_not_a_jvm_gets_no_signal() {
    let process = Process::open(std::process::id()).unwrap();
    let why = Attach::connect(&process, &Clock::start()).unwrap_err().why;
    assert!(why.contains("not a HotSpot JVM"), "{why}");
}

/// A JVM responds even if Loadline attaches during its startup, and is never killed.
#[test]
fn attaching_waits_for_a_starting_jvm() {
    let Some(java) = javas().pop() else { return };
    for delay_ms in [0, 5, 20, 60] {
        let jvm = Jvm::spawn(&java, &[], None);
        sleep(Duration::from_millis(delay_ms));
        assert!(answers(&jvm.attach()) && jvm.process().is_alive());
        jvm.assert_silent();
    }
}

/// How many times this JVM has left a safepoint for this operation, according to its log.
fn safepoints(jvm: &Jvm, operation: &str) -> usize {
    let log = fs::read_to_string(jvm.folder.path().join("safepoints")).unwrap();
    log.lines().filter(|line| line.contains(&format!("Safepoint \"{operation}\""))).count()
}

/// Replies computed in a safepoint: the one that a mark requests, and a larger one. JDK 25 would write them word by
/// word from the safepoint, and block while the socket is full.
#[test]
fn a_stalled_reader_does_not_hold_a_safepoint() {
    let clock = Clock::start();
    for java in javas() {
        let jvm = Jvm::start(&java, &["-Xmx64m", "-XX:+UseSerialGC", "-Xlog:safepoint:file=safepoints"], None);
        let mut attach = jvm.attach();
        let version = attach.jcmd("VM.version").unwrap().value;
        let release = super::super::vm_version::VmVersion::parse(&version).unwrap().feature;
        if release < 17 {
            eprintln!("skipped for JDK {release}, whose log has a different format");
            continue;
        }
        assert_eq!(attach.streams, release >= 25, "JDK {release}");
        let read = |mut stream: UnixStream| {
            let deadline = Deadline { end: clock.now() + REPLY_WITHIN, within: REPLY_WITHIN, clock };
            attach_reply::drain(&mut stream, deadline).unwrap()
        };
        for (command, operation) in
            [("VM.metaspace vslist", "PrintMetadata"), ("GC.class_histogram -all", "GC_HeapInspection")]
        {
            let before = safepoints(&jvm, operation);
            let stream = attach.send("jcmd", [command, "", ""], HANDSHAKE_WITHIN).unwrap();
            // Nothing is read before the JVM has left the safepoint.
            let bound = clock.now() + REPLY_WITHIN;
            while safepoints(&jvm, operation) == before {
                assert!(clock.now() < bound, "JDK {release}: `{command}` waits for its reader in a safepoint");
                sleep(POLL);
            }
            let reply = read(stream);
            eprintln!("JDK {release}: `{command}`, {} bytes", reply.len());
            assert!(reply.starts_with(b"0\n") && reply.len() > 10_000, "{}", String::from_utf8_lossy(&reply));
        }
        // If queried as by older clients, without `streaming=0`, the JVM does wait for its reader in the safepoint.
        if std::mem::take(&mut attach.streams) {
            let before = safepoints(&jvm, "PrintMetadata");
            let stream = attach.send("jcmd", ["VM.metaspace vslist", "", ""], HANDSHAKE_WITHIN).unwrap();
            sleep(300 * POLL);
            assert_eq!(safepoints(&jvm, "PrintMetadata"), before, "JDK {release} no longer streams");
            assert!(read(stream).len() > 10_000);
        }
    }
}

/// A client that abandons a reply leaves the JVM unharmed: it still listens, and no later request waits for the rest.
#[test]
fn a_jvm_replies_after_an_aborted_connection() {
    for java in javas() {
        let jvm = Jvm::start(&java, &["-Xmx64m"], None);
        let mut attach = jvm.attach();
        for streams in [attach.streams, false] {
            attach.streams = streams;
            drop(attach.send("jcmd", ["Thread.print", "", ""], HANDSHAKE_WITHIN).unwrap());
            assert!(answers(&attach));
        }
        assert!(jvm.process().is_alive());
        jvm.assert_silent();
    }
}

/// `libjdwp` comes with each JDK and has no `Agent_OnAttach`; a file that is not a library has none either.
#[test]
fn a_failed_library_load_has_the_jvms_message() {
    for java in javas() {
        let jvm = Jvm::start(&java, &["-Xmx32m"], None);
        let attach = jvm.attach();
        let load = |path: &str| attach.load_library(path, "start", REPLY_WITHIN).unwrap_err().why;
        let nothing = jvm.folder.path().join("nothing.so");
        fs::write(&nothing, "no library").unwrap();
        for path in [nothing.to_str().unwrap(), "/nowhere/libnone.so"] {
            let why = load(path);
            assert!(why.starts_with(&format!("the JVM did not load {path}: ")), "{why}");
            assert!(why.contains("cannot open") || why.contains("file too short"), "{why}");
        }
        let jdwp = java.parent().unwrap().with_file_name("lib").join("libjdwp.so");
        if jdwp.exists() {
            let why = load(jdwp.to_str().unwrap());
            assert!(why.contains("Agent_OnAttach") || why.contains("code"), "{why}");
        }
        assert!(answers(&attach), "the JVM keeps running");
    }
}

/// JDK 21 and later can forbid agents; older versions do not know the option.
#[test]
fn disabled_dynamic_agents_are_reported() {
    for java in javas() {
        let options = ["-Xmx32m", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:-EnableDynamicAgentLoading"];
        let jvm = Jvm::start(&java, &options, None);
        let why = jvm.attach().load_library("/nowhere/libnone.so", "", REPLY_WITHIN).unwrap_err().why;
        assert!(why.contains("Dynamic agent loading is not enabled") || why.contains("cannot open"), "{why}");
    }
}
