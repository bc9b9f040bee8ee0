//! Histories through the program: archives of many commits derived from a recorded one, and errors.

use crate::called::{Called, folder, loadline, loadline_in, read};
use crate::schema::Schema;
use loadline_test_support::write;
use serde_json::{Value, json};
use std::fs::create_dir_all;
use std::path::Path;

pub(crate) const HISTORY: &str = "history.schema.json";
const MIB: i64 = 1 << 20;

/// The differences in a commit's archive.
#[derive(Debug, Clone, Default)]
struct Night {
    commit: Option<String>,
    build: Option<String>,
    /// Additional metaspace under load, in MiB.
    metaspace_mib: i64,
    jdk: Option<&'static str>,
    scenario: Option<String>,
}

/// The hash of a fake commit.
fn hash(number: usize) -> String {
    format!("{:07x}{number:033x}", (number * 7_919_773 + 11_111_111) % (1 << 28))
}

fn of_commit(number: usize) -> Night {
    Night { commit: Some(hash(number)), ..Night::default() }
}

/// The recorded comparison as if from this commit and day, with slight variations as between JVM starts.
fn archive(day: usize, of: &Night) -> String {
    let recorded = read(folder().join("archives/compared/archive.jsonl"));
    let line = |(number, line): (usize, &str)| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if let Some(conditions) = record.get_mut("conditions") {
            conditions["started"] = json!(format!("2026-{:02}-{:02}T02:00:00Z", day / 28 + 1, day % 28 + 1));
            let from = |known: &Option<String>, word: &str| json!(known.as_ref().map(|_| word));
            conditions["source"] = json!({
                "commit": of.commit, "commit_from": from(&of.commit, "git"),
                "build": of.build, "build_from": from(&of.build, "BUILD_NUMBER"),
            });
            if let Some(scenario) = &of.scenario {
                conditions["scenario"] = json!(scenario);
            }
        }
        if record["record"] == "trial" {
            // Several hundred KiB of noise, without repetition.
            let noise = ((day * 37 + number * 101) % 19) as i64 * 40_000 - 360_000;
            for mark in record["marks"].as_array_mut().unwrap() {
                let more = noise + if mark["name"] == "loaded" { of.metaspace_mib * MIB } else { 0 };
                mark["rss_bytes"] = json!(mark["rss_bytes"].as_i64().unwrap() + more);
                for owner in mark["account"]["owners"].as_array_mut().unwrap() {
                    if owner["name"] == "metaspace" {
                        owner["rss_bytes"] = json!(owner["rss_bytes"].as_i64().unwrap() + more - noise);
                    }
                }
            }
            if let Some(jdk) = of.jdk {
                record["jvm"]["version"] = json!(jdk);
            }
        }
        format!("{record}\n")
    };
    recorded.lines().enumerate().map(line).collect()
}

fn put(folder: &Path, name: &str, day: usize, of: &Night) {
    write(folder.join(name).join("archive.jsonl"), archive(day, of));
}

/// Eight commits; the sixth adds 8 MiB of metaspace.
fn eight(folder: &Path) {
    for day in 0..8 {
        let metaspace_mib = if day >= 5 { 8 } else { 0 };
        put(folder, &format!("night/{day}"), day, &Night { metaspace_mib, ..of_commit(day) });
    }
}

fn short(number: usize) -> String {
    hash(number)[..7].to_owned()
}

fn document(folder: &Path, arguments: &[&str]) -> Value {
    loadline_in(folder, &[&["history"], arguments, &["--json"]].concat()).expect(0).json()
}

fn refused(folder: &Path, arguments: &[&str], expect: &str) {
    loadline_in(folder, &[&["history"], arguments].concat()).refused(&[expect]);
}

