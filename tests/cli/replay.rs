//! Archives through `report`: the complete output, stored in `snapshots`.

use crate::called::{ARCHIVES, Called, loadline, report};

const WIDTH: usize = 80;

/// Both configurations meet the first; one exceeds the second, and the other may; the third has an unmeasured metric.
const BUDGETS: [&str; 6] =
    ["--budget", "rss.loaded<=1GiB", "--budget", "rss.loaded<=60MiB", "--budget", "charge.loaded<=10MiB"];

#[test]
fn every_kind_of_archive_is_shown_in_every_form() {
    let with_budgets = |form: &[&'static str]| [form, &BUDGETS].concat();
    for (snapshot, archive, options) in [
        ("one_configuration_with_native_memory", "nmt", &[][..]),
        ("one_configuration_with_native_memory_as_json", "nmt", &["--json"]),
        ("one_configuration_for_a_history", "nmt", &["--openmetrics", "-"]),
        ("two_configurations_with_doubts", "two", &[]),
        ("two_configurations_with_doubts_as_json", "two", &["--json"]),
        ("a_failed_trial", "failed", &[]),
        ("a_failed_trial_as_json", "failed", &["--json"]),
        ("a_failed_trial_in_markdown", "failed", &["--markdown", "-"]),
        ("an_interrupted_run", "interrupted", &[]),
        ("an_interrupted_run_as_json", "interrupted", &["--json"]),
        ("an_interrupted_run_in_markdown", "interrupted", &["--markdown", "-"]),
        ("one_configuration_with_accounts", "account", &[]),
        ("a_search_for_the_load_line", "searched", &[]),
        ("a_search_for_the_load_line_as_json", "searched", &["--json"]),
        ("a_search_in_markdown", "searched", &["--markdown", "-"]),
        ("a_search_for_a_ci_system", "searched", &["--junit", "-"]),
        ("figures_of_marks", "figures", &[]),
        ("budgets_that_pass_fail_and_are_undecided", "compared", &BUDGETS),
        ("budgets_for_a_ci_system", "compared", &with_budgets(&["--junit", "-"])),
        ("a_comparison_in_markdown", "compared", &with_budgets(&["--markdown", "-"])),
    ] {
        insta::assert_snapshot!(snapshot, report(archive, options));
    }
    insta::assert_snapshot!("a_search_as_rows", report("searched", &["--csv", "-"]).stdout.replace("\r\n", "\n"));
    insta::assert_snapshot!("two_archives_compared", loadline(&["compare", "archives/compared", "archives/figures"]));
    for (snapshot, archive) in [
        ("a_failed_trial_as_a_page", "failed"),
        ("one_configuration_as_a_page", "nmt"),
        ("a_search_as_a_page", "searched"),
    ] {
        insta::assert_snapshot!(snapshot, page(archive));
    }
}

/// A page's words without its style, script, charts, and security policy, which contains hashes.
fn page(name: &str) -> String {
    let mut text = report(name, &["--html", "-"]).stdout;
    for (begin, end) in [("content=\"default-src", "\">"), ("<style>", "</style>"), ("<script>", "</script>")] {
        let from = text.find(begin).unwrap();
        let to = from + text[from..].find(end).unwrap() + end.len();
        text.replace_range(from..to, "");
    }
    let mut words = String::new();
    let mut depth = 0;
    // A chart contains nested ones.
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
fn an_archive_can_be_given_as_a_file() {
    assert_eq!(loadline(&["report", "archives/nmt/archive.jsonl"]), report("nmt", &[]));
}

#[test]
fn a_pipe_gets_no_color_and_lines_of_80_columns() {
    for name in ARCHIVES {
        let Called { code, stdout, stderr } = report(name, &[]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{name}");
        assert!(!stdout.contains('\x1b'), "{name}");
        for line in stdout.lines() {
            // A word too wide for the space after its indentation gets a line of its own.
            let words = line.split_whitespace().count();
            // So does a command or setting that is meant to be copied.
            let is_copied = [
                "docker run ",
                "value: ",
                "Environment=",
                "loadline find \
                    ",
            ]
            .iter()
            .any(|begin| line.trim().starts_with(begin));
            assert!(line.chars().count() <= WIDTH || words == 1 || is_copied, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}
