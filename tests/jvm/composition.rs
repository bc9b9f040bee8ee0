//! Subjects other than a single JVM on one port: several processes, other programs, separate directories, builds, and
//! configurations that cannot run here.

use crate::deaths::limits_work;
use crate::invocation::{Call, doubts, mark, mark_names, newest, phase};
use crate::scenarios::run;
use crate::test_subjects::test_subjects;
use crate::truth::truth;
use loadline::doubt::Doubt;
use loadline::record::{Finding, Mark, Outcome};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Two servers of one script, on two ports.
fn pair(release: u32, script: &str, ready: &str) -> String {
    let jar = test_subjects();
    let java = format!("java -cp {jar} loadline.subjects.DemoServer");
    let script = script.replace("SERVER", &java);
    format!(
        "name: pair\nsubject:\n  command: [sh, -c, \"{script}\"]\n  processes: all\n  ready: {ready}\n\
         configurations: {{small: {{heap: 16m, gc: serial, jdk: {release}}}}}\n\
         load:\n  - steady: {{closed: {{connections: 2, requests: 500}}, get: /hello}}\n  - rest: {{idle: 2s}}\n\
         marks: [start, loaded, collected]\n"
    )
}

#[test]
fn every_process_and_file_in_the_subjects_cgroup_counts() {
    if !limits_work() {
        return;
    }
    for release in newest() {
        for cause in ["children", "files"] {
            let call = Call::on(release).with("-n 200").with("--rest 1").with("--warmup 50").with("--processes cgroup");
            let call = call.with_jvm("-Xmx64m -XX:+UseSerialGC");
            let ran = call.subject("Plants", &format!("{{port}} {cause}")).run().expect(0);
            let (trial, found) = (ran.trial(), ran.document().findings.clone());
            let is_told = found.iter().any(|of| matches!(of.finding, Finding::ChildProcesses { .. }));
            assert_eq!(is_told, cause == "children", "{found:?}");
            assert_eq!(trial.cgroup, None, "a trial without a limit has no cgroup");
            let loaded = mark(&trial, "loaded");
            check_sums(loaded);
            let tails = loaded.processes.iter().filter(|process| process.name == "tail").count() as u64;
            let charge = loaded.charge.as_ref().unwrap();
            assert_eq!(charge.rows.iter().map(|row| row.bytes).sum::<i64>(), charge.usage_bytes as i64);
            assert_eq!((charge.limit_bytes, charge.processes), (None, loaded.processes.len() as u64));
            let java = charge.rows.iter().find(|row| row.owner.starts_with("java")).unwrap().bytes as u64;
            // The children are in the processes' sum, the files only in the charge.
            let planted = match cause {
                "children" => truth("Plants", "children") * truth("Plants", "child_bytes"),
                _ => truth("Plants", "file_bytes"),
            };
            assert_eq!(tails, if cause == "children" { truth("Plants", "children") } else { 0 });
            assert!(charge.kept_bytes().unwrap() > java + planted, "{charge:?}");
            assert!(charge.cached_files.iter().all(|file| file.path.starts_with('/') && file.bytes > 0), "{charge:?}");
        }
    }
}

/// Checks invariants of a mark with several processes.
fn check_sums(mark: &Mark) {
    assert_eq!(mark.processes.iter().map(|process| process.rss_bytes).sum::<u64>(), mark.rss_bytes);
    assert_eq!(mark.processes.iter().map(|process| process.pss_bytes).sum::<Option<u64>>(), mark.pss_bytes);
    let account = mark.account.as_ref().unwrap();
    assert_eq!((account.total_bytes, Some(account.pss_bytes)), (mark.rss_bytes, mark.pss_bytes));
    assert_eq!(account.owners.iter().map(|owner| owner.rss_bytes).sum::<u64>(), account.total_bytes);
    assert_eq!(account.owners.iter().map(|owner| owner.pss_bytes).sum::<u64>(), account.pss_bytes);
    assert!(mark.pss_bytes.unwrap() <= mark.rss_bytes, "{mark:?}");
}

#[test]
fn two_jvms_of_one_script_form_one_subject() {
    for release in newest() {
        let scenario = pair(release, "SERVER {port} & SERVER $(({port}+1)) & wait", "{http: /hello, ports: 2}");
        let ran = run(&scenario, "--json").run().expect(0).says(&["mark loaded: PSS "]);
        let trial = ran.trial();
        assert_eq!(trial.outcome, Outcome::Completed);
        assert_eq!(mark_names(&trial), ["start", "loaded", "collected"]);
        for mark in &trial.marks {
            check_sums(mark);
            assert_eq!(mark.processes.iter().filter(|process| process.name == "java").count(), 2, "{mark:?}");
            assert!(mark.processes.iter().any(|process| process.name == "sh"), "{mark:?}");
        }
        let heap = mark(&trial, "collected").heap;
        assert!(heap.live_bytes.is_some() && heap.max_bytes > Some(28 << 20), "{heap:?}");
        assert!(!doubts(&trial, |doubt| matches!(doubt, Doubt::SeveralJvms { .. })));
        let counted = |doubt: &Doubt| matches!(doubt, Doubt::SharedCountedOften { processes: 3, .. });
        assert!(doubts(&trial, counted), "{:?}", trial.doubts);
        let largest = mark(&trial, "loaded").processes.iter().map(|process| process.rss_bytes).max();
        let timeline = ran.timeline();
        assert!(timeline.iter().any(|sample| Some(sample.rss_bytes) > largest), "{timeline:?}");
        assert!(timeline.iter().any(|sample| sample.pss_bytes.is_some_and(|pss| pss < sample.rss_bytes)));
        assert!(phase(&trial, "steady").subject.cpu_s.is_some());
    }
}

