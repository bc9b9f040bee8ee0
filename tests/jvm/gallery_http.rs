//! The gallery's HTTP servers in their quick variants: results must confirm their READMEs. There are no bounds on times
//! or rates. Without Maven, some tests are skipped unless `LOADLINE_GALLERY=required`.

use crate::gallery::{MIB, bare, folder, run, run_bare, trial};
use crate::invocation::{Permit, doubts, mark, newest, phase, release};
use crate::test_subjects::test_subjects;
use loadline::doubt::Doubt;
use loadline::record::{BudgetVerdict, Document, Outcome};
use loadline_test_support::{long_tests_run, skip};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Medians explained by acknowledgments that Linux delays by 40 ms.
const PLATEAU_MS: std::ops::Range<f64> = 38.0..46.0;

/// Concurrent builds in one directory would read each other's partial classes.
static TINY_HTTP: Mutex<()> = Mutex::new(());

/// Whether the directory's `build` can run here.
fn builds(name: &str) -> bool {
    let built = Command::new(folder(name).join("build")).output().unwrap();
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        skip("LOADLINE_GALLERY", &format!("scenarios/{name}/build failed: {said}"));
    }
    built.status.success()
}

/// Whether the build created the server that needs Maven.
fn has_jlhttp() -> bool {
    let made = folder("tiny-http").join("target/jlhttp.jar").exists();
    if !made {
        skip("LOADLINE_GALLERY", "JLHTTP requires Maven");
    }
    made
}

#[test]
fn three_tiny_servers_serve_all_requests_with_a_six_mebibyte_heap() {
    if !long_tests_run() {
        return;
    }
    let _folder = TINY_HTTP.lock().unwrap_or_else(PoisonError::into_inner);
    if !builds("tiny-http") || !has_jlhttp() {
        return;
    }
    let document = run("tiny-http", "tiny-http-quick").run().expect(0).document();
    assert_eq!(document.trials.len(), 9);
    for trial in &document.trials {
        assert_eq!(trial.outcome, Outcome::Completed, "{}: {:?}", trial.configuration, trial.why);
        for name in ["warmup", "steady"] {
            assert_eq!(phase(trial, name).ok, 1000, "{}", trial.configuration);
        }
        let (asked, _) = trial.configuration.split_once('-').unwrap();
        let collector = trial.jvm.as_ref().unwrap().collector.clone().unwrap().to_lowercase();
        assert_eq!(collector, asked);
        assert!(mark(trial, "collected").heap.live_bytes.unwrap() < 6 * MIB);
    }
}

#[test]
fn the_latency_plateau_is_named() {
    if !long_tests_run() {
        return;
    }
    let _folder = TINY_HTTP.lock().unwrap_or_else(PoisonError::into_inner);
    for release in release(17) {
        let [delayed, nodelay] = ["delayed", "nodelay"].map(|how| format!("jdk{release}-{how}"));
        let call = run("tiny-http", "tiny-http-plateau").alone().with("-c 3").with("-n 90").with("--trials 3");
        let call = [&delayed, &nodelay]
            .iter()
            .fold(call, |call, only| call.with_argument(Path::new("--only")).with_argument(Path::new(only)));
        let ran = call.run().expect(0);
        let document = ran.document();
        let trials_of = |name: &str| {
            let own = document.trials.iter().filter(|trial| trial.configuration == name);
            own.cloned().collect::<Vec<_>>()
        };
        let medians = |name: &str| {
            let medians = trials_of(name).into_iter().map(|trial| {
                let p50 = phase(&trial, "steady").service_ms.unwrap().p50;
                // It is reported only where it occurs.
                let named = doubts(&trial, |doubt| matches!(doubt, Doubt::Plateau40Ms { .. }));
                assert_eq!(named, PLATEAU_MS.contains(&p50), "{name}: {p50} ms, {:?}", trial.doubts);
                p50
            });
            medians.collect::<Vec<f64>>()
        };
        let on_plateau = |name: &str| {
            let evidence = loadline::archive::evidence(&ran.archive, &trials_of(name));
            let times: Vec<f64> = evidence.iter().flat_map(|trial| &trial.requests).map(|request| request.ms).collect();
            times.iter().filter(|ms| PLATEAU_MS.contains(ms)).count() as f64 / times.len() as f64
        };
        let shares = (on_plateau(&delayed), on_plateau(&nodelay));
        let (delayed, nodelay) = (medians(&delayed), medians(&nodelay));
        println!("JDK {release}: {delayed:?} ms delayed, {nodelay:?} without delay; on the plateau {shares:?}");
        assert_eq!((delayed.len(), nodelay.len()), (3, 3));
        // The kernel waits at least 40 ms by its clock. Other programs may slow most `nodelay` trials, but not all.
        assert!(delayed.iter().all(|p50| *p50 >= PLATEAU_MS.start) && shares.0 > 0.1, "{shares:?}");
        assert!(nodelay.iter().any(|p50| *p50 < PLATEAU_MS.start) && shares.1 < shares.0, "{shares:?}");
    }
}

#[test]
fn a_budget_below_a_jvms_minimum_fails() {
    let _folder = TINY_HTTP.lock().unwrap_or_else(PoisonError::into_inner);
    let call = run("tiny-http", "tiny-http-budget").with("--only serial").with("-n 500").with("--rest 100ms");
    let document = call.with("--trials 1").with("--budget rss.loaded<=20MiB").run().expect(1).document();
    let verdict = |text: &str| document.budgets.iter().find(|budget| budget.expression == text).unwrap().verdict;
    assert_eq!(verdict("rss.loaded<=20MiB"), BudgetVerdict::Fail);
    assert_eq!(verdict("failed==0"), BudgetVerdict::Pass);
}

