//! Truncated, damaged, and fake archives: no call panics, and intact parts are shown.

use crate::called::{ARCHIVES, Called, folder, loadline, loadline_in, read};
use loadline_test_support::all_simulations_run;
use std::path::Path;
use tempfile::TempDir;

/// The number of corruptions per archive: enough to hit keys, numbers, strings, and multibyte characters.
fn places() -> usize {
    if all_simulations_run() { 60 } else { 15 }
}

fn text_of(name: &str) -> String {
    read(folder().join("archives").join(name).join("archive.jsonl"))
}

/// `report` on an archive with these bytes.
fn report(bytes: &[u8], options: &[&str]) -> Called {
    let place = TempDir::new().unwrap();
    write(place.path(), bytes);
    loadline_in(place.path(), &[&["report", "x"], options].concat())
}

fn write(place: &Path, bytes: &[u8]) {
    loadline_test_support::write(place.join("x/archive.jsonl"), bytes);
}

/// Checks invariants for every damaged archive, shown or rejected.
fn check_sane(called: &Called, what: &str) {
    assert!([0, 2].contains(&called.code), "{what}: {called}");
    assert!(!called.stderr.contains("panicked"), "{what}: {called}");
    let refused = called.stderr.starts_with("error: ");
    assert_eq!(refused, called.code == 2, "{what}: {called}");
    assert_eq!(called.stdout.is_empty(), refused, "{what}: {called}");
}

#[test]
fn archives_truncated_after_each_line_are_read() {
    for name in ARCHIVES {
        let text = text_of(name);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for kept in 0..lines.len() {
            let called = report(lines[..kept].concat().as_bytes(), &[]);
            check_sane(&called, name);
            assert_eq!(called.code, if kept == 0 { 2 } else { 0 }, "{name}: {kept}");
            if kept > 0 {
                let trials = lines[..kept].iter().filter(|line| line.contains("\"record\":\"trial\"")).count();
                // A continued run also has an earlier closing line.
                let lacks = match lines[kept - 1].contains("\"record\":\"closed\"") {
                    true => "the run was interrupted".to_owned(),
                    false => format!("the run was cut off after {trials} trial"),
                };
                assert!(called.flat().contains(&lacks), "{called}");
            }
        }
    }
}

#[test]
fn archives_truncated_anywhere_are_read() {
    for name in ARCHIVES {
        let text = text_of(name);
        let header = text.find('\n').unwrap();
        let step = text.len() / places() + 1;
        let ends = [header - 1, header, header + 1, header + 2, text.len() - 2, text.len() - 1];
        for at in (0..text.len()).step_by(step).chain(ends) {
            let called = report(&text.as_bytes()[..at], &[]);
            check_sane(&called, &format!("{name} cut at {at}"));
            assert_eq!(called.code, if at < header { 2 } else { 0 }, "{name} cut at {at}");
            // Only the final newline can be missing without a loss.
            let whole = at == text.len() - 1;
            assert!(called.code == 2 || whole || called.stdout.contains("\nmissing\n"), "{name} cut at {at}: {called}");
        }
    }
}

#[test]
fn archives_with_a_changed_byte_are_read() {
    let text = text_of("two");
    let step = text.len() / places() + 1;
    for at in (0..text.len()).step_by(step) {
        for byte in [0, b'"', b'}', b'\n', 0xff] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            check_sane(&report(&bytes, &[]), &format!("{byte} at {at}"));
            check_sane(&report(&bytes, &["--json"]), &format!("{byte} at {at}, as JSON"));
        }
    }
}

/// The archive without its closing line and half of its last trial.
fn half() -> String {
    let text = text_of("two");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    format!("{}{}{}", lines[0], lines[1], &lines[2][..lines[2].len() / 2])
}

#[test]
fn a_truncated_trial_is_reported() {
    let called = report(half().as_bytes(), &[]);
    let missing = called.stdout.find("\nmissing\n").unwrap();
    insta::assert_snapshot!(Called { stdout: called.stdout[missing..].to_owned(), ..called });
}

#[test]
fn json_of_a_truncated_archive_has_complete_trials_and_a_warning() {
    let called = report(half().as_bytes(), &["--json"]);
    let document: serde_json::Value = serde_json::from_str(&called.stdout).unwrap();
    assert_eq!(document["trials"].as_array().unwrap().len(), 1);
    insta::assert_snapshot!(Called { stdout: "…\n".to_owned(), ..called });
}

#[test]
fn a_damaged_line_affects_only_its_trial() {
    let text = text_of("two");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let called = report([lines[0], "{\"record\":\"trial\"}\n", lines[2], lines[3]].concat().as_bytes(), &[]);
    check_sane(&called, "damaged line");
    assert!(called.stdout.contains("line 2 is damaged and was skipped"), "{called}");
    assert!(called.stdout.contains("\n  serial: RSS 72.6 MiB"), "{called}");
}

#[test]
fn invalid_archives_have_these_messages() {
    let nmt = text_of("nmt");
    let of_version = |version: u32| nmt.replacen("loadline.archive/2", &format!("loadline.archive/{version}"), 1);
    for (snapshot, text) in [
        ("a_newer_version", of_version(3)),
        ("an_older_version", of_version(1)),
        ("a_damaged_header", nmt.replacen("\"conditions\":{", "\"conditions\":7,\"x\":{", 1)),
        ("something_else", "PK\x03\x04 not an archive at all\n".to_owned()),
        ("something_else_in_json", "{\"schema\":\"loadline.result/2\",\"trials\":[]}\n".to_owned()),
    ] {
        insta::assert_snapshot!(snapshot, report(text.as_bytes(), &[]));
    }
    for (snapshot, path) in [("nothing_there", "no/such/folder"), ("a_folder_without_an_archive", "archives")] {
        insta::assert_snapshot!(snapshot, loadline(&["report", path]));
    }
}