#[test]
fn only_the_responsible_commit_and_owner_are_named() {
    let folder = tempfile::tempdir().unwrap();
    eight(folder.path());
    let called = loadline_in(folder.path(), &["history", "night", "--metric", "rss.loaded", "--only", "lean"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{called}");
    let told = called.flat();
    assert_eq!(told.matches(" since ").count(), 1, "{called}");
    let range = format!("since {} ({}..{})", short(5), short(4), short(5));
    assert!(
        told.contains("`rss.loaded` +7.9 MiB (") && told.contains(&range) && told.contains(": metaspace +8.0 MiB"),
        "{told}"
    );
    // Every point has its row.
    (0..8).for_each(|day| assert!(called.stdout.contains(&short(day)), "{called}"));
}

#[test]
fn a_history_document_matches_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    eight(folder.path());
    let list: String = (0..8).map(|day| format!("{} Commit {day}\n", hash(day))).collect();
    write(folder.path().join("commits"), list);
    let full = document(folder.path(), &["night", "--commits", "commits"]);
    Schema::published(HISTORY).describes(&full, "eight commits");
    let change = &full["series"][0]["metrics"][0]["changes"][0];
    assert_eq!((&change["point"], &change["verdict"], &full["order"]), (&json!(5), &json!("worse"), &json!("commits")));
    assert_eq!(full["series"][0]["points"][5]["subject"], "Commit 5");
}

#[test]
fn a_change_of_conditions_is_not_blamed_on_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    for day in 0..8 {
        let (metaspace_mib, jdk) = if day >= 4 { (8, Some("21.0.3+9-LTS")) } else { (0, None) };
        put(folder.path(), &format!("{day}"), day, &Night { metaspace_mib, jdk, ..of_commit(day) });
    }
    let called = loadline_in(folder.path(), &["history", ".", "--metric", "rss.loaded", "--only", "lean"]);
    let told = called.flat();
    let expect =
        "but conditions also changed then (JDK: 17.0.15+6-Debian-1deb12u1 | 21.0.3+9-LTS), so no commit can be blamed";
    assert!(called.code == 0 && told.contains(expect) && !told.contains(&format!("..{}", short(4))), "{called}");
}

#[test]
fn archives_of_a_commit_form_one_point_unless_conditions_differ() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a", 0, &of_commit(0));
    put(folder.path(), "b", 1, &of_commit(0));
    put(folder.path(), "c", 2, &Night { jdk: Some("21.0.3"), ..of_commit(0) });
    put(folder.path(), "d", 3, &of_commit(1));
    let points = |arguments: &[&str]| -> Vec<(String, u64)> {
        let found = document(folder.path(), &[&[".", "--only", "lean"], arguments].concat());
        let points = found["series"][0]["points"].as_array().unwrap().clone();
        let name = |point: &Value| (point["name"].as_str().unwrap().to_owned(), point["trials"].as_u64().unwrap());
        points.iter().map(name).collect()
    };
    let (one, other) = (short(0), short(1));
    let again = format!("{one} (2)");
    assert_eq!(points(&[]), [(one, 12), (again, 6), (other, 6)].map(|(name, trials)| (name, trials)));
    assert_eq!(points(&["--by", "date"]).len(), 4);
}

#[test]
fn commits_are_ordered_by_the_list() {
    let folder = tempfile::tempdir().unwrap();
    // In bisection order: neither the first nor the last commit comes first.
    for (day, commit) in [4, 2, 6, 5, 3].into_iter().enumerate() {
        let metaspace_mib = if commit >= 5 { 8 } else { 0 };
        put(folder.path(), &format!("{day}"), day, &Night { metaspace_mib, ..of_commit(commit) });
    }
    put(folder.path(), "side", 9, &of_commit(99));
    let list: String = (0..8).map(|commit| format!("{}\n", hash(commit))).collect();
    write(folder.path().join("list"), list);
    let asked = [".", "--commits", "list", "--only", "lean", "--metric", "rss.loaded"];
    let found = document(folder.path(), &asked);
    let series = &found["series"][0];
    let names: Vec<&str> =
        series["points"].as_array().unwrap().iter().map(|point| point["name"].as_str().unwrap()).collect();
    assert_eq!(names, [2, 3, 4, 5, 6].map(short));
    assert_eq!(series["metrics"][0]["changes"][0]["point"], 3);
    assert_eq!(found["left_out"], json!(["./side is from a commit that is not in the list"]));
    refused(folder.path(), &[".", "--commits", "absent"], "the list of commits absent cannot be read");
    write(folder.path().join("empty"), "\n");
    refused(folder.path(), &[".", "--commits", "empty"], "is empty");
}

