//! The gallery's templates of frameworks in their quick sizes, run in their own folders: each builds, starts, answers
//! everything, and keeps the budgets that its file states. Spring Boot stands for all of them; the others come with
//! `LOADLINE_FRAMEWORKS=required`, each night. No bound on a time or a rate.

use crate::gallery::{MIB, bare, has_maven, run, run_bare, trial};
use crate::invocation::{mark, phase};
use loadline::record::{BudgetVerdict, Document, Outcome};
use loadline_test_support::{long_tests_run, skip};

/// Runs the quick size of a template, one trial of each of its configurations.
fn weighed(name: &str) -> Document {
    let document = run(name, &format!("{name}-quick")).with("--trials 1").of_many_trials().run().expect(0).document();
    assert!(!document.trials.is_empty());
    for trial in &document.trials {
        assert_eq!(trial.outcome, Outcome::Completed, "{}: {:?}", trial.configuration, trial.why);
        for name in ["warmup", "steady"] {
            assert_eq!(phase(trial, name).ok, 2000, "{}", trial.configuration);
        }
    }
    // Exit code 0 allows for undecided ones.
    assert!(document.budgets.len() >= 4);
    for budget in &document.budgets {
        assert_eq!(budget.verdict, BudgetVerdict::Pass, "{budget:?}");
    }
    document
}

/// Whether those that do not run with each change are asked for.
fn is_asked_for() -> bool {
    let asked = std::env::var_os("LOADLINE_FRAMEWORKS").is_some_and(|asked| !asked.is_empty());
    if !asked {
        skip("LOADLINE_FRAMEWORKS", "this template of a framework is built where that is asked for");
    }
    asked && has_maven()
}

#[test]
fn most_of_a_spring_boot_service_lies_outside_its_heap() {
    if !long_tests_run() || !has_maven() {
        return;
    }
    let document = weighed("spring-boot");
    let loaded = mark(trial(&document, "serial-64m"), "loaded").rss_bytes;
    assert!(loaded > 2 * 64 * MIB, "{loaded}");
}

#[test]
fn quarkus_is_weighed() {
    if is_asked_for() {
        weighed("quarkus");
    }
}

#[test]
fn micronaut_is_weighed() {
    if is_asked_for() {
        weighed("micronaut");
    }
}

#[test]
fn helidon_is_weighed_on_virtual_threads() {
    if is_asked_for() {
        weighed("helidon");
    }
}

#[test]
fn a_template_without_maven_says_what_is_missing() {
    let file = "spring-boot-quick.loadline.yaml";
    let ran = run_bare(&bare("spring-boot", &[file], &["sh", "java"]), &[file]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    for part in ["exit code 127", "mvn", "a program it needs is not installed"] {
        assert!(said.contains(part), "{said}");
    }
}
