//! Words that are typed wrong, and the promises of the help.

use crate::called::{Called, folder, loadline, loadline_in, read, verbs};
use tempfile::TempDir;

#[test]
fn version() {
    let called = loadline(&["--version"]);
    let expected =
        Called { code: 0, stdout: format!("loadline {}\n", env!("CARGO_PKG_VERSION")), stderr: String::new() };
    assert_eq!(called, expected);
}

#[test]
fn the_help_promises_the_exit_codes() {
    let called = loadline(&["--help"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let table = called.stdout.find("Exit codes:").unwrap();
    insta::assert_snapshot!(called.stdout[table..]);
}

#[test]
fn the_help_names_every_verb_and_is_plain_text() {
    assert!(!loadline(&["--help"]).stdout.contains('\x1b'));
    let verbs = verbs();
    assert_eq!(
        verbs,
        [
            "weigh", "init", "run", "compare", "find", "tune", "plan", "work", "merge", "load", "demo", "account",
            "explain", "watch", "report", "history", "doctor"
        ]
    );
    for verb in &verbs {
        let own = loadline(&[verb, "--help"]);
        assert_eq!((own.code, own.stderr.as_str()), (0, ""), "{verb}");
        assert!(!own.stdout.contains('\x1b'), "{verb}");
    }
}

#[test]
fn the_help_of_a_search() {
    insta::assert_snapshot!(loadline(&["find", "-h"]));
}

#[test]
fn a_search_of_nothing() {
    insta::assert_snapshot!(loadline(&["find"]));
}

#[test]
fn a_weighing_of_nothing() {
    let called = loadline(&["weigh", "--trials", "3"]);
    let expected = "error: weigh what?\n\nhint: name a jar, or give a command after `--`\n";
    assert_eq!((called.code, called.stderr.as_str()), (2, expected));
}

#[test]
fn an_explanation_of_nothing_and_of_what_does_not_fit() {
    let no_profiler = ["explain", "--profiler", "/nowhere/libasyncProfiler.so", "--", "java", "-jar", "app.jar"];
    for (words, told) in [
        (["explain"].as_slice(), "error: explain what?\n\nhint: name a scenario, a jar or a pid"),
        (&["explain", "--for", "5s", "--", "java"], "error: `--for` and `--heap` are about a JVM that runs"),
        (&no_profiler, "error: there is no profiler /nowhere/libasyncProfiler.so"),
        (&["explain", "4000000000"], "error: "),
        (&["explain", "1", "--rate", "5"], "error: options of a trial have no effect on a JVM that runs\n\nhint: keep"),
        (&["explain", "1", "--csv", "a.csv"], "error: `--csv` is for trials, and a JVM that runs makes none"),
        (&["explain", "--image", "app:1", "--url", "http://127.0.0.1:8080/"], "error: a profiler cannot be put into"),
    ] {
        let called = loadline(words);
        assert!(called.code == 2 && called.stderr.starts_with(told), "{words:?}: {called}");
    }
}

#[test]
fn a_search_for_a_target_of_no_metric() {
    let words = ["find", "--target", "p98<50ms", "--url", "http://127.0.0.1:{port}/", "--", "java", "-jar", "app.jar"];
    insta::assert_snapshot!(loadline(&words));
}

#[test]
fn an_unknown_flag() {
    insta::assert_snapshot!(loadline(&["weigh", "--connection", "25", "--", "java", "-jar", "app.jar"]));
}

#[test]
fn an_unknown_verb() {
    insta::assert_snapshot!(loadline(&["wiegh", "--", "java", "-jar", "app.jar"]));
}

#[test]
fn a_wrong_value() {
    insta::assert_snapshot!(loadline(&["weigh", "--heap", "6q", "--", "java", "-jar", "app.jar"]));
}

#[test]
fn an_account_of_nobody() {
    insta::assert_snapshot!(loadline(&["account"]));
}

#[test]
fn an_account_of_no_number() {
    insta::assert_snapshot!(loadline(&["account", "x"]));
}

#[test]
fn an_account_of_process_0() {
    insta::assert_snapshot!(loadline(&["account", "0"]));
}

#[test]
fn an_account_by_nonsense() {
    insta::assert_snapshot!(loadline(&["account", "1", "--by", "nonsense"]));
}

#[test]
fn no_verb() {
    let called = loadline(&[]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.contains("Usage: loadline"), "{called}");
}

#[test]
fn no_place_for_the_load() {
    insta::assert_snapshot!(loadline(&["weigh", "--", "java", "-jar", "app.jar"]));
}

/// `run` on this text; it is refused before anything is started or written.
fn run(scenario: &str) -> Called {
    let place = TempDir::new().unwrap();
    std::fs::write(place.path().join("x.loadline.yaml"), scenario).unwrap();
    let called = loadline_in(place.path(), &["run", "x.loadline.yaml"]);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "it left something: {called}");
    called
}

fn scenario(from: &str, to: &str) -> String {
    let text = read(folder().join("archives/two.loadline.yaml"));
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn a_misspelt_key() {
    insta::assert_snapshot!(run(&scenario("requests: 4000", "request: 4000")));
}

#[test]
fn a_key_like_none() {
    insta::assert_snapshot!(run(&scenario("load_cpus: 0", "colour: blue")));
}

#[test]
fn a_wrong_type() {
    insta::assert_snapshot!(run(&scenario("requests: 4000", "requests: many")));
}

#[test]
fn a_key_without_effect() {
    insta::assert_snapshot!(run(&scenario("{same: steady}", "{same: steady, get: /}")));
}

#[test]
fn no_scenario() {
    insta::assert_snapshot!(loadline(&["run", "no-such.loadline.yaml"]));
}

#[test]
fn a_jar_is_no_scenario() {
    let called = loadline(&["run", "no-such.jar"]);
    assert_eq!(called.code, 2, "{called}");
    for part in ["no-such.jar is a jar, and no scenario\n", "hint: `loadline weigh` on the jar"] {
        assert!(called.stderr.contains(part), "{called}");
    }
}

#[test]
fn a_file_in_a_folder_that_is_not_there() {
    let place = TempDir::new().unwrap();
    std::fs::create_dir(place.path().join("pages")).unwrap();
    for (file, hint) in [("no/such/page.html", "`mkdir -p no/such`"), ("pages", "name a file in it")] {
        let called = loadline_in(place.path(), &["weigh", "--html", file, "--", "java", "{port}"]);
        assert_eq!(called.code, 2, "{called}");
        assert!(called.stderr.contains(&format!("cannot write {file}: ")) && called.stderr.contains(hint), "{called}");
    }
}

#[test]
fn an_unknown_configuration() {
    let place = TempDir::new().unwrap();
    std::fs::write(place.path().join("x.loadline.yaml"), scenario("name: two", "name: two")).unwrap();
    insta::assert_snapshot!(loadline_in(place.path(), &["run", "x.loadline.yaml", "--only", "zgc"]));
}
