//! Pages of the documents that the program itself writes. `LOADLINE_DOCS=write` makes them again.

use crate::called::{loadline, read, root};
use std::fmt::Write;

/// The page of this name must be this text.
fn check(name: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var("LOADLINE_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, text).unwrap();
    }
    assert!(path.exists() && read(&path) == text, "{name} is not current: LOADLINE_DOCS=write makes it again");
}

/// What a command prints.
fn printed(command: &[&str]) -> String {
    let told = loadline(command);
    assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{told}");
    told.stdout
}

#[test]
fn the_page_of_remedies_is_that_of_the_program() {
    let list = printed(&["tune", "--list"]);
    check(
        "remedies.md",
        &format!("# Remedies of tune\n\nThe output of `loadline tune --list`.\n\n```text\n{list}```\n"),
    );
}

#[test]
fn the_page_of_options_is_that_of_the_program() {
    let help = printed(&["--help"]);
    let commands = help.split("\nCommands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let verbs: Vec<&str> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.contains(&"weigh") && verbs.len() > 15, "{verbs:?}");
    let mut page = "# Options\n\nThe help of each verb, as `loadline VERB --help` prints it.\n".to_owned();
    for verb in verbs.iter().filter(|verb| **verb != "help") {
        let help = printed(&[verb, "--help"]);
        write!(page, "\n## {verb}\n\n```text\n{}\n```\n", help.trim_end()).unwrap();
    }
    check("options.md", &page);
}
