//! Several accounts: of all JVMs on a machine, and changes since an earlier account.
//!
//! The machine is a separate pid namespace, because other tests' JVMs must not be touched.

use crate::account::assert_closes;
use crate::account_trouble::{NOBODY, for_anybody, root_can};
use crate::invocation::{newest, releases};
use crate::standing::{LaunchPlan, Standing};
use crate::truth::truth;
use loadline::doubt::{Comparing, Doubt};
use loadline::record::{AccountsDocument, ChangesDocument, UnreadCause};
use loadline::report;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

const SMALL: &str = "-Xmx64m -XX:+UseSerialGC";
const APART: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// A pid namespace with a JVM below a shell that exits with it; others can be started there. A JVM in a nested
/// namespace has pid 1, and all share one `/tmp`, so the first JVM must have a different pid.
struct Machine {
    first: Standing,
    /// A directory where every user can run the binary.
    folder: TempDir,
}

impl Machine {
    fn start(release: u32) -> Self {
        let below = APART.into_iter().chain(["sh", "-c", "\"$@\" & wait", "sh"]).collect::<Vec<_>>();
        let first = LaunchPlan::on(release, SMALL).below(&below).serving("DemoServer").in_child();
        Self { first, folder: for_anybody() }
    }

    /// The command prefix to run something in it.
    fn enter(&self) -> Vec<String> {
        let words = ["nsenter", "--target", &self.first.pid().to_string(), "--pid", "--mount", "--"];
        words.map(str::to_owned).to_vec()
    }

    /// Another JVM, in a nested namespace like a container's.
    fn contained(&self, release: u32) -> Standing {
        let words = self.enter();
        let words: Vec<&str> = words.iter().map(String::as_str).chain(APART).collect();
        LaunchPlan::on(release, SMALL).below(&words).start("DemoServer", "{port}").in_child()
    }

