//! `loadline watch` on real JVMs in accelerated time: with samples every 20 ms, ten minutes take 1.2 s and a day three
//! minutes. Leaks are steady and bounds are distant enough that delays of seconds do not matter.

use crate::deaths::limits_work;
use crate::invocation::{Call, Permit, Ran, jdk, newest};
use crate::scraped::address;
use crate::test_subjects::test_subjects;
use crate::waiting::{LONG, wait_for};
use loadline::clock::Clock;
use loadline::record::{EndKind, GrowthWord, OomDocument, OomHolder, PostMortem, WatchDocument, WatchedJvm};
use loadline::subject::MemoryCgroup;
use loadline::units::Bytes;
use loadline_test_support::{answer, long_tests_run, skip};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// JVMs, each of which accumulates one thing or nothing; all end on drop.
pub(crate) struct Leaking {
    children: Vec<(&'static str, Child, ChildStdin)>,
    _permit: Permit,
}

impl Leaking {
    /// Starts JVMs of this release, each given by kind, arguments, and options.
    pub(crate) fn start(release: u32, what: &[(&'static str, &str, &str)]) -> Self {
        Self::start_in(None, release, what)
    }

    /// Like `start`, but in this cgroup.
    fn start_in(cgroup: Option<&Path>, release: u32, what: &[(&'static str, &str, &str)]) -> Self {
        let permit = Permit::one();
        let java = jdk(release).unwrap().java;
        let start = |(name, arguments, options): &(&'static str, &str, &str)| {
            // A shell that moves itself to a cgroup, if there is one.
            let mut command = Command::new("sh");
            command.args(["-c", "[ -z \"$0\" ] || echo $$ > \"$0\" || exit 1; exec \"$@\""]);
            command.arg(cgroup.map(|cgroup| cgroup.join("cgroup.procs")).unwrap_or_default()).arg(&java);
            command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]).args(options.split_whitespace());
            command.args(["-cp", test_subjects(), "loadline.subjects.Leaks", name]);
            command.args(arguments.split_whitespace()).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "READY\n", "{name}");
            let stdin = child.stdin.take().unwrap();
            (*name, child, stdin)
        };
        Self { children: what.iter().map(start).collect(), _permit: permit }
    }

    pub(crate) fn pids(&self) -> String {
        self.children.iter().map(|(_, child, _)| child.id().to_string()).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn pid(&self, name: &str) -> u32 {
        self.children.iter().find(|(known, ..)| *known == name).unwrap().1.id()
    }
}

impl Drop for Leaking {
    fn drop(&mut self) {
        for (_, child, stdin) in &mut self.children {
            // A child that has ended accepts no line and cannot be killed.
            let _ = stdin.write_all(b"\n");
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn document(ran: &Ran) -> WatchDocument {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn only_leaking_owners_are_named() {
    if !long_tests_run() {
        return;
    }
    for release in newest() {
        let leaking = Leaking::start(
            release,
            &[
                ("heap", "rate=1024", "-Xmx120m"),
                ("direct", "rate=1024", "-Xmx32m -XX:MaxDirectMemorySize=120m"),
                ("metaspace", "rate=640", "-Xmx32m -XX:MaxMetaspaceSize=56m"),
                ("threads", "rate=512", "-Xmx32m"),
                ("malloc", "rate=1024", "-Xmx32m"),
                ("cache", "rate=4096 most=24", "-Xmx64m"),
                ("idle", "rate=0", "-Xmx32m"),
            ],
        );
        let pids = leaking.pids();
        let call = Call::verb(&format!("watch {pids} --every 20ms --for 90s --account never --history histories"));
        let call = call.beside().of_many_trials();
        let folder = call.folder().to_path_buf();
        let watched = call.start();
        let ran = watched.wait().expect(0);
        let again = format!("watch {pids} --every 20ms --once --json --account never --history");
        let judged = Call::verb(&format!("{again} {}", folder.join("histories").display())).beside().run().expect(1);
        let document = document(&judged);
        let jvm =
            |name: &str| -> &WatchedJvm { document.jvms.iter().find(|jvm| jvm.pid == leaking.pid(name)).unwrap() };
        let told = |name: &str| format!("JDK {release}, {name}: {:#?}\n{}", jvm(name), ran.stdout);
        for name in ["heap", "direct", "metaspace"] {
            let growth = &jvm(name).growth;
            assert_eq!((growth.verdict, growth.owner.as_deref()), (GrowthWord::Grows, Some(name)), "{}", told(name));
            let soonest = growth.limit_in_s.unwrap();
            assert!(soonest > 1.0 && soonest < 600.0, "{soonest} s: {}", told(name));
        }
        // Only the machine's memory bounds these: a rise without an alarm.
        for (name, owner) in [("threads", "threads"), ("malloc", "rest")] {
            let growth = &jvm(name).growth;
            assert!(growth.bytes_per_hour.is_some() && growth.verdict != GrowthWord::Grows, "{}", told(name));
            assert_eq!(growth.owner.as_deref(), Some(owner), "{}", told(name));
        }
        for name in ["cache", "idle"] {
            assert_ne!(jvm(name).growth.verdict, GrowthWord::Grows, "{}", told(name));
        }
    }
}

#[test]
fn metrics_are_scraped_and_an_ended_jvm_is_reported() {
    let release = newest()[0];
    let mut leaking = Leaking::start(release, &[("idle", "rate=0", "-Xmx32m"), ("heap", "rate=64", "-Xmx64m")]);
    let pids = leaking.pids();
    let call = Call::verb(&format!("watch {pids} --every 100ms --listen 127.0.0.1:0 --history histories")).beside();
    let mut watched = call.start();
    let address = address(&mut watched);
    let scrape = || answer(&address, "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text");
    let text = wait_for("both are sampled", LONG, || {
        Some(scrape()).filter(|text| text.matches("loadline_jvm_info{").count() == 2).ok_or("not yet")
    });
    assert!(text.ends_with("# EOF\n") && text.contains("kind=\"anon\"}"), "{text}");
    assert!(
        text.contains("jvm=\"loadline.subjects.Leaks\"") && text.contains("jvm=\"loadline.subjects.Leaks#2\""),
        "{text}"
    );
    let gone = leaking.pid("heap");
    let (_, mut child, mut stdin) = leaking.children.pop().unwrap();
    stdin.write_all(b"\n").unwrap();
    child.wait().unwrap();
    wait_for("only the other one is left", LONG, || {
        Some(scrape()).filter(|text| text.matches("loadline_jvm_info{").count() == 1).ok_or("not yet")
    });
    watched.signal("INT");
    let ran = watched.wait().expect(0);
    assert!(ran.stdout.contains(&format!("exited, pid {gone}")), "{}", ran.stdout);
}

#[test]
fn a_killed_jvm_is_reported_with_its_limit_and_memory() {
    if !limits_work() {
        return;
    }
    let limit = MemoryCgroup::create(Some(Bytes::mib(160)), Clock::start()).unwrap();
    let folder = &limit.cgroup.folder;
    // At ten MiB per second, the OOM kill takes about ten seconds.
    let what = [("malloc", "rate=10240", "-Xmx32m")];
    let leaking = Leaking::start_in(Some(folder), newest()[0], &what);
    let pid = leaking.pid("malloc");
    let call = Call::verb(&format!("watch {pid} --every 50ms --history histories")).beside();
    let histories = call.folder().join("histories");
    let ran = call.start().wait().expect(0);
    assert!(ran.stdout.contains(&format!("killed because memory ran out, pid {pid}")), "{}", ran.stdout);
    assert!(ran.stdout.contains("weighed at 66% of its limit"), "{}", ran.stdout);
    let of = |options: &str| {
        let verb = format!("watch --post-mortem {pid} --history {} {options}", histories.display());
        Call::verb(&verb).beside().run().expect(0)
    };
    let told: PostMortem = serde_json::from_str(&of("--json").stdout).unwrap();
    assert_eq!((told.end, told.limit_bytes), (EndKind::Killed, 160 << 20), "{told:#?}");
    assert!(told.killed_by.as_ref().is_some_and(|by| folder.display().to_string().ends_with(by.as_str())), "{told:#?}");
    assert!(["kernel log", "memory events"].contains(&told.source.as_str()), "{told:#?}");
    println!("killed by {:?}, by its {}: held {:?}", told.killed_by, told.source, told.owners);
    assert!(told.last.unreclaimable_bytes.unwrap() > 120 << 20, "{told:#?}");
    assert_eq!(told.owners[0].name, "rest", "{told:#?}");
    assert!(!told.accounts.is_empty() && told.accounts.iter().all(|file| Path::new(file).is_file()), "{told:#?}");
    let shown = of("").stdout;
    assert!(shown.contains("The kernel killed the JVM at the 160.0 MiB limit"), "{shown}");
    // The kernel's own log shows the same without a watch.
    let called = Call::verb("post-mortem --json").beside().run();
    if called.code() == Some(4) {
        return skip("LOADLINE_LIMITS", "the kernel log cannot be read");
    }
    let log: OomDocument = serde_json::from_str(&called.stdout).unwrap();
    let kill = log.kills.iter().find(|kill| kill.killed.iter().any(|killed| killed.pid == pid));
    let kill = kill.unwrap_or_else(|| panic!("no kill of {pid}: {log:#?}"));
    assert_eq!((kill.limit_bytes, kill.holder), (Some(160 << 20), OomHolder::Jvm), "{kill:#?}");
    assert_eq!(kill.rows.iter().map(|row| row.bytes).sum::<i64>() as u64, kill.usage_bytes.unwrap(), "{kill:#?}");
}

#[test]
fn a_jvm_is_queried_once_and_a_stopped_one_never() {
    let leaking = Leaking::start(
        newest()[0],
        &[("idle", "rate=0", "-Xmx32m -XX:NativeMemoryTracking=summary"), ("cache", "rate=0", "-Xmx32m")],
    );
    let (answers, stopped) = (leaking.pid("idle"), leaking.pid("cache"));
    let signal = |name: &str| {
        assert!(Command::new("kill").args(["-s", name, &stopped.to_string()]).status().unwrap().success());
    };
    signal("STOP");
    let call =
        Call::verb(&format!("watch {} --every 100ms --attach once --history histories", leaking.pids())).beside();
    let histories = call.folder().join("histories");
    let asked = || {
        let files = std::fs::read_dir(&histories).into_iter().flatten().flatten();
        // One that did not respond leaves an empty file, and is not attached to again.
        let answered = files.filter(|file| file.metadata().is_ok_and(|about| about.len() > 0));
        answered.filter(|file| file.file_name().to_string_lossy().ends_with(".asked.account.json")).count()
    };
    let mut watched = call.start();
    watched.until_shown("did not respond, and will not be queried again");
    // The two are queried one after the other, in no guaranteed order.
    wait_for("the other one has answered", LONG, || if asked() == 1 { Ok(()) } else { Err(asked()) });
    watched.signal("INT");
    let ran = watched.wait().expect(0);
    assert_eq!((asked(), ran.stdout.matches("did not respond").count()), (1, 1), "{}", ran.stdout);
    let history = histories.display().to_string();
    let again = format!("watch {answers} --every 100ms --attach once --for 500ms --history {history}");
    let again = Call::verb(&again).beside().run().expect(0);
    assert!(asked() == 1 && !again.stdout.contains("queried once"), "it was queried again: {}", again.stdout);
    let once = Call::verb(&format!("watch {answers} --once --json --every 100ms --history {history}")).beside().run();
    let told: WatchDocument = serde_json::from_str(&once.stdout).unwrap();
    let account = told.jvms[0].account.as_ref().unwrap();
    assert!(account.asked && account.owners.len() <= 20 && account.age_s >= 0.0, "{account:#?}");
    assert!(account.nmt.iter().any(|category| category.name == "Java Heap"), "{account:#?}");
    assert!(told.jvms[0].course.as_ref().is_some_and(|course| course.parts.len() > 5), "{:#?}", told.jvms[0]);
    signal("CONT");
}