#[test]
fn a_missing_node_is_reported_with_its_port() {
    for release in newest() {
        let ready = "{http: /hello, ports: 2, within: 4s}";
        let ran = run(&pair(release, "SERVER {port} & wait", ready), "--json").run().expect(3);
        ran.says(&["the server did not answer on 1 of its 2 ports: ", " (answered: ", "connection refused"]);
    }
}

#[test]
fn one_of_several_ports_suffices_if_requested() {
    for release in newest() {
        let ready = "{http: /hello, ports: 2, any: true}";
        let ran = run(&pair(release, "SERVER $(({port}+1)) & wait", ready), "--json").run().expect(0);
        assert_eq!(phase(&ran.trial(), "steady").ok, 500, "the load must go to the port that responded");
    }
}

/// A server that is not a JVM: this test binary, as started by the next test.
fn native(more: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "name: native\nsubject:\n  kind: native\n  command: [{}, --ignored, --exact, --nocapture, \
         composition::serve]\n  env: {{LOADLINE_TEST_PORT: '{{port}}', LOADLINE_TEST_WORK: '{{work}}'}}\n  \
         ready: {{http: /hello}}\n\
         load:\n  - steady: {{closed: {{connections: 2, requests: 500}}, get: /hello}}\n  \
         - rest: {{idle: 200ms}}\n{more}",
        program.display()
    )
}

#[test]
#[ignore = "is the server of other tests"]
fn serve() {
    let Ok(port) = std::env::var("LOADLINE_TEST_PORT") else { return };
    let work = PathBuf::from(std::env::var("LOADLINE_TEST_WORK").unwrap());
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0);
    std::fs::write(work.join("state"), "x").unwrap();
    println!("work {}", work.display());
    // Prevents the optimizer from removing memory that is never read.
    let held = std::hint::black_box(vec![1u8; 8 << 20]);
    let listener = TcpListener::bind(("127.0.0.1", port.parse::<u16>().unwrap())).unwrap();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() && (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                    return;
                }
            }
        });
    }
    drop(std::hint::black_box(held));
}

#[test]
fn a_native_program_is_measured_by_the_kernels_figures() {
    let ran = run(&native(""), "--json").run().expect(0);
    let trial = ran.trial();
    assert_eq!((trial.outcome, trial.jvm.is_none()), (Outcome::Completed, true));
    assert_eq!(mark_names(&trial), ["start", "loaded", "rested"]);
    let asks = |doubt: &Doubt| matches!(doubt, Doubt::AttachMissing { .. } | Doubt::CountersMissing { .. });
    assert!(!doubts(&trial, asks), "{:?}", trial.doubts);
    assert!(!doubts(&trial, |doubt| matches!(doubt, Doubt::ReadFailed { .. })), "{:?}", trial.doubts);
    let loaded = mark(&trial, "loaded");
    let account = loaded.account.as_ref().unwrap();
    assert_eq!(account.owners.iter().map(|owner| owner.rss_bytes).sum::<u64>(), loaded.rss_bytes);
    assert!(account.owners.iter().any(|owner| owner.name.starts_with("malloc.")), "{account:?}");
    assert!(account.owners.iter().all(|owner| !owner.name.starts_with("java_heap")), "{account:?}");
    assert_eq!(
        (account.would_return.gc_bytes, account.would_return.gc_why.as_str()),
        (None, "the process is not a JVM")
    );
    assert!(loaded.rss_bytes > 8 << 20 && loaded.heap.used_bytes.is_none() && loaded.processes.is_empty());
    assert_eq!(phase(&trial, "steady").ok, 500);
    let log = ran.subject_log();
    let work = log.lines().find_map(|line| Some(line.split_once("work ")?.1)).unwrap_or_else(|| panic!("{log}"));
    assert!(work.contains("loadline-work-") && !Path::new(work).exists(), "{work}");
    run(&native(""), "--trials 1").run().expect(0);
}

#[test]
fn jvm_features_are_rejected_for_native_programs() {
    let refused = |more: &str, said: &str| drop(run(&native(more), "--json").run().expect(2).says(&[said]));
    refused("marks: [start, collected]\n", "mark `collected` needs a JVM to query");
    refused("marks: [trimmed]\n", "mark `trimmed` needs a JVM to query");
    refused("configurations: {small: {heap: 6m}}\n", "`heap` has no effect");
    refused("matrix: {gc: [serial, g1]}\n", "`gc` has no effect");
}

