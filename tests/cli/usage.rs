//! Typos, and the promises of the help.

use crate::called::{Called, folder, loadline, loadline_beside, loadline_in, read, verbs};
use tempfile::TempDir;

#[test]
fn version() {
    let called = loadline(&["--version"]);
    let expected =
        Called { code: 0, stdout: format!("loadline {}\n", env!("CARGO_PKG_VERSION")), stderr: String::new() };
    assert_eq!(called, expected);
}

#[test]
fn the_help_explains_the_exit_codes() {
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
            "weigh",
            "init",
            "run",
            "compare",
            "find",
            "tune",
            "plan",
            "work",
            "merge",
            "load",
            "demo",
            "account",
            "advise",
            "capture",
            "explain",
            "watch",
            "post-mortem",
            "report",
            "history",
            "doctor"
        ]
    );
    for verb in &verbs {
        let own = loadline(&[verb, "--help"]);
        assert_eq!((own.code, own.stderr.as_str()), (0, ""), "{verb}");
        assert!(!own.stdout.contains('\x1b'), "{verb}");
    }
}

#[test]
fn invalid_command_lines_have_these_messages() {
    let target = ["find", "--target", "p98<50ms", "--url", "http://127.0.0.1:{port}/", "--", "java", "-jar", "app.jar"];
    for (snapshot, words) in [
        ("the_help_of_a_search", &["find", "-h"][..]),
        ("a_search_of_nothing", &["find"]),
        ("a_search_for_a_target_of_no_metric", &target),
        ("an_unknown_flag", &["weigh", "--connection", "25", "--", "java", "-jar", "app.jar"]),
        ("an_unknown_verb", &["wiegh", "--", "java", "-jar", "app.jar"]),
        ("a_wrong_value", &["weigh", "--heap", "6q", "--", "java", "-jar", "app.jar"]),
        ("no_place_for_the_load", &["weigh", "--", "java", "-jar", "app.jar"]),
        ("an_account_of_nobody", &["account"]),
        ("an_account_of_no_number", &["account", "x"]),
        ("an_account_of_process_0", &["account", "0"]),
        ("an_account_by_nonsense", &["account", "1", "--by", "nonsense"]),
        ("no_scenario", &["run", "no-such.loadline.yaml"]),
    ] {
        insta::assert_snapshot!(snapshot, loadline(words));
    }
}

#[test]
fn weigh_needs_a_command() {
    let called = loadline(&["weigh", "--trials", "3"]);
    let expected = "error: nothing to weigh\n\nhint: specify a jar, or a command after `--`\n";
    assert_eq!((called.code, called.stderr.as_str()), (2, expected));
}

#[test]
fn invalid_explain_arguments_are_rejected() {
    let no_profiler = ["explain", "--profiler", "/nowhere/libasyncProfiler.so", "--", "java", "-jar", "app.jar"];
    for (words, told) in [
        (["explain"].as_slice(), "error: nothing to explain\n\nhint: specify a scenario, jar, or process ID"),
        (&["explain", "--for", "5s", "--", "java"], "error: `--for` and `--objects` apply only to a running JVM"),
        (&["explain", "s", "--", "java"], "error: specify either `s` or a command, not both\n"),
        (&["run", "app.jra"], "error: there is no file `app.jra`\n\nhint: specify a scenario file"),
        (&no_profiler, "error: no profiler found at /nowhere/libasyncProfiler.so"),
        (&["explain", "4000000000"], "error: "),
        (&["explain", "1", "--rate", "5"], "error: options of a trial have no effect on a running JVM\n\nhint: keep"),
        (&["explain", "1", "--csv", "a.csv"], "error: `--csv` needs a trial, and a running JVM has none"),
        (&["explain", "--image", "app:1", "--url", "http://127.0.0.1:8080/"], "error: a profiler cannot be added to"),
    ] {
        let called = loadline(words);
        assert!(called.code == 2 && called.stderr.starts_with(told), "{words:?}: {called}");
    }
}

#[test]
fn a_program_given_as_a_scenario_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("run.sh");
    std::fs::write(&script, "#!/bin/sh\nhere=$(pwd)\nexec java -jar app.jar \"$1\"\n").unwrap();
    let script = script.to_str().unwrap();
    for (verb, instead_of) in
        [("explain", "scenario"), ("run", "scenario"), ("compare", "scenario"), ("find", "scenario"), ("weigh", "jar")]
    {
        let called = loadline(&[verb, script]);
        let told = format!("error: {script} is a program, not a {instead_of}\n");
        let hint = format!("-- {script}`");
        assert!(
            called.code == 2 && called.stderr.starts_with(&told) && called.stderr.contains(&hint),
            "{verb}: {called}"
        );
    }
}

#[test]
fn a_verb_is_required() {
    loadline(&[]).refused(&["Usage: loadline"]);
}

fn scenario(from: &str, to: &str) -> String {
    let text = read(folder().join("archives/two.loadline.yaml"));
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn invalid_scenarios_have_these_messages() {
    for (snapshot, from, to) in [
        ("a_misspelt_key", "requests: 4000", "request: 4000"),
        ("a_key_like_none", "load_cpus: 0", "colour: blue"),
        ("a_wrong_type", "requests: 4000", "requests: many"),
        ("a_key_without_effect", "{same: steady}", "{same: steady, get: /}"),
    ] {
        let called = loadline_beside("x.loadline.yaml", &scenario(from, to), &["run", "x.loadline.yaml"]);
        insta::assert_snapshot!(snapshot, called);
    }
}

#[test]
fn a_jar_given_as_a_scenario_is_rejected() {
    let called = loadline(&["run", "no-such.jar"]);
    called.refused(&["no-such.jar is a jar, not a scenario\n", "hint: `loadline weigh JAR`"]);
}

#[test]
fn an_output_file_in_a_missing_directory_is_rejected() {
    let place = TempDir::new().unwrap();
    std::fs::create_dir(place.path().join("pages")).unwrap();
    for (file, hint) in [("no/such/page.html", "`mkdir -p no/such`"), ("pages", "specify a file in that directory")] {
        let called = loadline_in(place.path(), &["weigh", "--html", file, "--", "java", "{port}"]);
        called.refused(&[&format!("cannot write {file}: "), hint]);
    }
}

#[test]
fn an_unknown_configuration_is_rejected() {
    let words = ["run", "x.loadline.yaml", "--only", "zgc"];
    insta::assert_snapshot!(loadline_beside("x.loadline.yaml", &scenario("name: two", "name: two"), &words));
}

#[test]
fn a_pid_option_gets_a_hint() {
    for verb in ["account", "advise", "doctor", "watch"] {
        let called = loadline(&[verb, "--pid", "1234"]).expect(2);
        assert!(called.stderr.contains("give the PID without an option"), "{}", called.stderr);
    }
}
