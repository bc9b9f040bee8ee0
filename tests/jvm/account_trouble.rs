//! `loadline account` under adverse conditions: wrong pids, subjects that end, grow, or hide, a Loadline that dies.

use crate::account::{assert_closes, assert_whole};
use crate::invocation::{Call, Ran, newest, releases};
use crate::standing::{LaunchPlan, Standing, account_of};
use crate::waiting::{LONG, wait_until};
use loadline::doubt::Doubt;
use loadline::record::AccountRecord;
use loadline_test_support::{KilledOnDrop, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const SMALL: &str = "-Xmx64m -XX:+UseSerialGC";
/// More than Linux ever assigns (PID_MAX_LIMIT is 4,194,304).
const NEVER_GIVEN: u32 = 999_999_999;

fn server(release: u32, options: &str) -> Standing {
    LaunchPlan::on(release, options).serving("DemoServer")
}

/// A process that is not a JVM.
fn other(words: &[&str]) -> KilledOnDrop {
    KilledOnDrop(Command::new(words[0]).args(&words[1..]).stdin(Stdio::piped()).spawn().unwrap())
}

fn account(pid: u32) -> Ran {
    Call::verb(&format!("account {pid}")).beside().run()
}

/// A user without privileges or files, who cannot read root's data.
pub(crate) const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// A directory in which every user can run the binary, because build directories are private to their user.
pub(crate) fn for_anybody() -> TempDir {
    let readable = std::fs::Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(readable).tempdir().unwrap();
    let _ = std::fs::copy(env!("CARGO_BIN_EXE_loadline"), folder.path().join("loadline")).unwrap();
    folder
}

/// Whether root can do this here; reports a skip if not.
pub(crate) fn root_can(words: &[&str]) -> bool {
    let tried = Command::new(words[0]).args(&words[1..]).arg("true").stderr(Stdio::null()).status();
    let can = rustix::process::geteuid().is_root() && tried.is_ok_and(|status| status.success());
    if !can {
        skip("LOADLINE_MACHINE", &format!("`{}` does not work here, or needs root", words.join(" ")));
    }
    can
}

#[test]
fn an_unused_pid_is_rejected() {
    account(NEVER_GIVEN).refused(&format!("there is no process with pid {NEVER_GIVEN}"));
    let mut gone = other(&["true"]);
    let pid = gone.0.id();
    let _ = gone.0.wait().unwrap();
    account(pid).refused(&format!("there is no process with pid {pid}"));
    for word in ["0", "-1", "x", "1.5", "99999999999999999999"] {
        let ran = Call::verb("account").with_argument(Path::new(word)).beside().run();
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(2), ""), "{word}: {}", ran.stderr);
    }
    assert_eq!(Call::verb("account").beside().run().code(), Some(2));
}

#[test]
fn a_process_that_is_not_a_jvm_is_rejected() {
    let sleeps = other(&["sleep", "600"]);
    let pid = sleeps.0.id();
    account(pid).refused(&format!("the process with pid {pid} (sleep) is not a HotSpot JVM"));
    // The shell passes its own pid.
    let shell = format!("'{}' account $$; exit $?", env!("CARGO_BIN_EXE_loadline"));
    let asked = Command::new("sh").args(["-c", &shell]).output().unwrap();
    let said = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.status.code(), Some(2), "{said}");
    assert!(said.contains("(sh) is not a HotSpot JVM"), "{said}");
}

#[test]
fn a_zombie_is_rejected() {
    // A zombie.
    let ended = other(&["true"]);
    let pid = ended.0.id();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    wait_until("it is a zombie", LONG, || stat().contains(") Z "));
    account(pid).refused("has exited but has not been reaped (zombie)");
}

#[test]
fn another_users_jvm_is_rejected() {
    if !root_can(&NOBODY) {
        return;
    }
    for release in newest() {
        let subject = server(release, SMALL);
        let folder = for_anybody();
        let mut command = Command::new(NOBODY[0]);
        let command = command
            .args(&NOBODY[1..])
            .arg(folder.path().join("loadline"))
            .args(["account", &subject.pid().to_string()]);
        let asked = command.current_dir("/").output().unwrap();
        let said = String::from_utf8_lossy(&asked.stderr);
        assert_eq!(asked.status.code(), Some(4), "{said}");
        assert!(said.contains("belongs to another user") && !said.contains("panicked"), "{said}");
        subject.runs_on();
        subject.answers();
    }
}

