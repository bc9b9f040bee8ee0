//! `docs/ci.md` and `docs/exports.md` are held against what they speak of: examples against what the exports give,
//! YAML against parsers, commands against the options there are.

use super::{comparisons_csv, csv, github_annotations, gnuplot, jmh, junit, markdown, openmetrics, samples};
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
    ("compare", &["--csv", "--html", "--junit"]),
    ("report", &["--gnuplot", "--html", "--markdown", "--plot"]),
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
    for (language, texts) in [
        ("csv", vec![csv(&document), comparisons_csv(&document)]),
        ("markdown", vec![markdown(&document)]),
        ("xml", vec![junit(&document)]),
        ("json", vec![jmh(&document)]),
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
fn the_workflow_is_yaml_whose_steps_exist() {
    let text = blocks(CI, "yaml").into_iter().find(|text| text.contains("jobs:")).unwrap();
    let workflow: yaml_serde::Value = yaml_serde::from_str(text).unwrap();
    let steps = workflow["jobs"]["weigh"]["steps"].as_sequence().unwrap();
    for step in steps {
        let (uses, run) = (step.get("uses").is_some(), step.get("run").is_some());
        assert!(uses != run, "a step uses an action or runs commands: {step:?}");
    }
    // What is asked of a step's outputs is a step with that id.
    assert!(text.contains("steps.loadline.outputs") && text.contains("id: loadline\n"));
    for text in blocks(CI, "yaml") {
        yaml_serde::from_str::<yaml_serde::Value>(text).unwrap();
    }
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