    fn loadline(&self, before: &[&str], options: &[&str]) -> Output {
        let words = self.enter();
        let binary: PathBuf = self.folder.path().join("loadline");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(before).arg(binary).arg("account").args(options).current_dir("/");
        command.output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn can_be_apart() -> bool {
    root_can(&APART)
}

#[test]
fn all_jvms_of_a_machine_are_found_and_shared_pages_count_once() {
    if !can_be_apart() {
        return;
    }
    for release in releases() {
        let machine = Machine::start(release);
        let second = machine.contained(release);
        second.answers();
        let called = machine.loadline(&[], &["--all", "--json", "--sort", "pid", "--quiet"]);
        assert_eq!(called.status.code(), Some(0), "{}", text(&called.stderr));
        let document: AccountsDocument = serde_json::from_slice(&called.stdout).unwrap();
        assert_eq!((document.accounts.len(), document.unread.len(), document.hidden), (2, 0, 0), "{document:?}");
        for of in &document.accounts {
            assert_closes(of.mark.account.as_ref().unwrap(), 5);
            let identity = of.identity.as_ref().unwrap();
            assert_eq!(identity.name, "loadline.subjects.DemoServer");
            assert!(identity.started_ticks > 0 && identity.started.is_some(), "{identity:?}");
        }
        let pids: Vec<u32> = document.accounts.iter().map(|of| of.jvm.pid).collect();
        assert!(pids[0] == 2 && pids.is_sorted(), "{pids:?}");
        let sum: u64 = document.accounts.iter().map(|of| of.mark.account.as_ref().unwrap().pss_bytes).sum();
        assert_eq!(document.pss_bytes, sum);
        // Both map the class archive and HotSpot from the same files: about 20 MiB that RSS counts twice.
        assert!(document.rss_bytes - document.pss_bytes > 10 << 20, "{} {}", document.rss_bytes, document.pss_bytes);
        let own = |one: &Standing| one.smaps().total();
        let rss = own(&machine.first).rss.0 + own(&second).rss.0;
        assert!(rss.abs_diff(document.rss_bytes) < 2 << 20, "{rss} {}", document.rss_bytes);
        let screen = machine.loadline(&[], &["--all"]);
        let screen = text(&screen.stdout);
        assert!(screen.starts_with("2 JVMs, weighed by loadline ") && screen.contains("  sum "), "{screen}");
        second.answers();
        machine.first.answers();
    }
}

#[test]
fn another_users_jvm_is_listed_with_the_reason() {
    if !can_be_apart() || !root_can(&NOBODY) {
        return;
    }
    for release in newest() {
        let machine = Machine::start(release);
        let called = machine.loadline(&NOBODY, &["--all", "--json"]);
        let said = text(&called.stderr);
        assert_eq!(called.status.code(), Some(4), "{said}");
        assert!(said.starts_with("error: 1 JVM could not be read"), "{said}");
        let document: AccountsDocument = serde_json::from_slice(&called.stdout).unwrap();
        assert_eq!((document.accounts.len(), document.unread.len()), (0, 1), "{document:?}");
        let unread = &document.unread[0];
        assert_eq!((unread.pid, unread.cause), (2, UnreadCause::Refused));
        assert!(unread.why.contains("belongs to another user") && unread.name.ends_with("DemoServer"), "{unread:?}");
        machine.first.runs_on();
    }
}

/// The document of `account PID --against FILE`, for a previously printed file.
fn against(subject: &Standing, then: &str, options: &str) -> ChangesDocument {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("then.json");
    std::fs::write(&file, then).unwrap();
    let call = subject.account_call(&format!("--json {options} --against")).with_argument(&file);
    serde_json::from_str(&call.run().expect(0).stdout).unwrap()
}

/// A subject before and after its work, with declared truth.
fn worked(release: u32, subject: &str, arguments: &str) -> (Standing, ChangesDocument) {
    let mut subject = LaunchPlan::on(release, SMALL).start(subject, arguments);
    let _ = subject.says("BEFORE");
    // The first account has its own costs.
    let _ = subject.account();
    let then = subject.document("");
    subject.go_on();
    let _ = subject.says("AFTER");
    let document = against(&subject, &report::document(&then), "");
    (subject, document)
}

#[test]
fn growth_of_thread_stacks_is_attributed_to_their_pool() {
    let (threads, least) = (truth("DeepStacks", "threads"), truth("DeepStacks", "touched_bytes_min"));
    for release in releases() {
        let (subject, document) = worked(release, "DeepStacks", "");
        assert_eq!(document.doubts, [], "the account of one process raises no doubt");
        let pool = document.parts.iter().find(|part| part.name == "deep-*").unwrap();
        assert_eq!((pool.then_count, pool.now_count), (0, threads), "{pool:?}");
        let stacks = document.owners.iter().find(|owner| owner.name == "thread_stacks").unwrap();
        for grown in [pool.growth_bytes, stacks.growth_bytes.unwrap(), document.rss_growth_bytes] {
            assert!(grown >= (threads * least) as i64, "JDK {release}: {grown} {pool:?}");
        }
        let sum: i64 = document.owners.iter().filter_map(|owner| owner.growth_bytes).sum();
        assert_eq!(sum, document.rss_growth_bytes, "{:?}", document.owners);
        // The printed document can itself be an input.
        let again = against(&subject, &report::document(&document), "");
        assert_eq!(again.then, document.now);
    }
}

#[test]
fn comparing_another_process_raises_a_doubt_and_lists_files() {
    for release in newest() {
        let first = LaunchPlan::on(release, SMALL).serving("DemoServer");
        let then = report::document(&first.document(""));
        drop(first);
        let mut second = LaunchPlan::on(release, SMALL).start("MappedFile", "{folder}");
        let _ = second.says("READY");
        let document = against(&second, &then, "--no-stop");
        let [doubt] = document.doubts.as_slice() else { panic!("{:?}", document.doubts) };
        let Doubt::Comparing(Comparing::AnotherProcess { differences }) = &doubt.doubt else { panic!("{doubt:?}") };
        assert!(differences.iter().any(|difference| difference.starts_with("started at ")), "{differences:?}");
        assert!(differences.iter().any(|difference| difference == "the command lines differ"), "{differences:?}");
        let mapped: Vec<_> = document.parts.iter().filter(|part| part.name.ends_with("/mapped.bin")).collect();
        assert_eq!(mapped.len(), 1, "{:?}", document.parts);
        let touched = truth("MappedFile", "touched_bytes");
        assert_eq!((mapped[0].then_bytes, mapped[0].now_bytes), (0, touched), "{mapped:?}");
    }
}
