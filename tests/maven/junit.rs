//! The JUnit client in a project's tests, with JUnit 5 and JUnit 6.

use crate::build::{Project, maven};
use crate::ide;
use crate::stand_in::{BudgetOutcome, StandIn};
use loadline_test_support::executable;

/// A program that passes each scenario to the stand-in named after it.
const CHOOSES: &str = "#!/bin/sh\nexec \"$(dirname \"$0\")/$2.d/loadline\" \"$@\"\n";

#[test]
fn budgets_are_tests_with_junit_5_and_6() {
    let Some(maven) = maven() else { return };
    for junit in ["5.13.4", "6.0.1"] {
        let project = maven.project("junit", "junit");
        let of = |scenario: &str| project.folder.join(format!("{scenario}.loadline.yaml.d"));
        let all = [BudgetOutcome::Kept, BudgetOutcome::Broken, BudgetOutcome::Undecided];
        let app = StandIn::new(&of("app"), 1, "", &all);
        StandIn::new(&of("dies"), 3, "error: the server died", &[]);
        StandIn::new(&of("empty"), 0, "", &[]);
        let program = project.folder.join("loadline");
        executable(&program, CHOOSES);
        let option = format!("-Dloadline.executable={}", program.display());
        let built = project.build(&["test", &format!("-Djunit.version={junit}"), &format!("-DargLine={option}")]);
        built.passes().says("Tests run: 5, Failures: 1, Errors: 2, Skipped: 1");
        check(&project);
        let words = app.called().join(" ");
        assert!(words.starts_with("run app.loadline.yaml --junit "), "{words}");
        let options = "--quiet --trials 3 --budget rss.loaded<=160MiB --artifact a b.jar --baseline before";
        assert!(words.ends_with(options), "{words}");
        check_in_an_ide(&ide::told(maven, &project, "app.BudgetsTest", junit, &program));
    }
}

/// Files in the project's directory were checked out, not installed, so they must not be run.
#[test]
fn junit_does_not_search_the_project_for_an_empty_path_entry() {
    let Some(maven) = maven() else { return };
    let project = maven.project("junit", "junit with an empty part");
    let here = StandIn::new(&project.folder, 0, "", &[BudgetOutcome::Kept]);
    let project = project.with("PATH", &format!(":{}:", std::env::var("PATH").unwrap()));
    project.build(&["test", "-Djunit.version=5.13.4"]);
    assert_eq!(here.called(), Vec::<String>::new());
    let report = project.read("target/surefire-reports/TEST-app.BudgetsTest.xml");
    assert!(report.contains("there is no `loadline` on the PATH"), "{report}");
}

/// Checks each budget's verdict in the format that CI systems read.
fn check(project: &Project<'_>) {
    let report = project.read("target/surefire-reports/TEST-app.BudgetsTest.xml");
    for text in [
        "from 70.2 MiB to 81.4 MiB in 5 trials: all of it misses 60.0 MiB",
        "undecided: from 59.2 MiB to 80.2 MiB in 5 trials: 60.0 MiB lies within",
        "exit code 3:",
        "error: the server died",
        "there is no budget",
        "ci 1: rss.loaded&lt;=60MiB",
    ] {
        assert!(report.contains(text), "{text}:\n{report}");
    }
}

/// Checks each budget's verdict as an IDE shows it.
fn check_in_an_ide(told: &str) {
    let all = |begin: &str| told.lines().filter(|line| line.starts_with(begin)).collect::<Vec<_>>();
    let names = all("%TSTTREE").join("\n");
    for name in ["ci 1: rss.loaded<=60MiB", "loadline run dies.loadline.yaml", "loadline run empty.loadline.yaml"] {
        assert!(names.contains(name), "{name}:\n{names}");
    }
    // Of five tests, one fails, one is undecided, and two could not be measured.
    let is_skipped = |line: &&&str| line.contains("@AssumptionFailure: ");
    let failed = all("%FAILED");
    let counts = [failed.iter().filter(is_skipped).count(), failed.len(), all("%ERROR").len(), all("%TESTE").len()];
    assert_eq!(counts, [1, 2, 2, 5], "{told}");
    assert!(told.contains("error: the server died"), "{told}");
}
