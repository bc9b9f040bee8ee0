//! `loadline doctor PID` on real JVMs: its output, and that it does not attach; a library without symbols; other
//! programs.

use crate::account::{assert_closes, held};
use crate::invocation::{Call, Ran, doubts, every_release, jdk, newest, phase, releases};
use crate::standing::{LaunchPlan, Standing};
use loadline::doubt::{Allocation, Doubt};
use loadline::record::{AllocatedBy, FlagOrigin, ToldBy};
use loadline_test_support::{KilledOnDrop, skip};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The oldest release with known tables.
const OLDEST: u32 = 17;

fn doctor(pid: u32, options: &str) -> Ran {
    Call::verb(&format!("doctor {pid} {options}")).beside().run()
}

fn ready(plan: LaunchPlan) -> Standing {
    let mut subject = plan.start("Allocates", "{folder}/mapped");
    subject.says("STARTED");
    subject.go_on();
    subject.says("READY");
    subject
}

/// A label's line joined with its continuation lines.
#[track_caller]
fn fact(ran: &Ran, label: &str) -> String {
    let is_of = |line: &&str| !line.starts_with("   ") && line.split_whitespace().next() == Some(label);
    let mut lines = ran.stdout.lines().skip_while(|line| !is_of(line));
    let first = lines.next().unwrap_or_else(|| panic!("no {label}:\n{}", ran.stdout));
    let more = lines.take_while(|line| line.starts_with("   "));
    let words = std::iter::once(first).chain(more).flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn doctor_examines_a_jvm_without_attaching() {
    for release in every_release() {
        let plan =
            LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC").env("JAVA_TOOL_OPTIONS", "-XX:MaxMetaspaceSize=64m");
        let subject = ready(plan);
        let ran = doctor(subject.pid(), "").expect(0);
        let what = format!("JDK {release}:\n{}", ran.stdout);
        assert!(fact(&ran, "jvm").contains(&format!(" {release}")), "{what}");
        assert!(fact(&ran, "library").ends_with("libjvm.so"), "{what}");
        assert!(fact(&ran, "options").contains("-Xmx64m"), "{what}");
        assert_eq!(fact(&ran, "attach"), "attach yes: for `--attach`, `--classes`, `--heap-dump`, `--netty`, and NMT");
        assert_eq!(
            (fact(&ran, "memory").as_str(), fact(&ran, "counters").as_str()),
            ("memory yes", "counters yes: hsperfdata")
        );
        if release >= OLDEST {
            assert!(fact(&ran, "jvm").ends_with("Serial GC"), "{what}");
            assert!(fact(&ran, "tables").contains("does not attach"), "{what}");
            assert_eq!(fact(&ran, "allocated"), "allocated yes: for all threads");
            let set = fact(&ran, "command");
            assert!(set.contains("-XX:MaxHeapSize=67108864") && set.contains("-XX:+UseSerialGC"), "{what}");
            assert_eq!(fact(&ran, "variable"), "variable -XX:MaxMetaspaceSize=67108864");
            assert!(fact(&ran, "JVM").contains("-XX:InitialHeapSize="), "{what}");
            let all = doctor(subject.pid(), "--flags").expect(0);
            let listed = all.stdout.lines().filter(|line| line.contains(" -XX:")).count();
            assert!(listed > 1000 && fact(&all, "default").contains("-XX:MaxHeapFreeRatio=70"), "{}", all.stdout);
        } else {
            assert!(fact(&ran, "flags").starts_with("flags no: "), "{what}");
        }
        assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80 || !line.contains(' ')), "{what}");
        // After an attach, the JVM keeps its socket.
        assert_eq!(doctor(subject.pid(), "").stdout, ran.stdout, "{what}");
        let _ = subject.document("--attach");
        assert_eq!(fact(&doctor(subject.pid(), "").expect(0), "attach"), "attach yes: the JVM is already listening");
        subject.runs_on();
    }
}

#[test]
fn attach_failures_are_explained() {
    for release in releases() {
        let plan = || LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC -XX:+DisableAttachMechanism -XX:-UsePerfData");
        let subject = ready(plan());
        let ran = doctor(subject.pid(), "").expect(0);
        assert_eq!(fact(&ran, "attach"), "attach no: the JVM runs with `-XX:+DisableAttachMechanism`");
        assert!(fact(&ran, "jvm").starts_with(&format!("jvm {release}")), "tables were not read:\n{}", ran.stdout);
        let document = subject.document("");
        let flags = document.flags.unwrap();
        assert!(flags.disables_attaching() && flags.count() > 1000, "JDK {release}: {:?}", flags.set);
        let of =
            |name: &str| flags.set.iter().find(|flag| flag.name == name).map(|flag| (flag.value.as_str(), flag.origin));
        assert_eq!(of("MaxHeapSize"), Some(("67108864", FlagOrigin::CommandLine)));
        assert_eq!(of("CompressedClassSpaceSize").map(|(_, origin)| origin), None, "JDK {release}: {:?}", flags.set);
        assert_eq!(flags.defaults.get("MaxHeapFreeRatio").map(String::as_str), Some("70"));
        assert!(document.jvm.flags.unwrap().contains(&"-XX:+UseSerialGC".to_owned()));
        let text = subject.account_call("--by flag").run().expect(0).stdout;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("attaching is disabled (`-XX:+DisableAttachMechanism`)"), "{text}");
        assert!(words.contains("MaxHeapSize 67108864 command line"), "{text}");
        assert_eq!(subject.stderr(), "", "JDK {release}: SIGQUIT would print a thread dump");
    }
}