/// A program without a port, with another program as its driver.
fn idle(script: &str, more: &str) -> String {
    format!(
        "name: idle\nsubject:\n  kind: native\n  command: [sh, -c, \"{script}\"]\n  ready: {{log: up}}\n{more}\n\
         load:\n  - go: {{driver: sleep 1.5}}\nmarks: [start, loaded]\n"
    )
}

#[test]
fn a_process_that_ends_between_marks_is_reported() {
    let scenario = idle("sleep 4 & echo up; tail -f /dev/null & wait", "  processes: all");
    let scenario = scenario.replace("sleep 1.5", "sleep 5");
    let trial = run(&scenario, "--json").run().expect(0).trial();
    let names = |name| mark(&trial, name).processes.iter().map(|process| process.name.as_str()).collect::<Vec<_>>();
    assert!(names("start").contains(&"sleep") && !names("loaded").contains(&"sleep"), "{:?}", trial.marks);
    assert_eq!(names("loaded")[0], "sh", "the first process is the server and must still run");
    let ended = |doubt: &Doubt| matches!(doubt, Doubt::ProcessEnded { name, .. } if name == "sleep");
    assert!(doubts(&trial, ended), "{:?}", trial.doubts);
    let several = idle("sleep 9 & echo up; exec tail -f /dev/null", "");
    let trial = run(&several, "--json").run().expect(0).trial();
    assert!(doubts(&trial, |doubt| matches!(doubt, Doubt::SeveralProcesses { .. })), "{:?}", trial.doubts);
}

#[test]
fn a_killed_loadlines_work_directory_is_removed_at_the_next_start() {
    let mut killed =
        run(&idle("echo x > {work}/x; echo work {work}; echo up; exec tail -f /dev/null", ""), "--trials 1").start();
    killed.until_said("mark start");
    let archive = killed.archive();
    let log = std::fs::read_dir(archive)
        .unwrap()
        .find_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("subject.log")).ok());
    let log = log.unwrap();
    let work = PathBuf::from(log.lines().find_map(|line| line.strip_prefix("work ")).unwrap());
    assert!(work.join("x").exists());
    killed.signal("KILL");
    let _killed = killed.wait();
    run(&idle("echo up; exec tail -f /dev/null", ""), "--trials 1").run().expect(0);
    assert!(!work.exists(), "{}", work.display());
}

#[test]
fn a_build_runs_again_only_after_an_input_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("built.loadline.yaml");
    let build = "  build: mkdir -p target && echo built >> target/made";
    std::fs::write(&file, idle("echo up; exec tail -f /dev/null", build).replace("sleep 1.5", "'true'")).unwrap();
    std::fs::write(folder.path().join("source"), "a").unwrap();
    let built = |options: &[&str], said: &str| {
        let call = Call::verb("run").with_argument(&file).archiving();
        options.iter().fold(call, |call, option| call.with(option)).run().expect(0).says(&[said]);
        std::fs::read_to_string(folder.path().join("target/made")).unwrap().lines().count()
    };
    assert_eq!(built(&[], "build: mkdir"), 1);
    assert_eq!(built(&[], "build: skipped, because nothing has changed"), 1);
    assert_eq!(built(&["--rebuild"], "build: mkdir"), 2);
    std::fs::write(folder.path().join("source"), "ab").unwrap();
    assert_eq!(built(&[], "build: mkdir"), 3);
    assert_eq!(built(&[], "build: skipped, because nothing has changed"), 3);
    std::fs::remove_dir_all(folder.path().join("target")).unwrap();
    assert_eq!(built(&[], "build: mkdir"), 1);
}

#[test]
fn optional_configurations_that_cannot_run_are_skipped_with_a_note() {
    for release in newest() {
        let with = |configurations: &str| {
            pair(release, "exec SERVER {port}", "{http: /hello}")
                .replace(&format!("{{small: {{heap: 16m, gc: serial, jdk: {release}}}}}"), configurations)
        };
        let now = format!("now: {{heap: 16m, jdk: {release}}}");
        let some = format!(
            "{{old: {{jdk: 7, optional: true}}, unbuilt: {{build: 'echo no; exit 1', optional: true}}, {now}}}"
        );
        let ran = run(&with(&some), "--json").run().expect(0);
        let document = ran.says(&["old is skipped: no JDK 7", "unbuilt is skipped: the build failed"]).document();
        assert_eq!(document.trials.iter().map(|trial| trial.configuration.as_str()).collect::<Vec<_>>(), ["now"]);
        let out: Vec<_> = document.conditions.left_out.iter().map(|out| out.configuration.as_str()).collect();
        assert_eq!(out, ["old", "unbuilt"]);
        assert_eq!(document.doubts.len(), 2, "{:?}", document.doubts);
        let none = run(&with("{old: {jdk: 7, optional: true}}"), "--trials 1").run().expect(4);
        none.says(&["no configurations are left to run", "old: no JDK 7"]);
        run(&with("{old: {jdk: 7}}"), "--trials 1").run().expect(4).says(&["no JDK 7"]);
        run(&with(&format!("{{bad: {{build: 'echo no; exit 1'}}, {now}}}")), "--trials 1")
            .run()
            .expect(3)
            .says(&["| no"]);
    }
}
