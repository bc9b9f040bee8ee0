//! Figures derived from marks, through the program: one of the archive's two configurations returns what a spike added;
//! the other keeps it, which makes the cost of an instance indistinguishable from drift.

use crate::called::{self, Called, loadline, loadline_beside};
use serde_json::Value;

fn report(options: &[&str]) -> Called {
    called::report("figures", options)
}

fn document(options: &[&str]) -> Value {
    report(&[&["--json"], options].concat()).json()
}

/// The line with all of these words.
fn line<'a>(text: &'a str, words: &[&str]) -> &'a str {
    let holds = |line: &&str| words.iter().all(|word| line.contains(word));
    text.lines().find(holds).unwrap_or_else(|| panic!("no line has {words:?}: {text}"))
}

#[test]
fn the_summary_shows_each_figure_with_its_ideal() {
    let called = report(&[]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{called}");
    let text = called.stdout;
    assert!(text.contains("\nfigures derived from marks\n"), "{text}");
    let cells = |words: &[&str]| line(&text, words).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lean = cells(&["elasticity", "lean", "0.80"]);
    assert_eq!(lean[2], "0.77", "{lean:?}");
    assert_eq!((lean[4].as_str(), lean[7].as_str()), ("…", "4"), "{lean:?}");
    assert_eq!(cells(&["elasticity", "stout", "0.80"])[2], "0.12");
    let cost = cells(&["bytes_per_instance", "lean", " B"]);
    assert!(cost[2].parse::<f64>().is_ok_and(|bytes| (455.0..475.0).contains(&bytes)), "{cost:?}");
    assert_eq!(cells(&["bytes_per_instance", "stout", "not computed"])[6..], ["0", "of", "4"]);
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("the share of rss growth from empty to spike that was gone by valley."), "{text}");
    assert!(
        one_line.contains("the slope of heap_live from 0 to 10,000 instances, a line through 3 marks; standard error"),
        "{text}"
    );
    let said = "bytes_per_instance of stout was not computed in 4 of 4 trials; in trial";
    assert!(one_line.contains(said) && one_line.contains("between marks with the same count, 0"), "{text}");
    assert!(line(&text, &["worse", "elasticity", "0.77", "0.12"]).contains("…"), "{text}");
}

#[test]
fn the_document_has_the_figures_of_each_trial() {
    let document = document(&[]);
    for trial in document["trials"].as_array().unwrap() {
        let figures = trial["figures"].as_array().unwrap();
        assert_eq!(figures.len(), 2);
        let lean = trial["configuration"] == "lean";
        for figure in figures {
            let refused = figure["name"] == "bytes_per_instance" && !lean;
            assert_eq!((figure["value"].is_null(), figure["why"].is_string()), (refused, refused), "{figure}");
            assert_eq!(figure["points"].as_array().unwrap().len(), 3, "{figure}");
        }
    }
    let of = |metric: &str| -> Vec<&Value> {
        document["metrics"].as_array().unwrap().iter().filter(|record| record["metric"] == metric).collect()
    };
    assert_eq!((of("elasticity").len(), of("bytes_per_instance").len()), (2, 1));
    assert_eq!(of("elasticity")[0]["unit"], "ratio");
    assert_eq!(of("bytes_per_instance")[0]["unit"], "bytes_per");
    assert!(of("bytes_per_instance")[0]["low"].is_number());
    let verdict = document["comparisons"].as_array().unwrap().iter().find(|row| row["metric"] == "elasticity").unwrap();
    assert_eq!((verdict["verdict"].as_str(), verdict["primary"].as_bool()), (Some("worse"), Some(true)), "{verdict}");
}

#[test]
fn budgets_on_figures_are_judged() {
    let judged = |budget: &str| -> Vec<(String, String)> {
        let document = document(&["--budget", budget]);
        let records = document["budgets"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        records.map(|record| (text(&record["verdict"]), text(&record["why"]))).collect()
    };
    let elastic = judged("elasticity>=0.7");
    assert_eq!((elastic[0].0.as_str(), elastic[1].0.as_str()), ("pass", "fail"), "{elastic:?}");
    let cost = judged("bytes_per_instance<=500B");
    assert_eq!((cost[0].0.as_str(), cost[1].0.as_str()), ("pass", "undecided"), "{cost:?}");
    assert!(cost[0].1.contains(" B, 4 trials)"), "{cost:?}");
    assert!(
        cost[1].1.starts_with("`bytes_per_instance` could not be computed in all 4 trials: within drift:"),
        "{cost:?}"
    );
    assert_eq!(report(&["--budget", "elasticity>=0.7"]).code, 1);
    assert_eq!(report(&["--budget", "bytes_per_instance<=500B"]).code, 0);
    assert_eq!(report(&["--budget", "bytes_per_instance<=500B", "--strict"]).code, 2);
    report(&["--budget", "bytes_per_instance<=20ms"]).refused(&["in bytes (`500B`)"]);
    report(&["--budget", "elasticity>=5MiB"]).refused(&["as a number (`0.7`)"]);
}

#[test]
fn every_format_has_the_figures() {
    for (format, expect) in [
        ("html", "Figures derived from marks"),
        ("markdown", "bytes_per_instance"),
        ("csv", "elasticity,ratio,0.7"),
        ("openmetrics", "loadline_figure_bytes{configuration=\"lean\",metric=\"bytes_per_instance\"} 4"),
        ("junit", "elasticity"),
        ("jmh", "bytes_per_instance"),
    ] {
        let called = report(&[&format!("--{format}"), "-", "--budget", "elasticity>=0.1"]);
        assert!(called.code == 0 && called.stdout.contains(expect), "{format}: {called}");
    }
}

#[test]
fn archives_are_compared_by_their_figures() {
    let called = loadline(&["compare", "archives/figures", "archives/figures", "--metric", "elasticity", "--json"]);
    assert_eq!(called.code, 0, "{called}");
    let document = called.json();
    let judged: Vec<&Value> =
        document["comparisons"].as_array().unwrap().iter().filter(|row| row["primary"] == true).collect();
    assert!(judged.len() == 2 && judged.iter().all(|row| row["metric"] == "elasticity"), "{judged:?}");
    // If no trial of an archive has a figure, the error gives the reason.
    called::report("compared", &["--budget", "elasticity>=0.7"]).refused(&["define it under `figures`"]);
}

#[test]
fn underivable_figures_are_rejected_before_anything_runs() {
    const SCENARIO: &str = "\
name: pair
subject: {command: [java, '{jvm}', -jar, app.jar, '{port}']}
load: [{steady: {closed: {connections: 1, duration: 20s}, get: /}}]
";
    let check = |figure: &str, expect: &str| {
        let text = format!("{SCENARIO}figures: [{figure}]\n");
        loadline_beside("pair.loadline.yaml", &text, &["run", "pair.loadline.yaml"]).refused(&[expect]);
    };
    check("{elasticity: {of: rss, base: start, spike: peak, valley: loaded}}", "no mark is named `peak`");
    check("{elasticity: {of: rsss, base: start, spike: loaded, valley: collected}}", "did you mean `rss`?");
    check("{elasticity: {of: rate, base: start, spike: loaded, valley: collected}}", "not measured at marks");
    check("{slope: {name: rss, of: rss, per: n}}", "already named `rss`");
    check("{slope: {of: threads, per: n}}", "not measured in bytes");
    check("{slope: {of: rss}}", "missing field `per`");
}
