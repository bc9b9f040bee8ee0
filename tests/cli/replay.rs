//! Archives through `report`: the whole output, as it is kept in `snapshots`.

use crate::called::{ARCHIVES, Called, loadline};

const WIDTH: usize = 80;

fn report(name: &str, options: &[&str]) -> Called {
    let archive = format!("archives/{name}");
    loadline(&[&["report", archive.as_str()], options].concat())
}

#[test]
fn one_configuration_with_native_memory() {
    insta::assert_snapshot!(report("nmt", &[]));
}

#[test]
fn one_configuration_with_native_memory_as_json() {
    insta::assert_snapshot!(report("nmt", &["--json"]));
}

#[test]
fn two_configurations_with_doubts() {
    insta::assert_snapshot!(report("two", &[]));
}

#[test]
fn two_configurations_with_doubts_as_json() {
    insta::assert_snapshot!(report("two", &["--json"]));
}

#[test]
fn a_failed_trial() {
    insta::assert_snapshot!(report("failed", &[]));
}

#[test]
fn a_failed_trial_as_json() {
    insta::assert_snapshot!(report("failed", &["--json"]));
}

#[test]
fn an_interrupted_run() {
    insta::assert_snapshot!(report("interrupted", &[]));
}

#[test]
fn an_interrupted_run_as_json() {
    insta::assert_snapshot!(report("interrupted", &["--json"]));
}

#[test]
fn one_configuration_with_accounts() {
    insta::assert_snapshot!(report("account", &[]));
}

#[test]
fn a_search_for_the_load_line() {
    insta::assert_snapshot!(report("searched", &[]));
}

#[test]
fn a_search_for_the_load_line_as_json() {
    insta::assert_snapshot!(report("searched", &["--json"]));
}

#[test]
fn the_file_itself_is_as_good_as_its_folder() {
    assert_eq!(loadline(&["report", "archives/nmt/archive.jsonl"]), report("nmt", &[]));
}

#[test]
fn a_pipe_gets_no_colour_and_lines_of_80_columns() {
    for name in ARCHIVES {
        let Called { code, stdout, stderr } = report(name, &[]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{name}");
        assert!(!stdout.contains('\x1b'), "{name}");
        for line in stdout.lines() {
            // A word that is wider than what is left beside its indent keeps a line of its own.
            let words = line.split_whitespace().count();
            // So does a command or a setting that is there to be copied.
            let is_copied =
                ["docker run ", "value: ", "Environment="].iter().any(|begin| line.trim().starts_with(begin));
            assert!(line.chars().count() <= WIDTH || words == 1 || is_copied, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}
