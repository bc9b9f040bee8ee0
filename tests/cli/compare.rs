//! Comparing, judging, and displaying: typos, and results of recorded archives.

use crate::called::{folder, loadline, loadline_beside, read, report, root};
use loadline::report::export::Format;

const SCENARIO: &str = "\
name: pair
subject: {command: [java, '{jvm}', -jar, app.jar, '{port}']}
configurations: {a: {heap: 6m}, b: {heap: 12m}}
load: [{warmup: {same: steady}}, {steady: {closed: {connections: 1, duration: 20s}, get: /}}]
";

/// Calls the program next to a scenario, which must not start anything.
#[track_caller]
fn refused(scenario: &str, arguments: &[&str], says: &[&str]) {
    loadline_beside("pair.loadline.yaml", scenario, arguments).refused(says);
}

#[test]
fn invalid_comparisons_are_rejected_with_a_hint() {
    let check = |arguments: &[&str], expect: &str| refused(SCENARIO, &[&["compare"], arguments].concat(), &[expect]);
    let file = "pair.loadline.yaml";
    check(&[], "nothing to compare");
    check(&["."], "is a directory");
    check(&["absent.yaml"], "cannot read the scenario");
    check(&[file, "--only", "a"], "nothing to compare it with");
    check(&[file, "--only", "c"], "no configuration is named `c`");
    check(&[file, "--vary", "gcc=serial,g1"], "did you mean `gc`?");
    check(&[file, "--vary", "gc=serial,g2"], "`g2` is not a collector");
    check(&[file, "--vary", "gc"], "write it as `gc=serial,g1`");
    check(&[file, "--baseline", "c"], "neither a configuration nor an archive");
    check(&[file, "--least", "rss=2x"], "is not an amount");
    check(&[file, "--confidence", "200%"], "between 50% and 99.99%");
    check(&[file, "--metric", "rsss.loaded"], "similar names are `rss.loaded`");
    check(&[file, "--metric", "rss"], "choose one of these: `rss.start`");
    check(&[file, "--budget", "rss.loaded"], "it has no comparison");
    check(&[file, "--budget", "rss.loaded<=20ms"], "in bytes (`60MiB`)");
    check(&[file, "--budget", "p98<=20ms"], "similar names are");
    check(&[file, "--until-sure", "3"], "it must be between 5 and 1000");
    check(&[file, "--csv", "-", "--json"], "only one output can go to stdout");
}

#[test]
fn an_unwritable_output_file_is_rejected_before_anything_runs() {
    let written = ["compare", "pair.loadline.yaml", "--html", "absent/report.html"];
    let says = ["cannot write absent/report.html", "hint: create the directory first: `mkdir -p absent`"];
    refused(SCENARIO, &written, &says);
}

#[test]
fn a_large_matrix_needs_confirmation() {
    let many =
        "matrix: {gc: [serial, g1, parallel], heap: [6m, 8m, 12m, 16m], jvm: {c1: [-XX:TieredStopAtLevel=1], c2: []}}";
    let matrix = SCENARIO.replace("configurations: {a: {heap: 6m}, b: {heap: 12m}}", many);
    let says = ["24 configurations in 5 blocks: 120 trials, at least 82 minutes", "--yes"];
    refused(&matrix, &["compare", "pair.loadline.yaml"], &says);
}

#[test]
fn a_scenarios_comparison_settings_are_validated() {
    let check = |added: &str, expect: &str| {
        refused(&format!("{SCENARIO}{added}"), &["compare", "pair.loadline.yaml"], &[expect]);
    };
    check("compare: {baselin: a}\n", "did you mean `baseline`?");
    check("compare: {baseline: c}\n", "no configuration is named `c`");
    check("compare: {least: {rss: much}}\n", "is not an amount");
    check("compare: {confidence: 3}\n", "is not a confidence");
    check("budgets: [rss]\n", "is not a budget");
    check("budgets: ['rss.loded<=5MiB']\n", "cannot be judged");
    check("compare: {trials: 0}\n", "`trials` is 0");
}

#[test]
fn a_comparison_is_shown() {
    insta::assert_snapshot!(report("compared", &[]));
}

#[test]
fn a_comparison_is_shown_with_all_details() {
    insta::assert_snapshot!(report("compared", &["--each", "--details", "--metric", "rss.loaded,p99"]));
}

