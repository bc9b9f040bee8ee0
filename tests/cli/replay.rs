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
fn figures_of_marks() {
    insta::assert_snapshot!(report("figures", &[]));
}

/// One that both configurations keep, one that one breaks and the other may, one of what was not measured.
const BUDGETS: [&str; 6] =
    ["--budget", "rss.loaded<=1GiB", "--budget", "rss.loaded<=60MiB", "--budget", "charge.loaded<=10MiB"];

#[test]
fn budgets_that_pass_fail_and_are_undecided() {
    insta::assert_snapshot!(report("compared", &BUDGETS));
}

#[test]
fn budgets_for_a_ci_system() {
    insta::assert_snapshot!(report("compared", &[&["--junit", "-"], &BUDGETS[..]].concat()));
}

#[test]
fn two_archives_compared() {
    insta::assert_snapshot!(loadline(&["compare", "archives/compared", "archives/figures"]));
}

#[test]
fn a_comparison_in_markdown() {
    insta::assert_snapshot!(report("compared", &[&["--markdown", "-"], &BUDGETS[..]].concat()));
}

#[test]
fn a_failed_trial_in_markdown() {
    insta::assert_snapshot!(report("failed", &["--markdown", "-"]));
}

#[test]
fn an_interrupted_run_in_markdown() {
    insta::assert_snapshot!(report("interrupted", &["--markdown", "-"]));
}

#[test]
fn a_search_in_markdown() {
    insta::assert_snapshot!(report("searched", &["--markdown", "-"]));
}

#[test]
fn a_search_for_a_ci_system() {
    insta::assert_snapshot!(report("searched", &["--junit", "-"]));
}

#[test]
fn a_search_as_rows() {
    insta::assert_snapshot!(report("searched", &["--csv", "-"]).stdout.replace("\r\n", "\n"));
}

#[test]
fn one_configuration_for_a_history() {
    insta::assert_snapshot!(report("nmt", &["--openmetrics", "-"]));
}

#[test]
fn a_failed_trial_as_a_page() {
    insta::assert_snapshot!(page("failed"));
}

#[test]
fn one_configuration_as_a_page() {
    insta::assert_snapshot!(page("nmt"));
}

#[test]
fn a_search_as_a_page() {
    insta::assert_snapshot!(page("searched"));
}

/// The words of a page: without its style, its script, the policy with their hashes, and pictures.
fn page(name: &str) -> String {
    let mut text = report(name, &["--html", "-"]).stdout;
    for (begin, end) in [("content=\"default-src", "\">"), ("<style>", "</style>"), ("<script>", "</script>")] {
        let from = text.find(begin).unwrap();
        let to = from + text[from..].find(end).unwrap() + end.len();
        text.replace_range(from..to, "");
    }
    let mut words = String::new();
    let mut depth = 0;
    // A picture has others within it.
    for (index, piece) in text.split("<svg").enumerate() {
        depth += i32::from(index > 0);
        for (index, piece) in piece.split("</svg>").enumerate() {
            depth -= i32::from(index > 0);
            words.push_str(if depth == 0 { piece } else { "" });
        }
    }
    assert_eq!(depth, 0, "{name}");
    words
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
