//! An account without attaching, compared with one that attaches: under every collector, both have the same rows, and
//! the subject does not gain a page.

use crate::account::{assert_closes, assert_whole, held};
use crate::invocation::{every_release, newest, starts_with};
use crate::standing::{LaunchPlan, Standing};
use loadline::observe::procfs::Process;
use loadline::observe::thread_stats;
use loadline::record::{AccountDocument, AccountRecord, ToldBy};
use loadline_jvm::purpose::is_named;
use loadline_test_support::long_tests_run;
use std::collections::BTreeSet;

const COLLECTORS: [&str; 6] = ["Serial", "Parallel", "G1", "Z", "Shenandoah", "Epsilon"];
/// Releases with known tables; older ones need attaching.
const OLDEST: u32 = 17;
/// The threads that reply to attach requests, as named by the kernel.
const ANSWERING: [&str; 3] = ["Signal Dispatcher", "Attach Listener", "VM Thread"];

fn told_by(document: &AccountDocument) -> (ToldBy, String) {
    let told = account(document).told.clone().unwrap();
    (told.by, told.why)
}

fn account(document: &AccountDocument) -> &AccountRecord {
    document.mark.account.as_ref().unwrap()
}

/// Page faults of these threads; 0 for a thread that does not exist.
fn faults(server: &Standing) -> Vec<(String, u64)> {
    let threads = thread_stats::all(&Process::open(server.pid()).unwrap()).unwrap();
    let answering = threads.into_iter().filter(|thread| ANSWERING.iter().any(|name| is_named(&thread.name, name)));
    answering.map(|thread| (thread.name, thread.faults)).collect()
}

fn each(mut then: impl FnMut(u32, &str, &str)) {
    for release in every_release().into_iter().filter(|release| *release >= OLDEST) {
        for collector in COLLECTORS {
            let options = format!("-XX:+UnlockExperimentalVMOptions -XX:+Use{collector}GC");
            if starts_with(release, &options) {
                then(release, collector, &options);
            }
        }
    }
}

#[test]
fn an_account_from_tables_matches_one_from_commands() {
    if !long_tests_run() {
        return;
    }
    each(|release, collector, options| {
        // A running compiler uses MiBs of malloc and returns them between two accounts.
        let server = LaunchPlan::on(release, &format!("-Xmx96m -Xint {options}")).serving("DemoServer");
        // A first command adds memory, so one precedes both accounts.
        let _ = server.document("--attach");
        let before = faults(&server);
        let read = server.document("");
        assert_eq!(faults(&server), before, "JDK {release}, {collector}: reading woke the JVM's attach threads");
        let asked = server.document("--attach");
        let what = format!("JDK {release}, {collector}");
        assert_eq!(told_by(&read), (ToldBy::Tables, String::new()), "{what}");
        assert_eq!(told_by(&asked), (ToldBy::Attach, String::new()), "{what}");
        let (read, asked) = (account(&read), account(&asked));
        assert_eq!(read.observer_bytes, Some(0), "{what}");
        println!("{what}: {} B, {} unexplained, {:.1} ms", read.total_bytes, read.unexplained_bytes, read.took_ms);
        assert_closes(read, 5);
        let names =
            |account: &AccountRecord| account.owners.iter().map(|row| row.name.clone()).collect::<BTreeSet<_>>();
        for name in &names(read) | &names(asked) {
            let (one, other) = (held(read, &name), held(asked, &name));
            assert!(one.abs_diff(other) * 500 <= asked.total_bytes, "{what}: {name} {one}, asked {other}");
        }
        assert_eq!(read.would_return.gc_reason, asked.would_return.gc_reason, "{what}");
        // The server keeps running, and its threads allocate while waiting.
        for (one, other) in [
            (read.would_return.gc_bytes, asked.would_return.gc_bytes),
            (read.would_return.gc_grown_bytes, asked.would_return.gc_grown_bytes),
            (read.would_return.trim_bytes, asked.would_return.trim_bytes),
        ] {
            assert_eq!(one.is_some(), other.is_some(), "{what}");
            assert!(one.unwrap_or(0).abs_diff(other.unwrap_or(0)) <= 128 << 10, "{what}: {one:?}, asked {other:?}");
        }
    });
}

#[test]
fn a_jvm_without_attach_has_a_complete_account() {
    let newest = newest();
    each(|release, collector, options| {
        // Readings of a collector do not depend on attaching, as the previous test shows.
        if !newest.contains(&release) && collector != COLLECTORS[0] {
            return;
        }
        let options = format!("-Xmx96m -XX:+DisableAttachMechanism {options}");
        let server = LaunchPlan::on(release, &options).serving("DemoServer");
        let document = server.document("");
        let what = format!("JDK {release}, {collector}");
        assert_eq!(told_by(&document).0, ToldBy::Tables, "{what}: {}", told_by(&document).1);
        assert_whole(&document);
        assert!(document.mark.heap.used_bytes > Some(1 << 20), "{what}: {:?}", document.mark.heap);
        assert_eq!(document.jvm.collector.as_deref(), Some(collector), "{what}");
        let account = account(&document);
        assert_closes(account, 5);
        let rows = ["java_heap.used", "metaspace", "class_space", "code_cache", "thread_stacks"];
        assert!(rows.iter().all(|row| held(account, row) > 0), "{what}: {:?}", account.owners);
        assert_eq!(server.stderr(), "", "{what}: attaching would print a thread dump");
    });
}

#[test]
fn loaders_that_may_be_garbage_make_the_prediction_unknown() {
    for release in every_release().into_iter().filter(|release| *release >= OLDEST) {
        let (subject, _) = LaunchPlan::on(release, "-Xmx128m -XX:+UseSerialGC").worked("ManyClasses");
        let (read, asked) = (subject.document(""), subject.document("--attach"));
        println!("JDK {release}: {:?}, asked {:?}", account(&read).would_return, account(&asked).would_return);
        assert_eq!(told_by(&read), (ToldBy::Tables, String::new()));
        assert_eq!(account(&read).would_return.gc_reason, account(&asked).would_return.gc_reason);
    }
}