#[test]
fn documents_and_archives_are_combined_by_scenario_and_build() {
    let folder = tempfile::tempdir().unwrap();
    for day in 0..3 {
        let build = Some(format!("{}", 40 + day));
        put(folder.path(), &format!("a{day}"), day, &Night { build, ..Night::default() });
    }
    let printed = loadline_in(folder.path(), &["report", "a1", "--json"]).stdout;
    write(folder.path().join("printed.json"), printed);
    std::fs::remove_dir_all(folder.path().join("a1")).unwrap();
    put(folder.path(), "other", 5, &Night { scenario: Some("elsewhere".to_owned()), ..Night::default() });
    let found = document(folder.path(), &[".", "--by", "build", "--only", "lean"]);
    let names = |series: &Value| -> Vec<String> {
        series["points"].as_array().unwrap().iter().map(|point| point["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&found["series"][0]), ["40", "41", "42"]);
    assert_eq!(found["left_out"], json!(["./other does not name its build"]));
    let all = document(folder.path(), &[".", "--only", "lean"]);
    let scenarios: Vec<&str> =
        all["series"].as_array().unwrap().iter().map(|series| series["scenario"].as_str().unwrap()).collect();
    assert_eq!((all["by"].as_str().unwrap(), scenarios.len(), scenarios[0] == scenarios[1]), ("date", 2, false));
}

#[test]
fn invalid_history_requests_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    create_dir_all(folder.path().join("none")).unwrap();
    refused(folder.path(), &["none"], "there is no archive in none");
    refused(folder.path(), &["absent"], "cannot read absent");
    put(folder.path(), "a", 0, &of_commit(0));
    refused(folder.path(), &["a", "--only", "fat"], "no archive has a configuration named `fat`");
    refused(folder.path(), &["a", "--metric", "rsss.loaded"], "similar names are `rss.loaded`");
    refused(folder.path(), &["a", "--metric", "rss"], "choose one of these: `rss.start`");
    refused(folder.path(), &["a", "--by", "build"], "no archives are left");
    refused(folder.path(), &["a", "--by", "month"], "invalid value 'month'");
    refused(folder.path(), &["a", "--html", "-", "--csv", "-"], "only one output can go to stdout");
    write(folder.path().join("cut/archive.jsonl"), "{\"record\": \"header\"");
    refused(folder.path(), &["cut"], "cut cannot be read: this is not a Loadline archive");
}

#[test]
fn damaged_archives_are_reported_and_the_rest_is_used() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a", 0, &of_commit(0));
    put(folder.path(), "b", 1, &of_commit(1));
    let whole = read(folder.path().join("b/archive.jsonl"));
    write(folder.path().join("b/archive.jsonl"), &whole[..whole.len() * 2 / 3]);
    write(folder.path().join("c/archive.jsonl"), "not one\n");
    let called = loadline_in(folder.path(), &["history", "."]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{called}");
    for expect in ["left out", "./c cannot be read", "of ./b: ", "No change found across 2 points"] {
        assert!(called.flat().contains(expect), "{expect}: {called}");
    }
    let alone = loadline_in(folder.path(), &["history", "a"]);
    assert!(alone.code == 0 && alone.flat().contains("One point cannot show a change"), "{alone}");
    // A search's trials have different settings; a run without a completed trial has no data.
    let others = loadline(&["history", "archives/searched", "archives/two", "archives/failed"]).expect(0);
    assert!(others.flat().contains("archives/failed has no completed trials"), "{others}");
}

#[test]
fn history_files_are_written_and_hostile_names_escaped() {
    let folder = tempfile::tempdir().unwrap();
    eight(folder.path());
    let evil = "</td><script>alert(1)</script>\u{1b}[2J`|\n";
    put(folder.path(), "night/evil", 9, &Night { commit: Some(evil.to_owned()), ..Night::default() });
    let files = ["--html", "h.html", "--markdown", "h.md", "--csv", "h.csv", "--json", "h.json"];
    let called = loadline_in(folder.path(), &[&["history", "night"], &files[..]].concat()).expect(0);
    assert!(!called.stdout.contains('\u{1b}'), "{called}");
    let text = |name: &str| read(folder.path().join(name));
    assert!(!text("h.html").contains("<script") && text("h.html").contains("<svg"));
    // In a code span, nothing is markup.
    assert!(text("h.md").contains("metaspace") && text("h.md").contains("`</td><script>"));
    assert!(text("h.csv").lines().count() > 9 && text("h.json").contains("loadline.history/1"));
    for name in ["html", "md", "csv", "json"] {
        assert!(!text(&format!("h.{name}")).contains('\u{1b}'), "{name}");
    }
}

#[test]
fn hundreds_of_archives_give_pages_of_limited_size() {
    let folder = tempfile::tempdir().unwrap();
    for day in 0..300 {
        let commit = hash(day);
        put(folder.path(), &format!("{day}"), day, &Night { commit: Some(commit), ..Night::default() });
    }
    let asked = ["history", ".", "--metric", "rss.loaded,rss_peak", "--html", "h.html"];
    let called = loadline_in(folder.path(), &asked).expect(0);
    assert!(called.stdout.lines().count() < 120, "{called}");
    assert!(read(folder.path().join("h.html")).len() < 500_000);
}

// ---- Bisecting with stored archives ----

fn code(arguments: &[&str]) -> (i32, String) {
    let Called { code, stderr, .. } = loadline(arguments);
    (code, stderr)
}

#[test]
fn verdicts_become_exit_codes_for_git_bisect() {
    let check = |arguments: &[&str], expect: i32, said: &str| {
        let (code, stderr) = code(&[&["report", "archives/compared", "--bisect"], arguments].concat());
        assert!(code == expect && stderr.contains(said), "{arguments:?}: {code}, {stderr}");
    };
    check(&["--budget", "rss.loaded<=1GiB"], 0, "bisect: good");
    check(&["--budget", "rss.loaded<=10MiB"], 1, "bisect: bad");
    check(&["--budget", "rss.loaded<=1GiB", "--budget", "rss.loaded<=10MiB"], 1, "bisect: bad");
    // The charge was not measured.
    check(&["--budget", "charge.loaded<=10MiB"], 125, "neither good nor bad");
    check(&["--budget", "charge.loaded<=10MiB", "--budget", "rss.loaded<=10MiB"], 1, "bisect: bad");
    // An invalid option is invalid for every commit.
    check(&["--budget", "rss.loadde<=10MiB"], 128, "error: ");
    check(&["--budget", "rss.loaded"], 128, "error: ");
    check(&["--budget", "rss.loaded<=1GiB", "--strict"], 128, "cannot be used with");
    check(&["--budget", "rss.loaded<=1GiB", "--undecided", "fail"], 128, "cannot be used with");
    check(&["--no-such-option"], 128, "error: ");
    assert_eq!(code(&["report", "archives/absent", "--bisect", "--budget", "rss.loaded<=1GiB"]).0, 128);
}

#[test]
fn bisecting_uses_budgets_or_verdicts_and_needs_one() {
    let (alone, said) = code(&["report", "archives/account", "--bisect"]);
    assert!(alone == 128 && said.contains("needs a budget to tell good from bad"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "before", 0, &of_commit(0));
    put(folder.path(), "after", 1, &Night { metaspace_mib: 60, ..of_commit(1) });
    let compare = |one: &str, other: &str| {
        let asked = ["compare", one, other, "--bisect", "--metric", "rss.loaded", "--least", "rss.loaded=3MiB"];
        loadline_in(folder.path(), &asked).code
    };
    assert_eq!((compare("before", "after"), compare("after", "before")), (1, 0));
}

#[test]
fn bisecting_skips_failed_starts_but_not_usage_errors() {
    let (url, budget) = ("http://127.0.0.1:{port}/", "rss.loaded<=1GiB");
    let folder = tempfile::tempdir().unwrap();
    let weigh = |command: &[&str]| {
        let asked = ["weigh", "--bisect", "--budget", budget, "--url", url, "--"];
        loadline_in(folder.path(), &[&asked, command].concat())
    };
    weigh(&["sh", "-c", "exit 3"]).expect(125);
    let absent = weigh(&["/nonexistent/java", "-jar", "app.jar"]);
    assert!(absent.code == 128 && absent.stderr.contains("command not found"), "{absent}");
}
