//! The gallery's questions about classes, Netty pools, and services in their quick variants: results must confirm
//! their READMEs. Only sizes are checked, with tolerance; there are no bounds on times or rates.

use crate::gallery::{MIB, has_maven, run, trial};
use crate::invocation::{doubts, mark, phase, release};
use loadline::doubt::Doubt;
use loadline::record::{Document, FigureRecord, Outcome, Trial};
use loadline_test_support::long_tests_run;
use std::sync::{Mutex, PoisonError};

/// Concurrent builds in one directory would read each other's partial classes.
static CLASS_CHURN: Mutex<()> = Mutex::new(());
static SERVICES: Mutex<()> = Mutex::new(());

fn figure<'a>(trial: &'a Trial, name: &str) -> &'a FigureRecord {
    trial.figures.iter().find(|figure| figure.name == name).unwrap()
}

fn value(trial: &Trial, name: &str) -> f64 {
    figure(trial, name).value.unwrap_or_else(|| panic!("{:?}", figure(trial, name)))
}

fn assert_completed(document: &Document) {
    for trial in &document.trials {
        assert_eq!(trial.outcome, Outcome::Completed, "{}: {:?}", trial.configuration, trial.why);
    }
}

#[test]
fn memory_of_unloaded_classes_is_returned_as_each_jdk_does() {
    if !long_tests_run() {
        return;
    }
    let _folder = CLASS_CHURN.lock().unwrap_or_else(PoisonError::into_inner);
    let document = run("class-churn", "class-churn-quick").run().expect(0).document();
    assert_completed(&document);
    // Configurations without an installed JDK are omitted; all others ran.
    let left_out: Vec<_> = document.conditions.left_out.iter().map(|out| out.configuration.as_str()).collect();
    for (name, jdk) in [("jdk11", 11), ("jdk17", 17), ("jdk17-none", 17), ("jdk25", 25), ("jdk25-none", 25)] {
        let ran = document.trials.iter().any(|trial| trial.configuration == name);
        assert_ne!(ran, left_out.contains(&name), "{name}: {left_out:?}");
        assert!(ran || jdk == 11 || release(jdk).is_empty(), "{name}: {left_out:?}");
    }
    for trial in &document.trials {
        let elasticity = value(trial, "elasticity");
        match trial.configuration.as_str() {
            "jdk11" => assert!((0.0..0.4).contains(&elasticity), "{elasticity}"),
            "jdk17-none" => assert!(elasticity < 0.05, "{elasticity}"),
            _ => assert!((0.65..0.85).contains(&elasticity), "{}: {elasticity}", trial.configuration),
        }
        let ignored = doubts(trial, |doubt| matches!(doubt, Doubt::FlagsIgnored { .. }));
        assert_eq!(ignored, trial.configuration == "jdk25-none", "{:?}", trial.doubts);
    }
}

#[test]
fn metaspace_traces_are_replayed_with_malloc() {
    if !long_tests_run() {
        return;
    }
    let _folder = CLASS_CHURN.lock().unwrap_or_else(PoisonError::into_inner);
    let call = run("class-churn", "metaspace-replay-quick");
    let document = call.with("--only arena").with("--only glibc").with("--only glibc-trim").run().expect(0);
    let document = document.document();
    assert_completed(&document);
    let elasticity = |name: &str| value(trial(&document, name), "elasticity");
    assert!(elasticity("arena") > 0.7 && elasticity("glibc") < 0.1 && elasticity("glibc-trim") > 0.7);
    // Live bytes according to the trace: a fifth of the classes stay, and as many as were unloaded are added again.
    let alive = |mark_: &str| mark(trial(&document, "arena"), mark_).counters["live_bytes"];
    let came = alive("spike") - alive("empty");
    assert!(came > 0.0 && (0.6..=0.82).contains(&((alive("spike") - alive("valley")) / came)));
    assert!((alive("again") - alive("spike")).abs() < 0.2 * came && alive("end") < alive("valley"));
    let valley = |name: &str| mark(trial(&document, name), "valley").rss_bytes;
    assert!(valley("glibc") > 2 * valley("arena"), "glibc retains {}, the arena {}", valley("glibc"), valley("arena"));
}

#[test]
fn pooled_uploads_retain_more_memory_than_streamed_ones() {
    if !long_tests_run() || !has_maven() {
        return;
    }
    let call = run("netty-pools", "netty-pools-quick").with("--only cr3-pooled").with("--only cr3-streaming");
    let document = call.run().expect(0).document();
    assert_completed(&document);
    let [pooled, streaming] = ["cr3-pooled", "cr3-streaming"].map(|name| trial(&document, name));
    assert_eq!((phase(pooled, "large").ok, phase(streaming, "large").ok), (10, 10));
    let loaded = |trial| mark(trial, "loaded").rss_bytes;
    assert!(loaded(pooled) > loaded(streaming) + 32 * MIB, "pooled {}, streamed {}", loaded(pooled), loaded(streaming));
    assert!(mark(pooled, "rested").rss_bytes > loaded(pooled) / 5 * 4, "a rest does not return the pooled memory");
}

#[test]
fn the_footprint_of_an_instance_is_measured() {
    if !long_tests_run() || !has_maven() {
        return;
    }
    let _folder = SERVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let document = run("stateful-services", "footprint-quick").run().expect(0).document();
    assert_completed(&document);
    let memory = trial(&document, "memory");
    let bytes = value(memory, "bytes_per_instance");
    assert!((400.0..480.0).contains(&bytes), "{:?}", figure(memory, "bytes_per_instance"));
    let counted = mark(memory, "n8000").counters.get("instances");
    assert_eq!(counted, Some(&8000.0));
}

#[test]
fn services_run_their_own_phases_and_count() {
    if !long_tests_run() || !has_maven() {
        return;
    }
    let _folder = SERVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let call = run("stateful-services", "stateful-services-quick").with("--only memory-64m");
    let document = call.with("--only replicated-3-64m").run().expect(0).document();
    assert_completed(&document);
    for (name, operations) in [("memory-64m", 20_000), ("replicated-3-64m", 200)] {
        let trial = trial(&document, name);
        for work in ["get", "put"] {
            assert_eq!(phase(trial, work).ok, operations, "{name}");
        }
        assert!(mark(trial, "done").rss_bytes > 50 * MIB);
    }
}