/// A network namespace with few ports that stay in use for a long time.
const FEW_PORTS: &str = "ip link set lo up && echo 32768 33791 > /proc/sys/net/ipv4/ip_local_port_range \
                         && echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse && exec \"$0\" \"$@\"";

fn with_few_ports(command: &[&str]) -> Output {
    Command::new("unshare").args(["-rn", "sh", "-c", FEW_PORTS]).args(command).output().unwrap()
}

/// The side that closes a connection first keeps its port. In `tiny-http`, that is random; this subject leaves it to
/// the client.
#[test]
fn port_exhaustion_is_named() {
    let Some(release) = newest().pop() else { return };
    if !Command::new("unshare").arg("--version").output().is_ok_and(|_| with_few_ports(&["true"]).status.success()) {
        return skip("LOADLINE_MACHINE", "no network namespace can be created (`unshare -rn`, `ip`)");
    }
    let _permit = Permit::one();
    let out = tempfile::tempdir().unwrap();
    let jar = test_subjects();
    let text = format!(
        "name: close\nsubject:\n  command: [java, '{{jvm}}', -cp, '{jar}', loadline.subjects.LeavesClosing, '{{port}}']\n  \
         ready: {{tcp: true}}\nconfigurations: {{only: {{heap: 16m, gc: serial, jdk: {release}}}}}\nload:\n  \
         - warmup: {{closed: {{connections: 25, requests: 800}}, get: /, keep_alive: false}}\n  - steady: {{same: warmup}}\n"
    );
    let scenario = out.path().join("close.loadline.yaml");
    std::fs::write(&scenario, text).unwrap();
    let [scenario, archive] = [scenario, out.path().join("archive")].map(|path| path.display().to_string());
    let ran = with_few_ports(&[env!("CARGO_BIN_EXE_loadline"), "run", &scenario, "--json", "--out", &archive]);
    let said = String::from_utf8_lossy(&ran.stderr);
    let document: Document = serde_json::from_slice(&ran.stdout).unwrap_or_else(|cause| panic!("{cause}: {said}"));
    let trial = trial(&document, "only");
    assert!(doubts(trial, |doubt| matches!(doubt, Doubt::PortsNearExhaustion { .. })), "{:?}", trial.doubts);
    assert_eq!(phase(trial, "warmup").ok, 800, "1,024 ports suffice for all 800 warm-up requests");
    let sent = phase(trial, "steady");
    assert!(sent.failed.ports > 500 && sent.failed.total() == sent.failed.ports, "{sent:?}");
}

#[test]
fn configurations_that_need_a_missing_maven_are_skipped() {
    let file = "tiny-http-quick.loadline.yaml";
    let sources = ["src/Site.java", "src/JdkHttpServer.java", "src/JlHttpServer.java", "src/OwnServer.java"];
    let files = [&["build", "pom.xml", file, "www/hello"], &sources[..]].concat();
    let bare = bare("tiny-http", &files, &["sh", "dirname", "rm", "java", "javac", "jar"]);
    let ran = run_bare(&bare, &[file, "--only", "serial-own", "--only", "serial-jlhttp", "--json"]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    let document: Document = serde_json::from_slice(&ran.stdout).unwrap();
    let [out] = document.conditions.left_out.as_slice() else { panic!("{said}") };
    assert_eq!((out.configuration.as_str(), document.configurations()), ("serial-jlhttp", vec!["serial-own"]));
    assert!(out.why.contains("jlhttp.jar does not exist"), "{}", out.why);
}

#[test]
fn a_buffered_file_takes_several_times_the_memory_of_a_streamed_one() {
    if !long_tests_run() {
        return;
    }
    assert!(builds("file-server"), "this build needs only a JDK");
    let document = run("file-server", "file-server-quick").run().expect(0).document();
    assert_eq!(document.trials.len(), 6);
    for trial in document.trials.iter().filter(|trial| trial.configuration != "small-whole") {
        assert_eq!(trial.outcome, Outcome::Completed, "{}: {:?}", trial.configuration, trial.why);
        assert_eq!((phase(trial, "warmup").ok, phase(trial, "steady").ok), (8, 40), "{}", trial.configuration);
    }
    let loaded = |name: &str| mark(trial(&document, name), "loaded");
    let whole = loaded("roomy-whole").rss_bytes;
    for streamed in ["roomy-buffer-8k", "roomy-transfer", "small-buffer-8k"] {
        assert!(whole > 3 * loaded(streamed).rss_bytes, "{streamed}: {} against {whole}", loaded(streamed).rss_bytes);
    }
    // Each thread that has sent a file caches a direct buffer of 10 MB; on a fast machine, not all eight have.
    let direct = |name: &str| {
        let nmt = loaded(name).nmt.as_ref().unwrap();
        nmt.categories.iter().find(|category| category.name == "Other").unwrap().committed_bytes
    };
    assert!(direct("roomy-whole") >= 30_000_000 && direct("roomy-buffer-8k") < 5 * MIB);

    let small = trial(&document, "small-whole");
    assert_eq!(small.outcome, Outcome::Completed, "{:?}", small.why);
    assert!(doubts(small, |doubt| matches!(doubt, Doubt::OutOfMemoryError { .. })), "{:?}", small.doubts);
    assert!(doubts(small, |doubt| matches!(doubt, Doubt::LoadFailures { .. })), "{:?}", small.doubts);
    assert!(phase(small, "steady").failed.total() > 0);
}
