//! The memory limit on a real kernel.

use super::support::*;
use loadline::clock::Clock;
use loadline::kernel::cgroup::{CPU, Hierarchy, MEMORY};
use loadline::kernel::process::Stat;
use loadline::observe;
use loadline::record::EndCause;
use loadline::subject::jdk::{Places, discover};
use loadline::subject::limit::probe;
use loadline::subject::quota;
use loadline::subject::{FoundJdk, LimitSeen, MemoryCgroup};
use loadline::units::Bytes;
use loadline_test_support::skip;
use std::path::{Path, PathBuf};

pub(crate) fn limits_work() -> bool {
    probe(Clock::start()).inspect_err(|error| skip("LOADLINE_LIMITS", &error.what)).is_ok()
}

#[test]
fn a_subject_over_its_limit_is_killed_and_reported() {
    if !limits_work() {
        return;
    }
    // `tail` buffers the only line of an endless stream.
    let running = spawner().start(&limited("tail -n 1 /dev/zero; exit 1", Bytes::mib(32)), None).unwrap();
    let cgroup = running.cgroup().unwrap().0.folder.clone();
    assert!(cgroup.is_dir());
    wait_ended(&running);
    assert!(running.oom_kills() > 0);
    let ended = running.end(LONG);
    assert_eq!(ended.cause, EndCause::OomKill);
    assert!(!cgroup.exists());
}

#[test]
fn a_subject_within_its_limit_runs_in_the_cgroup() {
    if !limits_work() {
        return;
    }
    let running = spawner().start(&limited("echo pid $$; exec sleep 60", Bytes::mib(32)), None).unwrap();
    let processes = told(&running, 1);
    let cgroup = running.cgroup().unwrap().0.folder.clone();
    let members = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap();
    assert!(members.lines().any(|pid| pid == processes[0].pid.to_string()), "{members}");
    assert_eq!(running.end(LONG).cause, EndCause::AsAsked);
    assert!(!cgroup.exists());
}

/// Whether CPU limits work here. Debian's User-mode Linux kernel, for one, has no CFS bandwidth control.
fn cpu_limits_work() -> bool {
    quota::probe(Clock::start()).inspect_err(|error| skip("LOADLINE_LIMITS", &error.what)).is_ok()
}

#[test]
fn a_subject_over_its_cpu_limit_is_throttled_and_counted() {
    if !limits_work() || !cpu_limits_work() {
        return;
    }
    for limit in [None, Some(Bytes::mib(32))] {
        let before = ours();
        let running = spawner().start(&throttled("echo pid $$; while :; do :; done", limit), None).unwrap();
        let pid = told(&running, 1)[0].pid;
        wait_until("it is held back", LONG, || running.throttled().is_some_and(|of| of.throttled >= 5));
        let own = own_cgroup(pid);
        let (told, kernel) = (running.throttled().unwrap(), std::fs::read_to_string(own.join("cpu.stat")).unwrap());
        let number = |key: &str| -> u64 {
            let line = kernel.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim().parse().unwrap()
        };
        // A period may pass between the two readings.
        assert!(number("nr_throttled").abs_diff(told.throttled) <= 2, "{told:?}\n{kernel}");
        assert!(number("nr_periods").abs_diff(told.periods) <= 2 && told.throttled <= told.periods);
        assert_eq!(running.end(LONG).cause, EndCause::AsAsked);
        assert!(!own.exists());
        wait_until("no cgroup is left", LONG, || ours().difference(&before).count() == 0);
    }
}

/// The cgroup of a process with a CPU limit.
fn own_cgroup(pid: u32) -> PathBuf {
    let hierarchy = Hierarchy::find(CPU).unwrap().unwrap();
    hierarchy.folder(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap()).unwrap()
}

/// Cgroup v1 lists a process that is ending in the root cgroup.
#[test]
fn an_ending_process_is_not_mistaken_for_one_in_the_root_cgroup() {
    let Some(hierarchy) = Hierarchy::find(MEMORY).unwrap() else { return skip("LOADLINE_LIMITS", "no memory cgroup") };
    // Not waited for, so it stays a zombie.
    let mut child = std::process::Command::new("true").spawn().unwrap();
    wait_until("the child has ended", LONG, || Stat::of(child.id()).unwrap().has_ended());
    let found = observe::cgroup::MemoryCgroup::of(&observe::procfs::Process::open(child.id()).unwrap());
    assert_eq!(found.is_err(), hierarchy.loses_ending(), "{:?}", found.map(|found| found.name()));
    child.wait().unwrap();
}