#[test]
fn a_jvm_in_its_own_pid_namespace_has_an_account() {
    let apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    if !root_can(&apart) {
        return;
    }
    for release in releases() {
        let subject = LaunchPlan::on(release, SMALL).below(&apart).serving("DemoServer").in_child();
        let document = subject.document("");
        assert_eq!(document.jvm.pid, subject.pid());
        let account = document.mark.account.unwrap();
        assert_closes(&account, 5);
        // The JVM's thread IDs differ from those in this namespace.
        let threads = account.threads.unwrap();
        let accepts = threads.iter().filter(|one| one.name == "HTTP-Dispatcher" && one.allocated_bytes > Some(0));
        assert_eq!(accepts.count(), 1, "JDK {release}: {threads:?}");
        subject.answers();
    }
}

#[test]
fn a_shell_that_becomes_a_jvm_has_an_account() {
    for release in newest() {
        let script = ["sh", "-c", "read line; exec \"$@\"", "sh"];
        let mut subject = LaunchPlan::on(release, SMALL).below(&script).start("DemoServer", "{port}");
        let pid = subject.pid();
        account(pid).refused(&format!("the process with pid {pid} (sh) is not a HotSpot JVM"));
        subject.go_on();
        subject.answers();
        let document = subject.document("");
        assert_eq!(document.jvm.pid, pid);
        assert_closes(&document.mark.account.unwrap(), 5);
        // During exec, the process is briefly neither shell nor JVM; no query may hang.
        let mut subject = LaunchPlan::on(release, SMALL).below(&script).start("DemoServer", "{port}");
        subject.go_on();
        for _ in 0..5 {
            let ran = subject.account_call("--json").run();
            println!("{:?} {}", ran.code(), ran.stderr.lines().next().unwrap_or_default());
            match ran.code() {
                // A JVM that is still starting cannot report all spaces, so only the sum is guaranteed.
                Some(0) => assert_closes(account_of(&ran).mark.account.as_ref().unwrap(), 1000),
                _ => ran.refused("is not a HotSpot JVM"),
            }
        }
        subject.answers();
    }
}

#[test]
fn a_jvm_without_attach_is_measured_without_disturbing_it() {
    for release in releases() {
        let subject = server(release, &format!("{SMALL} -XX:+DisableAttachMechanism"));
        let document = subject.document("");
        // Its tables contain the location of its spaces.
        assert_closes(document.mark.account.as_ref().unwrap(), 5);
        assert_whole(&document);
        // If attaching is requested, a doubt reports that it failed; without it, only the sum is guaranteed.
        let asked = subject.document("--attach");
        assert_closes(&asked.mark.account.unwrap(), 1000);
        assert!(
            asked.doubts.iter().any(|doubt| matches!(doubt.doubt, Doubt::AttachMissing { .. })),
            "{:?}",
            asked.doubts
        );
        subject.answers();
    }
}

#[test]
fn a_subject_that_changes_during_measurement_has_an_account() {
    for release in releases() {
        let mut subject = LaunchPlan::on(release, "-Xmx128m").start("NeverStill", "");
        let _ = subject.says("READY");
        for stop in ["", "--no-stop"] {
            let accounts = [(); 3].map(|()| subject.document(stop).mark.account.unwrap());
            for account in &accounts {
                // Without a stop, readings are not simultaneous: new memory has an owner or is unexplained.
                assert_closes(account, if stop.is_empty() { 10 } else { 1000 });
                assert_eq!(account.pause_ms.is_some(), stop.is_empty(), "{:?}", account.pause_ms);
            }
            // The machine determines the delay between readings: the smallest share is the cost of reading.
            let share = |account: &AccountRecord| account.unexplained_bytes * 1000 / account.total_bytes;
            let least = accounts.iter().map(share).min();
            assert!(least <= Some(50), "at best, {least:?} of 1000 was unexplained");
        }
    }
}

#[test]
fn an_idle_subject_has_an_account_without_a_stop() {
    for release in newest() {
        let subject = server(release, SMALL);
        let account = subject.document("--no-stop").mark.account.unwrap();
        assert_closes(&account, 5);
        assert_eq!(account.pause_ms, None);
    }
}

/// Something must happen in the few milliseconds for which an account pauses its subject, so this takes several
/// attempts.
const ATTEMPTS: usize = 20;

