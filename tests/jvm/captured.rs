//! `loadline capture` and `account --from`: a JVM copied by a shell has the same account as the live one.

use crate::account::{held, held_by_all};
use crate::invocation::{Call, all_releases, newest};
use crate::standing::{LaunchPlan, Standing, account_of};
use loadline::record::{AccountDocument, AccountRecord};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A row's variation between two measurements of an idle JVM.
const NOISE: u64 = 192 << 10;

/// Asserts that a row of the copy is between those before and after, within a relative tolerance and noise.
#[track_caller]
fn assert_between(what: &str, then: u64, around: [u64; 2], per_mille: u64) {
    let [least, most] = [around[0].min(around[1]), around[0].max(around[1])];
    let slack = most * per_mille / 1000 + NOISE;
    assert!((least.saturating_sub(slack)..=most + slack).contains(&then), "{what}: {then}, alive {around:?}");
}

/// A JVM's bundle, made as in a container: the script comes through stdin.
fn captured(jvm: &Standing) -> (TempDir, PathBuf) {
    let (folder, bundle, notes) = capture_of(&jvm.pid().to_string());
    assert!(std::fs::metadata(&bundle).unwrap().len() > 0, "{notes}");
    (folder, bundle)
}

/// A process's bundle with the script's messages; empty if rejected.
fn capture_of(words: &str) -> (TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let (script, bundle) = (folder.path().join("capture.sh"), folder.path().join("bundle.tar"));
    std::fs::write(&script, Call::verb("capture").run().expect(0).stdout).unwrap();
    let file = |path| std::fs::File::open(path).unwrap();
    let done = Command::new("sh")
        .arg("-s")
        .args(words.split(' '))
        .env("TMPDIR", folder.path())
        .stdin(Stdio::from(file(&script)))
        .stdout(std::fs::File::create(&bundle).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let script_pid = done.id();
    let done = done.wait_with_output().unwrap();
    let names = std::fs::read(&bundle).unwrap();
    let of_script = format!("loadline-capture/proc/{script_pid}/");
    assert!(!names.windows(of_script.len()).any(|name| name == of_script.as_bytes()), "the bundle contains the script");
    assert_eq!(done.status.success(), !names.is_empty());
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2, "the script must remove its directory");
    (folder, bundle, String::from_utf8(done.stderr).unwrap())
}

fn account_from(bundle: &std::path::Path) -> AccountDocument {
    account_of(&Call::verb("account --json --from").with_argument(bundle).run().expect(0))
}

/// The rows, except malloc's, which a bundle cannot split, and direct memory, which is part of it. A malloc chunk as
/// large as a collector's table is mistaken for one.
fn rows(account: &AccountRecord) -> Vec<&str> {
    let of_malloc = |name: &str| name.starts_with("malloc.") || ["gc", "unexplained"].contains(&name);
    account.owners.iter().map(|row| row.name.as_str()).filter(|name| !of_malloc(name)).collect()
}

#[test]
fn a_captured_jvm_has_the_same_account_as_the_running_one() {
    for release in all_releases() {
        for gc in ["Serial", "G1", "Parallel", "Z"] {
            let options = format!("-Xms64m -Xmx64m -XX:+Use{gc}GC -XX:TieredStopAtLevel=1");
            let subject = LaunchPlan::on(release, &options).serving("DemoServer");
            // A young JVM on a busy machine still compiles and collects, so the copy is compared with measurements
            // before and after.
            let weigh = || subject.document("").mark.account.unwrap();
            let before = weigh();
            let (_folder, bundle) = captured(&subject);
            let document = account_from(&bundle);
            let alive = weigh();
            let copied = document.mark.account.as_ref().unwrap();
            let mut names = rows(&alive);
            names.extend(rows(copied));
            for name in names {
                let around = [held(&before, name), held(&alive, name)];
                assert_between(&format!("JDK {release}, {gc}, {name}"), held(copied, name), around, 10);
            }
            let malloc = |of: &AccountRecord| held_by_all(of, "malloc.") + held(of, "gc") + held(of, "unexplained");
            let around = [malloc(&before), malloc(&alive)];
            assert_between(&format!("JDK {release}, {gc}, malloc"), malloc(copied), around, 20);
            let sum: u64 = copied.owners.iter().map(|row| row.rss_bytes).sum();
            assert_eq!((sum, document.jvm.pid), (copied.total_bytes, subject.pid()));
            assert!(document.jvm.version.is_some() && document.jvm.flags.is_some_and(|flags| !flags.is_empty()));
            let lacks = |of: &str| document.doubts.iter().any(|doubt| doubt.text.contains(of));
            assert!(!lacks("the bundle lacks") && !lacks("one of its sources"), "{:?}", document.doubts);
            // Copying takes longer than reading.
            assert!(copied.took_ms > 100.0, "{}", copied.took_ms);
            subject.answers();
        }
    }
}