#[test]
fn a_missing_command_leaves_no_cgroup() {
    if !limits_work() {
        return;
    }
    let mut launch = limited("true", Bytes::mib(32));
    launch.argv = vec!["no-such-command".to_owned()];
    let before = ours();
    assert!(spawner().start(&launch, None).is_err());
    // Concurrent tests create and remove some too.
    wait_until("no cgroup is left", LONG, || ours().difference(&before).count() == 0);
}

/// Exit code and output of a Loadline that is itself limited to `outer`.
fn within(outer: &MemoryCgroup, arguments: &str) -> (Option<i32>, String) {
    let (cgroup, program) = (outer.cgroup.folder.display(), env!("CARGO_BIN_EXE_loadline"));
    let script = format!("echo $$ > {cgroup}/cgroup.procs && exec {program} {arguments}");
    let done = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn an_outer_limit_is_reported_and_larger_inner_limits_are_rejected() {
    if !limits_work() {
        return;
    }
    // A v2 cgroup in which Loadline created others accepts no further processes, so there are two.
    let [outer, second] = [(); 2].map(|()| MemoryCgroup::create(Some(Bytes::mib(160)), Clock::start()).unwrap());
    let (code, said) = within(&outer, "doctor");
    assert_eq!(code, Some(0), "{said}");
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(words.join(" ").contains("outer limit 160.0 MiB at "), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let url = "--url 'http://127.0.0.1:{port}/'";
    let (code, said) = within(&second, &format!("weigh --limit 200m --out {} {url} -- sleep 60", archive.display()));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("the limit 200.0 MiB would have no effect: an outer cgroup allows only 160.0 MiB"), "{said}");
    let paths = [outer.cgroup.folder.clone(), second.cgroup.folder.clone()];
    drop([outer, second]);
    assert!(!paths.iter().any(|path| path.exists()), "{paths:?}");
}

/// The limit that a JVM reports must be the one that it respects.
#[test]
fn a_jvm_sees_its_limit() {
    if !limits_work() {
        return;
    }
    let mut jdks = discover(&Places::usual(), Clock::start());
    jdks.retain(|jdk| jdk.release >= 17);
    for jdk in jdks {
        let seen = spawner().limit_seen(&jdk).unwrap();
        let script = format!("{} -XshowSettings:vm -version; echo pid $$; exec sleep 60", jdk.java.display());
        let running = spawner().start(&limited(&script, Bytes::mib(64)), None).unwrap();
        told(&running, 1);
        let said = running.output().tail_texts(usize::MAX);
        // `    Max. Heap Size (Estimated): 31.00M`, or `G` if it is large.
        let heap = said.iter().find_map(|line| line.trim().strip_prefix("Max. Heap Size (Estimated): ")).unwrap();
        println!("JDK {}: {seen:?}, a heap of {heap}", jdk.release);
        let megabytes: Option<f64> = heap.strip_suffix('M').and_then(|number| number.parse().ok());
        assert_eq!(seen == LimitSeen::Seen, megabytes.is_some_and(|megabytes| megabytes < 64.0), "{said:?}");
        running.end(LONG);
        let java = jdk.java.with_file_name("no-java");
        let error = spawner().limit_seen(&FoundJdk { java, ..jdk.clone() }).unwrap_err();
        assert!(error.what.contains("no-java"), "{error}");
        assert_eq!(spawner().limit_seen(&FoundJdk { release: 8, ..jdk }).unwrap(), LimitSeen::NotSaid);
    }
}

/// A v2 cgroup with a process cannot have limited children, so Loadline moves to a child, but only once.
#[test]
fn many_successive_limits_leave_at_most_one_cgroup() {
    if !limits_work() {
        return;
    }
    let outer = MemoryCgroup::create(Some(Bytes::mib(160)), Clock::start()).unwrap();
    let (code, said) = within(&outer, "doctor");
    assert_eq!(code, Some(0), "{said}");
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let left = folders(&outer.cgroup.folder);
    assert!(left.len() <= 1 && left.iter().all(|home| folders(home).is_empty()), "{left:?}");
}

/// Cgroups created by this process.
fn ours() -> std::collections::BTreeSet<String> {
    let parent = probe(Clock::start()).unwrap().folder;
    let prefix = format!("loadline-{}-", std::process::id());
    let folders = std::fs::read_dir(parent).unwrap().flatten();
    let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&prefix)).collect()
}
