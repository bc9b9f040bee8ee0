//! The requests that a search rejects before it starts anything.

use crate::called::{Called, loadline, loadline_in, root};

/// `find` with these options, on a nonexistent server.
fn find(options: &[&str]) -> Called {
    let server = ["--rate", "9", "--url", "http://127.0.0.1:1/", "--", "no-such-program"];
    loadline(&[&["find"], options, &server].concat())
}

#[test]
fn find_options_without_effect_are_rejected_with_a_suggestion() {
    let refused = [
        (["--budget", "p99<50ms"], "--target"),
        (["--baseline", "before/"], "compare"),
        (["--undecided", "fail"], "--target"),
        (["--trials", "3"], "`--proofs`"),
        (["--marks", "start"], "`weigh`"),
    ];
    for (options, meant) in refused {
        find(&options).refused(&[&format!("'{}", options[0]), meant]);
    }
    let help = loadline(&["find", "--help"]).stdout;
    for option in ["--budget", "--baseline", "--undecided", "--strict", "--trials ", "--marks"] {
        assert!(!help.contains(&format!(" {option}")), "`find` must not offer `{option}`:\n{help}");
    }
}

#[test]
fn a_resumed_search_keeps_its_options_except_bounds() {
    let told = "cannot be used with";
    for option in [["--proofs", "3"], ["--rate", "20"], ["--heap", "6m"]] {
        for verb in ["find", "tune"].into_iter().filter(|verb| *verb == "find" || option[0] != "--proofs") {
            loadline(&[&[verb, "--resume", "a"], &option[..]].concat()).refused(&[told, option[0]]);
        }
    }
    for bound in ["--minutes", "--trials-max"] {
        loadline(&["find", "--resume", "absent", bound, "5"]).refused(&["no archive at absent"]);
    }
}

#[test]
fn an_archive_can_be_used_as_a_scenario() {
    let compared = root().join("tests/cli/archives/compared");
    let compared = compared.to_str().unwrap();
    loadline(&["find", compared, "--only", "absent"]).refused(&["no configuration is named `absent`"]);
    let searched = root().join("tests/cli/archives/searched");
    let against = loadline(&["run", compared, "--baseline", searched.to_str().unwrap()]);
    against.refused(&["differ in their limits or options", "loadline run SCENARIO"]);
}

#[test]
fn a_budget_is_not_a_target() {
    insta::assert_snapshot!(find(&["--budget", "p99<50ms"]));
}

#[test]
fn find_rejects_strict_without_budgets() {
    insta::assert_snapshot!(find(&["--strict"]));
}

/// `find` on a scenario whose subject does not exist, which is the first thing to fail.
fn find_in(scenario: &str) -> Called {
    let place = tempfile::tempdir().unwrap();
    loadline_test_support::write(place.path().join("x.loadline.yaml"), scenario);
    loadline_in(place.path(), &["find", "x.loadline.yaml", "--limit-max", "64m"])
}

#[test]
fn find_ignores_scenario_budgets_and_notes_it_once() {
    let scenario = "name: x\nsubject: {command: [no-such-program], port: 1}\nbudgets: [rss_peak<=60MiB]\n\
        load: [steady: {closed: {connections: 1, requests: 1}, get: /}]\n";
    let called = find_in(scenario);
    assert_eq!(called.stderr.matches("budgets of the scenario are ignored").count(), 1, "{called}");
    let without = find_in(&scenario.replace("budgets: [rss_peak<=60MiB]\n", ""));
    assert!(!without.stderr.contains("budgets"), "{without}");
}

#[test]
fn invalid_variations_are_rejected_before_the_first_trial() {
    let cases = [
        ("cpu_limit", "has no values; write it as"),
        ("cpu_limit=", "has no values; write it as"),
        ("cpu_limits=1,2", "`cpu_limits` cannot be varied"),
        ("cpu_limit=lots", "lots"),
        ("cpu_limit=1m", "10m"),
    ];
    for (over, meant) in cases {
        find(&["--over", over]).refused(&[meant]);
    }
    let both = loadline(&["find", "--resume", "none", "--over", "gc=serial,g1"]);
    assert!(both.stderr.contains("cannot be used with"), "{both}");
}
