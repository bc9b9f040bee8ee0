//! Findings on JVMs with known memory, and no unexpected ones on an idle JVM.

use crate::invocation::{every_release, jdk, newest};
use crate::standing::LaunchPlan;
use crate::waiting::{LONG, wait_for};
use loadline::diagnosis::COPIED_DEFAULTS;
use loadline::record::{AccountDocument, FindingRecord};
use std::process::Command;

fn kind(found: &FindingRecord) -> String {
    let kind = serde_json::to_value(&found.finding).unwrap();
    kind["kind"].as_str().unwrap().to_owned()
}

/// The finding of this kind, and its first remedy.
#[track_caller]
fn shows(document: &AccountDocument, wanted: &str) -> (FindingRecord, String) {
    let found = document.findings.iter().find(|found| kind(found) == wanted);
    let all: Vec<&str> = document.findings.iter().map(|found| found.text.as_str()).collect();
    let found = found.unwrap_or_else(|| panic!("no {wanted}: {all:#?}")).clone();
    println!("{wanted}: {}", found.text);
    let first = found.remedies.first().map(|change| change.typed().join(" ")).unwrap_or_default();
    (found, first)
}

#[test]
fn planted_memory_use_is_found() {
    let Some(release) = every_release().into_iter().next() else { return };
    // The JVM's heap is fully resident and nearly empty, and the collection for `--classes` reveals the live set.
    let options = "-XX:+UseG1GC -Xms128m -Xmx128m -XX:+AlwaysPreTouch";
    let (retained, _) = LaunchPlan::on(release, options).worked("RetainedMalloc");
    let document = retained.document("--classes");
    let (found, first) = shows(&document, "malloc_retained");
    assert!(found.gain_bytes_max >= Some(30 << 20) && first == "MALLOC_ARENA_MAX=1", "{found:?}");
    let (found, first) = shows(&document, "g1_on_small_heap");
    assert!(found.costs_bytes >= 3 << 20 && first.is_empty(), "the user chose the collector: {found:?}");
    let (found, first) = shows(&document, "heap_far_above_live");
    assert!(found.gain_bytes_max >= Some(100 << 20) && first.is_empty(), "the user set the heap size: {found:?}");
    drop(retained);

    let (direct, _) = LaunchPlan::on(release, "-XX:+UseSerialGC -Xmx2g").worked("DirectBuffers");
    let (found, first) = shows(&direct.document(""), "direct_memory_waits");
    assert!(found.costs_bytes >= 64 << 20 && first.starts_with("-XX:MaxDirectMemorySize="), "{found:?}");
}

#[test]
fn parked_threads_are_found() {
    let Some(release) = newest().pop() else { return };
    let threads = LaunchPlan::on(release, "-XX:+UseSerialGC -Xmx32m").serving("Threads64");
    // In its first second, a JVM has no meaningful share of CPU time.
    let idle = || {
        let document = threads.document("");
        if document.findings.iter().any(|found| kind(found) == "threads_idle") {
            Ok(document)
        } else {
            Err(document.findings)
        }
    };
    let (found, first) = shows(&wait_for("they are idle for a second", LONG, idle), "threads_idle");
    assert!(found.text.contains("64 of `parked-*`") && first.is_empty(), "{}", found.text);
    let quiet: Vec<String> = threads.document("").findings.iter().map(kind).collect();
    assert_eq!(quiet, ["threads_idle"], "an idle server has no other findings");
}

/// Memory retained by an arena is not attributed to the compilers if all threads share the arena.
#[test]
fn memory_in_an_arena_shared_with_a_compiler_is_found() {
    let Some(release) = newest().pop() else { return };
    let plan = LaunchPlan::on(release, "-XX:+UseSerialGC -Xmx32m").env("MALLOC_ARENA_MAX", "2");
    let (retained, _) = plan.worked("RetainedMalloc");
    shows(&retained.document(""), "malloc_retained");
}

/// The table covers JDK 11 to 25; every installed release is checked.
#[test]
fn options_listed_as_defaults_are_the_defaults() {
    for release in every_release() {
        let java = jdk(release).unwrap().java;
        let out = Command::new(java).args(["-XX:+PrintFlagsFinal", "-version"]).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        let flags: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        for (name, default) in COPIED_DEFAULTS.iter().filter(|(name, _)| *name != "Xshare") {
            let row = flags.iter().find(|row| row.get(1) == Some(name));
            let value = row.unwrap_or_else(|| panic!("JDK {release} has no {name}"))[3];
            let same = value == *default || value.parse::<f64>().ok() == default.parse::<f64>().ok();
            assert!(same && (value == *default || value.parse::<f64>().is_ok()), "JDK {release}: {name}={value}");
        }
    }
}
