//! `docs/ci.md` and `docs/exports.md` are held against what they speak of: examples against what the exports give,
//! a scenario against its parser, commands against the options there are. `tests/action` holds the workflows to theirs.

use super::{
    BenchmarkActionFile, Unchanged, bencher, benchmark_action, comment, comparisons_csv, csv, github_annotations,
    gnuplot, jmh, junit, markdown, openmetrics, samples,
};
use std::path::Path;

const CI: &str = include_str!("../../../docs/ci.md");
const EXPORTS: &str = include_str!("../../../docs/exports.md");

/// Options of the verbs that write or judge results, as far as the documents name them.
const OPTIONS: [(&str, &[&str]); 5] = [
    (
        "run",
        &[
            "--baseline",
            "--budget",
            "--comment",
            "--csv",
            "--github",
            "--html",
            "--junit",
            "--out",
            "--quiet",
            "--strict",
            "--trials",
        ],
    ),
    ("compare", &["--comment", "--csv", "--html", "--junit"]),
    ("report", &["--baseline", "--comment", "--gnuplot", "--html", "--markdown", "--plot"]),
    ("load", &["--gnuplot"]),
    ("doctor", &[]),
];

/// The fenced blocks of a document in this language.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let after = document.match_indices(&start).map(|(at, start)| &document[at + start.len()..]);
    after.map(|text| text.split("```").next().unwrap()).collect()
}

#[test]
fn examples_are_what_the_exports_give() {
    let document = samples::compared();
    let mut texts = vec![github_annotations(&document), openmetrics(&document)];
    texts.extend(gnuplot(&document, &[samples::evidence(0, "steady")]).into_iter().map(|(_, text)| text));
    let smaller = benchmark_action(&document, BenchmarkActionFile::Smaller);
    for (language, texts) in [
        ("csv", vec![csv(&document), comparisons_csv(&document)]),
        ("markdown", vec![markdown(&document), comment(&document, Unchanged::Silent)]),
        ("xml", vec![junit(&document)]),
        ("json", vec![jmh(&document), bencher(&document), smaller]),
        ("text", texts),
    ] {
        let given: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
        let examples = blocks(EXPORTS, language);
        assert!(!examples.is_empty(), "no example in {language}");
        for line in examples.into_iter().flat_map(str::lines) {
            let cut = |given: &&str| given.contains(line);
            assert!(given.iter().any(cut), "docs/exports.md shows what is not given: {line}");
        }
    }
}

#[test]
fn the_scenario_of_the_document_is_one() {
    let text = blocks(CI, "yaml").into_iter().find(|text| text.contains("app.loadline.yaml\nname")).unwrap();
    let scenario = crate::scenario::parse(text, Path::new("."), &[]).unwrap();
    assert_eq!(scenario.budgets.len(), 3);
    assert_eq!(scenario.trials, 5);
    scenario.validate().unwrap();
}

#[test]
fn every_option_named_is_one() {
    for document in [CI, EXPORTS] {
        let commands = document.replace("\\\n", " ");
        let lines = commands.lines().filter_map(|line| line.split_once("loadline ")).map(|(_, rest)| rest);
        for line in lines {
            let verb = line.split_whitespace().next().unwrap_or_default();
            let Some((_, options)) = OPTIONS.iter().find(|(known, _)| *known == verb) else { continue };
            // Behind the command in a sentence other things are spoken of.
            let command = line.split('`').next().unwrap();
            for option in command.split_whitespace().filter(|word| word.starts_with("--")) {
                assert!(options.contains(&option), "`loadline {verb}` has no {option}: {line}");
            }
        }
    }
}