#[test]
fn budgets_decide_the_exit_code() {
    let code = |options: &[&str]| report("compared", options).code;
    assert_eq!(code(&["--budget", "rss.loaded<=1GiB"]), 0);
    assert_eq!(code(&["--budget", "rss.loaded<=10MiB"]), 1);
    assert_eq!(code(&["--budget", "rss.loaded<=10MiB", "--budget", "rss.loaded<=1GiB"]), 1);
    // These trials have no limit, so their charge was not measured.
    assert_eq!(code(&["--budget", "charge.loaded<=10MiB"]), 0);
    assert_eq!(code(&["--budget", "charge.loaded<=10MiB", "--undecided", "fail"]), 1);
    assert_eq!(code(&["--budget", "charge.loaded<=10MiB", "--strict"]), 2);
    assert_eq!(code(&["--budget", "rss.loaded<=+1%", "--baseline", "archives/compared"]), 0);
    assert_eq!(code(&["--budget", "rss.loaded<=-50%", "--baseline", "archives/compared"]), 1);
    assert_eq!(code(&["--budget", "rss.loaded<=+1%", "--baseline", "archives/absent"]), 2);
    let said = report("compared", &["--budget", "rss.loaded<=10MiB"]).stdout;
    assert!(said.starts_with("budget rss.loaded<=10MiB was exceeded by "), "{said}");
}

#[test]
fn an_archive_compared_with_itself_has_no_differences() {
    let document = loadline(&["compare", "archives/compared", "archives/compared", "--json"]).expect(0).json();
    let rows = document["comparisons"].as_array().unwrap();
    assert!(rows.len() > 20 && document["trials"].as_array().unwrap().len() == 24, "{}", rows.len());
    for row in rows {
        assert_eq!(row["difference"], 0.0, "{row}");
        assert!(["equivalent", "cannot_tell"].contains(&row["verdict"].as_str().unwrap()), "{row}");
    }
    let kinds: Vec<&str> =
        document["doubts"].as_array().unwrap().iter().map(|doubt| doubt["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"not_interleaved"), "{kinds:?}");
}

#[test]
fn comparing_different_scenarios_lists_other_differences() {
    let called = loadline(&["compare", "archives/nmt", "archives/failed"]).expect(0);
    assert!(called.stdout.contains("differ in more than their configurations"), "{called}");
    let called = loadline(&["compare", "archives/compared", "archives/nmt"]).expect(2);
    assert!(called.stderr.contains("no configuration in common"), "{called}");
    let called = loadline(&["compare", "archives/two", "archives/two", "--heap", "6m"]);
    assert!(called.code == 2 && called.stderr.contains("comparing two archives runs nothing"), "{called}");
}

#[test]
fn every_format_can_be_written_and_one_to_stdout() {
    let into = tempfile::tempdir().unwrap();
    let at = |name: &str| into.path().join(name).display().to_string();
    // A comment needs a baseline.
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.word()).filter(|word| *word != "comment").collect();
    let mut options: Vec<String> = names.iter().flat_map(|name| [format!("--{name}"), at(name)]).collect();
    options.extend(["--plot".to_owned(), at("plots")]);
    report("compared", &options.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
    let begins = ["<!doctype html>", "", "configuration,block,", "<?xml", "[", "# ", "{"];
    assert_eq!(names.len(), begins.len());
    let page = std::fs::read_to_string(root().join("docs/exports.md")).unwrap();
    assert!(names.iter().all(|name| page.contains(&format!("`--{name}"))), "docs/exports.md lacks a format");
    for (name, begin) in names.iter().zip(begins) {
        let text = read(into.path().join(name));
        assert!(text.len() > 200 && text.to_lowercase().starts_with(begin), "{name}: {}", &text[..80]);
    }
    let drawn: Vec<_> =
        std::fs::read_dir(into.path().join("plots")).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in &drawn {
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes.starts_with(b"<svg") && path.extension().is_some_and(|ending| ending == "svg"), "{path:?}");
    }
    assert!(drawn.len() >= 3, "{drawn:?}");
    for name in names {
        let alone = report("compared", &[&format!("--{name}"), "-"]);
        assert_eq!((alone.code, alone.stdout.as_str()), (0, read(into.path().join(name)).as_str()), "{name}");
    }
}

#[test]
fn github_gets_a_summary_and_annotations() {
    let into = tempfile::tempdir().unwrap();
    let summary = into.path().join("summary.md");
    std::fs::write(&summary, "before\n").unwrap();
    let arguments = ["report", "archives/compared", "--github", "--budget", "rss.loaded<=10MiB"];
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(arguments)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .current_dir(folder())
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
    let text = read(&summary);
    assert!(text.starts_with("before\n") && text.contains("rss.loaded"), "{text}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("::error title="), "{done:?}");
    let elsewhere = report("compared", &["--github"]);
    assert!(elsewhere.code == 0 && elsewhere.stderr.contains("GITHUB_STEP_SUMMARY is not set"), "{elsewhere}");
}
