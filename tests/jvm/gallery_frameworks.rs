//! The gallery's framework templates in their quick variants: each builds, starts, responds correctly, and meets the
//! budgets in its file. Spring Boot represents all; the others run with `LOADLINE_FRAMEWORKS=required`, nightly. There
//! are no bounds on times or rates.

use crate::gallery::{MIB, bare, has_maven, run, run_bare, trial};
use crate::invocation::{mark, phase};
use loadline::record::{BudgetVerdict, Document, Outcome};
use loadline_test_support::{long_tests_run, skip};

/// Runs a template's quick variant, one trial per configuration.
fn weighed(name: &str) -> Document {
    let document = run(name, &format!("{name}-quick")).with("--trials 1").of_many_trials().run().expect(0).document();
    assert!(!document.trials.is_empty());
    for trial in &document.trials {
        assert_eq!(trial.outcome, Outcome::Completed, "{}: {:?}", trial.configuration, trial.why);
        for name in ["warmup", "steady"] {
            let phase = phase(trial, name);
            let wrong = (&phase.failed, &phase.wrong_statuses, &phase.service_ms, &phase.by_request);
            assert_eq!(phase.ok, 2000, "{name} of {}: {wrong:?}", trial.configuration);
        }
    }
    // Exit code 0 allows undecided budgets.
    assert!(document.budgets.len() >= 4);
    for budget in &document.budgets {
        assert_eq!(budget.verdict, BudgetVerdict::Pass, "{budget:?}");
    }
    document
}

/// Whether templates that do not run for every change are requested.
fn is_asked_for() -> bool {
    let asked = std::env::var_os("LOADLINE_FRAMEWORKS").is_some_and(|asked| !asked.is_empty());
    if !asked {
        skip("LOADLINE_FRAMEWORKS", "this framework template is built only on request");
    }
    asked && has_maven()
}

#[test]
fn most_memory_of_a_spring_boot_service_is_outside_its_heap() {
    if !long_tests_run() || !has_maven() {
        return;
    }
    let document = weighed("spring-boot");
    let loaded = mark(trial(&document, "serial-64m"), "loaded").rss_bytes;
    assert!(loaded > 2 * 64 * MIB, "{loaded}");
}

#[test]
fn the_quarkus_scenario_runs() {
    if is_asked_for() {
        weighed("quarkus");
    }
}

#[test]
fn the_micronaut_scenario_runs() {
    if is_asked_for() {
        weighed("micronaut");
    }
}

#[test]
fn the_helidon_scenario_runs_on_virtual_threads() {
    if is_asked_for() {
        weighed("helidon");
    }
}

#[test]
fn a_template_without_maven_names_the_missing_tool() {
    let file = "spring-boot-quick.loadline.yaml";
    let ran = run_bare(&bare("spring-boot", &[file], &["sh", "java"]), &[file]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    for part in ["exit code 127", "mvn", "install the missing program"] {
        assert!(said.contains(part), "{said}");
    }
}