#[test]
fn a_subject_that_ends_during_measurement_is_reported() {
    for release in newest() {
        let failed = (0..ATTEMPTS).any(|_| {
            let mut subject = server(release, SMALL);
            let mut started = subject.account_call("--json --attach").start();
            started.until_it_holds(subject.pid());
            subject.kill();
            let ran = started.wait();
            assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            match ran.code() {
                // It had already finished.
                Some(0) => assert_closes(account_of(&ran).mark.account.as_ref().unwrap(), 1000),
                // It was gone or exiting when it was examined: an exiting process frees its memory, including the
                // evidence of a JVM, before it counts as dead.
                Some(2) => {
                    let (pid, ways) =
                        (subject.pid(), ["there is no process", "(zombie)", "(java) is not a HotSpot JVM"]);
                    assert!(ways.iter().any(|way| ran.stderr.contains(way)), "{}", ran.stderr);
                    ran.refused(&format!("with pid {pid}"));
                }
                // It failed later.
                _ => {
                    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(3), ""), "{}", ran.stderr);
                    let pid = format!("pid {}", subject.pid());
                    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(&pid), "{}", ran.stderr);
                }
            }
            ran.code() == Some(3)
        });
        assert!(failed, "none of {ATTEMPTS} accounts failed because its subject ended");
    }
}

#[test]
fn killing_loadline_during_an_account_leaves_the_subject_running() {
    for release in newest() {
        let subject = server(release, SMALL);
        for signal in [Signal::KILL, Signal::INT] {
            let met = (0..ATTEMPTS).any(|_| {
                let mut started = subject.account_call("").start();
                let held = started.until_it_holds(subject.pid());
                if held {
                    kill_process(Pid::from_raw(started.pid() as i32).unwrap(), signal).unwrap();
                }
                let ran = started.wait();
                subject.runs_on();
                assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
                // If it finished before the signal, it printed its account.
                held && ran.code() != Some(0)
            });
            assert!(met, "none of {ATTEMPTS} accounts was ended by {signal:?} while it held its subject");
        }
        subject.answers();
        assert_closes(&subject.account(), 5);
    }
}

#[test]
fn concurrent_accounts_do_not_disturb_each_other() {
    for release in newest() {
        let subject = server(release, SMALL);
        let started: Vec<_> = (0..3).map(|_| subject.account_call("--json").start()).collect();
        for each in started {
            let document = account_of(&each.wait().expect(0));
            assert_closes(document.mark.account.as_ref().unwrap(), 5);
            assert_whole(&document);
        }
        subject.runs_on();
        subject.answers();
    }
}

/// Attempts to stop a subject while no thread is inside malloc.
const MOMENTS: usize = 5;

#[test]
fn a_stopped_subject_stays_stopped_after_an_account() {
    for release in newest() {
        let subject = server(release, SMALL);
        let signal = |name: &str| Command::new("kill").args([name, &subject.pid().to_string()]).status().unwrap();
        // Its tables are read anyway, and nothing is missing. If a thread was stopped inside malloc, one heap cannot be
        // walked, and another attempt is needed.
        let mut lacking = Vec::new();
        for _ in 0..MOMENTS {
            assert!(signal("-STOP").success());
            let outside = account_of(&subject.account_call("--json").run().expect(0));
            assert_closes(outside.mark.account.as_ref().unwrap(), 1000);
            lacking = outside.doubts;
            if !lacking.iter().any(|of| matches!(of.doubt, Doubt::MallocUnsplit { .. })) {
                break;
            }
            assert!(signal("-CONT").success());
            subject.answers();
        }
        assert!(lacking.is_empty(), "{lacking:?}");
        let started = subject.account_call("--json --attach").start();
        // The account lacks the JVM's replies: whoever stopped the JVM decides when it continues.
        let ran = started.wait().expect(0);
        let document = account_of(&ran);
        assert_closes(document.mark.account.as_ref().unwrap(), 1000);
        assert!(document.doubts.iter().any(|doubt| doubt.text.contains("stopped")), "{:?}", document.doubts);
        let state = loadline::kernel::process::Stat::of(subject.pid()).unwrap().state;
        assert_eq!(state, 'T', "{}", ran.stderr);
        assert!(signal("-CONT").success());
        subject.answers();
    }
}
