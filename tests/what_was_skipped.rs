//! The last target of `cargo test`, by name: prints what earlier tests skipped, and which variable turns that into a
//! failure. Never fails itself.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Names of tests shown per reason.
const NAMES_MAX: usize = 3;

fn main() {
    // Test harnesses list tests this way; this target has none.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let file = loadline_test_support::records();
    let records = fs::read_to_string(&file).unwrap_or_default();
    print!("{}", summary(&records));
    let _ = fs::remove_file(file);
    forget_other_runs();
}

/// A line per reason, with the variable that forbids it and the affected tests.
fn summary(records: &str) -> String {
    let mut tests: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for record in records.lines() {
        if let [variable, why, test] = record.split('\t').collect::<Vec<_>>()[..] {
            tests.entry((variable, why)).or_default().insert(test);
        }
    }
    let mut text = String::new();
    for ((variable, why), tests) in tests {
        let shown = tests.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = if tests.len() > NAMES_MAX { ", …" } else { "" };
        let what = if tests.len() == 1 { "1 test".to_owned() } else { format!("{} tests", tests.len()) };
        // A variable with a value makes the test run; one without makes a missing dependency a failure.
        let verb = if variable.contains('=') { "runs" } else { "fails" };
        text += &format!("skipped in {what}, because {why} ({verb} with {variable}): {shown}{more}\n");
    }
    text
}

/// A failed run never reached its last target, and left its records.
fn forget_other_runs() {
    for entry in fs::read_dir(loadline_test_support::folder()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(run) = name.strip_prefix(loadline_test_support::RECORDS_BEGIN) else { continue };
        let runs = run.split_once('-').is_some_and(|(pid, ticks)| {
            let now = pid.parse().ok().and_then(loadline_test_support::started_ticks);
            now.is_some_and(|now| now.to_string() == ticks)
        });
        if !runs {
            let _ = fs::remove_file(entry.path());
        }
    }
}