#[test]
fn a_bundle_without_jcmd_has_the_same_remaining_rows() {
    for release in newest() {
        let subject = LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC").serving("DemoServer");
        let before = subject.document("").mark.account.unwrap();
        let (_folder, bundle, notes) = capture_of(&format!("-- --no-jcmd {}", subject.pid()));
        let document = account_from(&bundle);
        let alive = subject.document("").mark.account.unwrap();
        assert!(document.doubts.iter().any(|doubt| doubt.text.contains("--no-jcmd was given")), "{notes}");
        let copied = document.mark.account.unwrap();
        assert_eq!((held(&copied, "metaspace"), held(&copied, "unexplained")), (0, copied.unexplained_bytes));
        for name in ["java_heap", "cds", "thread_stacks", "libjvm", "libraries"] {
            let around = [held_by_all(&before, name), held_by_all(&alive, name)];
            assert_between(&format!("JDK {release}, {name}"), held_by_all(&copied, name), around, 10);
        }
    }
}

#[test]
fn only_a_jvm_can_be_captured() {
    let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
    let refused = [&*sleep.id().to_string(), "4294967295", "abc", "7 8"].map(capture_of);
    sleep.kill().and_then(|()| sleep.wait()).unwrap();
    let whys =
        ["is not a HotSpot JVM", "no process has pid 4294967295 here", "`abc` is not a pid", "`7 8` is not a pid"];
    for ((_folder, bundle, notes), why) in refused.iter().zip(whys) {
        assert!(notes.contains(why), "{notes}");
        let error = Call::verb("account --from").with_argument(bundle).run().expect(2).stderr;
        assert!(error.contains("is empty or truncated") && error.contains("capture again"), "{error}");
    }
}

#[test]
fn a_bundle_is_compared_with_an_earlier_one() {
    for release in newest() {
        let subject = LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC").serving("DemoServer");
        let (_folder, bundle) = captured(&subject);
        let text = Call::verb("account --from").with_argument(&bundle).run().expect(0).stdout;
        assert!(text.contains("malloc (not split)") && text.contains("System.trim_native_heap"), "{text}");
        assert!(!text.contains("loadline explain") && !text.contains("loadline watch"), "{text}");
        let earlier = bundle.with_extension("json");
        std::fs::write(&earlier, serde_json::to_vec(&account_from(&bundle)).unwrap()).unwrap();
        let against = Call::verb("account --from").with_argument(&bundle).with("--against").with_argument(&earlier);
        let changes = against.run().expect(0).stdout;
        // The earlier account can also be a bundle.
        let against = Call::verb("account --from").with_argument(&bundle).with("--against").with_argument(&bundle);
        assert_eq!(against.run().expect(0).stdout, changes);
        assert!(changes.contains("RSS"), "{changes}");
        let by = Call::verb("account --by tag,flag --from").with_argument(&bundle).run().expect(0).stdout;
        assert!(by.contains("does not contain malloc's chunks") && by.contains("-XX:+UseSerialGC"), "{by}");
    }
}
