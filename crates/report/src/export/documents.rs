//! Checks `docs/ci.md` and `docs/exports.md` against the code: examples match the exports, a scenario parses, and
//! documents have the names in the metrics table.

use super::metrics::{Metric, Source, TABLE};
use super::{Unchanged, comment, comparisons_csv, csv, markdown, openmetrics, samples};
use std::path::Path;

const CI: &str = include_str!("../../../../docs/ci.md");
const EXPORTS: &str = include_str!("../../../../docs/exports.md");

fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let after = document.match_indices(&start).map(|(at, start)| &document[at + start.len()..]);
    after.map(|text| text.split("```").next().unwrap()).collect()
}

#[test]
fn documented_examples_match_the_exports() {
    let document = samples::compared();
    for (language, texts) in [
        ("csv", vec![csv(&document), comparisons_csv(&document)]),
        ("markdown", vec![markdown(&document), comment(&document, Unchanged::Silent)]),
    ] {
        let given: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
        let examples = blocks(EXPORTS, language);
        assert!(!examples.is_empty(), "no example in {language}");
        for line in examples.into_iter().flat_map(str::lines) {
            let cut = |given: &&str| given.contains(line);
            assert!(given.iter().any(cut), "docs/exports.md shows a line that no export contains: {line}");
        }
    }
}

#[test]
fn documented_metrics_are_exported() {
    let given = openmetrics(&samples::compared());
    let section = EXPORTS.split("\n## OpenMetrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let examples = section.lines().find(|line| line.starts_with("Examples: ")).unwrap();
    let names: Vec<&str> = examples.split('`').skip(1).step_by(2).filter_map(|of| of.split('{').next()).collect();
    assert_eq!(names.len(), 3, "{examples}");
    assert!(names.iter().all(|name| given.contains(&format!("\n{name}{{"))), "{names:?}");
}

#[test]
fn the_documented_ci_scenario_is_valid() {
    let text = blocks(CI, "yaml").into_iter().find(|text| text.contains("app.loadline.yaml\nname")).unwrap();
    let scenario = crate::scenario::parse(text, Path::new("."), &[]).unwrap();
    assert_eq!(scenario.budgets.len(), 3);
    assert_eq!(scenario.trials, 5);
    scenario.validate().unwrap();
}

#[test]
fn csv_rows_of_searches_and_tunings_are_documented() {
    let is_cell = |of: &&Metric| matches!(of.source, Source::Searched(..) | Source::Tuned(..));
    for of in TABLE.iter().filter(is_cell) {
        assert!(EXPORTS.contains(&format!("`{}`", of.name)), "docs/exports.md does not describe {}", of.name);
    }
}
