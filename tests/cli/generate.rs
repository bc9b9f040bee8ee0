//! The manual page and the completions: each is printed, complete, and accepted by its consumer.

use crate::called::{Called, loadline, root, verbs};
use loadline_test_support::on_path;
use std::path::Path;
use std::process::{Command, Stdio};

fn generated(what: &str) -> String {
    let Called { code, stdout, stderr } = loadline(&["--generate", what]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{what}");
    stdout
}

/// The long options in a verb's help.
fn long_options(verb: &str) -> Vec<String> {
    let help = loadline(&[verb, "--help"]).stdout;
    // Continued lines are indented further.
    let shown =
        help.lines().filter(|line| line.find(|c| c != ' ').is_some_and(|at| at <= 6 && line[at..].starts_with('-')));
    let words = shown.flat_map(|line| line.split([' ', ',', '[', '=']).filter(|word| word.starts_with("--")).take(1));
    let found: Vec<String> = words.filter(|word| word.len() > 2).map(str::to_owned).collect();
    assert!(found.contains(&"--help".to_owned()), "{verb}: {found:?}");
    found
}

#[test]
fn the_manual_has_every_verb_and_every_option_that_the_help_shows() {
    let page = generated("man").replace("\\-", "-");
    assert!(page.contains(".TH loadline 1"), "{page}");
    let sections: Vec<&str> = page.split("\n.SH ").collect();
    for verb in &verbs() {
        let heading = format!("\"LOADLINE {}\"", verb.to_uppercase());
        let section = sections.iter().find(|section| section.starts_with(&heading));
        let section = section.unwrap_or_else(|| panic!("no section {heading}"));
        for option in long_options(verb) {
            assert!(section.contains(&format!("{option}\\fR")), "{verb}: `{option}` is missing:\n{section}");
        }
    }
    assert!(page.contains("this machine cannot run the measurement"));
}

/// Whether a program accepts text, and its stderr. Reports a skip and returns `None` if the program is missing.
fn said_of(text: &str, program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("generated");
    std::fs::write(&file, text).unwrap();
    if on_path(program).is_none() {
        eprintln!("skipped, because this machine has no {program}");
        return None;
    }
    let done = Command::new(program).args(arguments).arg(&file as &Path).stdin(Stdio::null()).output().unwrap();
    Some((done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned()))
}

#[test]
fn the_manual_is_formatted_without_warnings() {
    let page = generated("man");
    for (program, arguments) in [("groff", &["-ww", "-man", "-Tutf8"][..]), ("man", &["--warnings", "-l"])] {
        if let Some(said) = said_of(&page, program, arguments) {
            assert_eq!(said, (true, String::new()), "{program}");
        }
    }
}

#[test]
fn shells_parse_their_completions() {
    for (shell, arguments) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let completions = generated(&format!("complete-{shell}"));
        for verb in &verbs() {
            assert!(completions.contains(verb), "{shell}: `{verb}` is missing");
        }
        assert!(completions.contains("trials-max") && completions.contains("complete-fish"), "{shell}");
        if let Some(said) = said_of(&completions, shell, arguments) {
            assert_eq!(said, (true, String::new()), "{shell}");
        }
    }
}

#[test]
fn bash_completes_only_the_options_of_a_verb() {
    let script = generated("complete-bash");
    let ask =
        "COMP_WORDS=(loadline find --); COMP_CWORD=2; _loadline loadline -- find; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let done = Command::new("bash").args(["-c", &format!("{script}\n{ask}")]).stdin(Stdio::null()).output().unwrap();
    let offered = String::from_utf8_lossy(&done.stdout).into_owned();
    let has = |option: &str| offered.lines().any(|line| line == option);
    for option in long_options("find") {
        assert!(has(&option), "`{option}` must be offered:\n{offered}");
    }
    for option in ["--budget", "--strict", "--trials", "--marks"] {
        assert!(!has(option), "`{option}` must not be offered:\n{offered}");
    }
}

#[test]
fn the_generated_scenario_schema_matches_the_published_one() {
    let published = std::fs::read_to_string(root().join("docs/scenario.schema.json")).unwrap();
    assert_eq!(generated("scenario-schema"), published);
}

#[test]
fn an_invalid_generate_argument_lists_the_valid_ones() {
    let called = loadline(&["--generate", "info"]).expect(2);
    for what in ["man", "complete-bash", "complete-zsh", "complete-fish", "scenario-schema"] {
        assert!(called.stderr.contains(what), "{called}");
    }
    assert_eq!(loadline(&["--generate", "man", "doctor"]).code, 2);
}
