//! Compatibility of the format: every later version reads what a released version wrote, field by field.
//!
//! `formats/version-2` has every field and every kind of every enum, and is never regenerated. If this test fails, the
//! change is wrong: fields may be added (with a default for archives without them), but not renamed, removed, or given
//! a different unit.

use crate::called::{folder, loadline, read};
use loadline::archive;
use serde_json::Value;

fn lines() -> Vec<Value> {
    let text = read(folder().join("formats/version-2/archive.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Paths where `now` lacks or changes something in `written`.
fn lost(written: &Value, now: &Value, place: &str, found: &mut Vec<String>) {
    match (written, now) {
        (Value::Object(fields), Value::Object(_)) => {
            for (key, field) in fields {
                lost(field, &now[key.as_str()], &format!("{place}/{key}"), found);
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others).enumerate() {
                lost(item, other, &format!("{place}/{index}"), found);
            }
        }
        _ if written == now => {}
        _ => found.push(format!("{place}: was {written}, reads as {now}")),
    }
}

/// Checks that reading `written` gave this value.
fn check(mut written: Value, read: &impl serde::Serialize, what: &str) {
    if let Value::Object(fields) = &mut written {
        fields.remove("record");
    }
    let mut found = Vec::new();
    lost(&written, &serde_json::to_value(read).unwrap(), what, &mut found);
    assert_eq!(found, [] as [&str; 0]);
}

#[test]
fn every_field_of_version_2_is_read() {
    let archive = archive::read(&folder().join("formats/version-2")).unwrap();
    assert_eq!(archive.missing, [] as [&str; 0]);
    let lines = lines();
    check(lines[0]["conditions"].clone(), &archive.conditions, "conditions");
    check(lines[0]["scenario"].clone(), &archive.scenario, "scenario");
    assert_eq!(archive.trials.len(), lines.len() - 2);
    for (index, trial) in archive.trials.iter().enumerate() {
        check(lines[index + 1].clone(), trial, &format!("trial {index}"));
    }
}

#[test]
fn version_2_archives_are_shown() {
    for options in [&["report", "formats/version-2"] as &[&str], &["report", "formats/version-2", "--json"]] {
        let called = loadline(options);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{called}");
    }
}

#[test]
fn fields_of_a_later_minor_version_are_ignored() {
    let mut lines = lines();
    lines[0]["conditions"]["machine"]["later"] = 1.into();
    lines[1]["later"] = serde_json::json!({"a": [1, 2]});
    lines[1]["marks"][0]["heap"]["later"] = Value::Null;
    let place = tempfile::TempDir::new().unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(place.path().join("archive.jsonl"), text).unwrap();
    assert_eq!(archive::read(place.path()).unwrap().missing, [] as [&str; 0]);
}