#[test]
fn a_process_that_is_not_hotspot_is_reported() {
    doctor(999_999_999, "").refused("there is no process with pid 999999999");
    doctor(std::process::id(), "").refused("is not a HotSpot JVM");
    assert_eq!(Call::verb("doctor x").beside().run().code(), Some(2));
    assert_eq!(Call::verb("doctor --flags").beside().run().code(), Some(2));
    // A GraalVM native image exports its version.
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("a.c"), folder.path().join("image"));
    let text = "#include <unistd.h>\nconst char __svm_version_info[] = \"x\";\nint main() { for (;;) pause(); }\n";
    fs::write(&source, text).unwrap();
    let compiled = Command::new("cc").arg("-rdynamic").arg(&source).arg("-o").arg(&program).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skip("LOADLINE_TOOLS", "there is no C compiler");
    }
    let image = KilledOnDrop(Command::new(&program).stdin(Stdio::null()).spawn().unwrap());
    for verb in ["doctor", "account"] {
        let ran = Call::verb(&format!("{verb} {}", image.0.id())).beside().run();
        ran.refused("(image) is a GraalVM native image, not a HotSpot JVM");
        assert!(ran.stderr.contains("kind: native"), "{}", ran.stderr);
    }
}

/// A JDK whose libjvm has only exported symbols; `None` if it cannot be created.
fn stripped(release: u32) -> Option<(TempDir, PathBuf)> {
    let home = jdk(release)?.home;
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("jdk");
    /// Links all files of a directory, but copies those listed here, whose own location matters.
    fn link(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name());
            match name.to_str() {
                Some("lib" | "server" | "bin") if path.is_dir() => link(&path, &to.join(&name)),
                Some("java" | "libjli.so") => _ = fs::copy(&path, to.join(&name)).unwrap(),
                Some("libjvm.so") => {
                    let stripped = to.join(&name);
                    let run = Command::new("strip").arg("--strip-all").arg("-o").arg(&stripped).arg(&path).status();
                    if !run.is_ok_and(|status| status.success()) {
                        let _ = fs::remove_file(stripped);
                    }
                }
                _ => symlink(fs::canonicalize(&path).unwrap_or(path), to.join(&name)).unwrap(),
            }
        }
    }
    link(&home, &made);
    if !made.join("lib/server/libjvm.so").is_file() {
        skip("LOADLINE_TOOLS", "libjvm.so cannot be stripped (`strip` of binutils)");
        return None;
    }
    Some((folder, made))
}

#[test]
fn an_account_of_a_stripped_jvm_attaches() {
    for release in releases() {
        let Some((_folder, home)) = stripped(release) else { continue };
        let java = home.join("bin/java").display().to_string();
        let subject = ready(LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC").java(&java));
        let ran = doctor(subject.pid(), "").expect(0);
        let what = format!("JDK {release}:\n{}", ran.stdout);
        assert!(fact(&ran, "library").contains(&home.display().to_string()), "{what}");
        assert!(fact(&ran, "tables").contains("so an account queries the JVM"), "{what}");
        assert!(fact(&ran, "allocated").starts_with("allocated only for live threads"), "{what}");
        assert!(fact(&ran, "flags").starts_with("flags yes: 1"), "{what}");
        let document = subject.document("");
        let account = document.mark.account.unwrap();
        let told = account.told.clone().unwrap();
        assert_eq!(told.by, ToldBy::Attach, "JDK {release}: {told:?}");
        assert!(told.why.contains("stripped"), "JDK {release}: {told:?}");
        assert_closes(&account, 5);
        for row in ["java_heap.used", "metaspace", "code_cache", "thread_stacks"] {
            assert!(held(&account, row) > 0, "JDK {release}: no {row}: {:?}", account.owners);
        }
        let threads = account.threads.unwrap();
        assert!(threads.iter().any(|thread| thread.allocated_bytes > Some(100_000)), "JDK {release}: {threads:?}");
    }
}

#[test]
fn allocation_of_a_stripped_jvm_counts_only_live_threads() {
    for release in newest() {
        let Some((_folder, home)) = stripped(release) else { continue };
        let trial = |churn_kib: u32| {
            let call = Call::on(release).with("--warmup 4000").with("-n 4000").with("--rest 1s").with("--heap 64m");
            let call = call.with(&format!("--jdk {}", home.display()));
            call.subject("Appetite", &format!("{{port}} live=1 churn={churn_kib}")).run().expect(0).trial()
        };
        let trials = [4, 260].map(trial);
        let [less, more] = trials.each_ref().map(|trial| phase(trial, "steady").alloc_per_request().unwrap());
        // Arrays of 1 KiB, each with its header; attach threads keep running.
        let planted = f64::from(256 * (1024 + 16));
        assert!(((more - less) / planted - 1.0).abs() < 0.005, "JDK {release}: {less} and {more} B per request");
        for trial in &trials {
            assert!(trial.jvm.as_ref().unwrap().java.as_ref().unwrap().contains(&home.display().to_string()));
            assert_eq!(phase(trial, "steady").subject.allocated_by, Some(AllocatedBy::LivingThreads));
            let is_rough = |doubt: &Doubt| matches!(doubt, Doubt::Allocation(Allocation::AllocationRough { .. }));
            assert!(doubts(trial, is_rough), "JDK {release}: {:?}", trial.doubts);
        }
    }
}
