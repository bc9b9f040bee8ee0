//! Pages of the documents that the program itself writes. `LOADLINE_DOCS=write` makes them again.

use crate::called::{loadline, read, root, verbs};
use std::fmt::Write;

/// The page of this name must be this text.
fn check(name: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var("LOADLINE_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, text).unwrap();
    }
    assert!(path.exists() && read(&path) == text, "{name} is not current: LOADLINE_DOCS=write makes it again");
}

/// Runs a command that must succeed silently, and returns its output.
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
    let verbs = verbs();
    assert!(verbs.iter().any(|verb| verb == "weigh") && verbs.len() > 15, "{verbs:?}");
    let mut page = "# Options\n\nThe help of each verb, as `loadline VERB --help` prints it.\n".to_owned();
    for verb in &verbs {
        let help = printed(&[verb, "--help"]);
        write!(page, "\n## {verb}\n\n```text\n{}\n```\n", help.trim_end()).unwrap();
    }
    check("options.md", &page);
}
