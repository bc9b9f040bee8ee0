//! `loadline run`: configurations side by side, after a build.

use crate::invocation::{Call, mark_names, newest, phase};
use crate::test_subjects::test_subjects;
use loadline::record::Outcome;

const SCENARIO: &str = r#"
name: pair
subject:
  command: [java, "{jvm}", -cp, JAR, loadline.subjects.DemoServer, "{port}"]
  ready: {http: /hello, within: 30s}
configurations:
  serial: {heap: 8m, gc: serial, jdk: RELEASE, env: {MALLOC_ARENA_MAX: 1}}
  g1: {heap: 8m, gc: g1, jvm: [-Xss256k], jdk: RELEASE}
load:
  - warmup: {closed: {connections: 5, requests: 100}, get: /hello}
  - steady: {same: warmup}
  - rest: {idle: 200ms}
trials: 2
"#;

/// A call to `loadline run` on this text.
pub(crate) fn run(scenario: &str, options: &str) -> Call {
    Call::verb("run").of_scenario("pair", scenario).with(options)
}

fn scenario(release: u32) -> String {
    SCENARIO.replace("JAR", test_subjects()).replace("RELEASE", &release.to_string())
}

#[test]
fn configurations_run_in_blocks_and_are_compared() {
    for release in newest() {
        let ran = run(&scenario(release), "--json").run().expect(0);
        let document = ran.document();
        let order: Vec<_> = document.trials.iter().map(|trial| (trial.configuration.as_str(), trial.block)).collect();
        assert_eq!(order, [("serial", 0), ("g1", 0), ("serial", 1), ("g1", 1)]);
        assert_eq!(document.trials, ran.archived().trials);
        for trial in &document.trials {
            assert_eq!((trial.outcome, phase(trial, "steady").ok), (Outcome::Completed, 100));
            assert_eq!(mark_names(trial), ["start", "warm", "loaded", "rested", "collected"]);
            let collector = trial.jvm.as_ref().unwrap().collector.clone().unwrap().to_lowercase();
            assert_eq!(collector, trial.configuration);
        }
        let ran = run(&scenario(release), "--only g1").with("--trials 1").run().expect(0);
        assert_eq!(ran.archived().trials.len(), 1);
        let ran = run(&scenario(release), "--trials 1").run().expect(0);
        assert!(ran.stdout.contains("serial") && ran.stdout.contains("g1"), "{}", ran.stdout);
    }
}

#[test]
fn a_failed_build_is_quoted() {
    for release in newest() {
        let built = |step: &str| scenario(release).replacen("subject:", &format!("subject:\n  build: {step}"), 1);
        let ran = run(&built("echo broken && exit 2"), "--json").run().expect(3);
        ran.says(&["the build failed with exit code 2", "| broken"]);
        let ran = run(&built("echo done > made"), "--only g1").with("--trials 1").run().expect(0);
        assert!(ran.archive.with_file_name("made").exists());
    }
}
