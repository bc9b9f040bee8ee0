//! Pages that the program generates. `LOADLINE_DOCS=write` regenerates them.

use crate::called::{loadline, read, root, verbs};
use serde_json::Value;
use std::fmt::Write;

/// Checks that this page has this text.
fn check(name: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var("LOADLINE_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, text).unwrap();
    }
    assert!(path.exists() && read(&path) == text, "{name} is outdated: LOADLINE_DOCS=write regenerates it");
}

/// Runs a command that must succeed silently, and returns its output.
fn printed(command: &[&str]) -> String {
    let told = loadline(command);
    assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{told}");
    told.stdout
}

#[test]
fn the_remedies_page_matches_the_program() {
    let list = printed(&["tune", "--list"]);
    check(
        "remedies.md",
        &format!("# Remedies of tune\n\nThe output of `loadline tune --list`.\n\n```text\n{list}```\n"),
    );
}

#[test]
fn the_options_page_matches_the_program() {
    let verbs = verbs();
    assert!(verbs.iter().any(|verb| verb == "weigh") && verbs.len() > 15, "{verbs:?}");
    let mut page = "# Options\n\nThe output of `loadline VERB --help` for each verb.\n".to_owned();
    for verb in &verbs {
        let help = printed(&[verb, "--help"]);
        write!(page, "\n## {verb}\n\n```text\n{}\n```\n", help.trim_end()).unwrap();
    }
    check("options.md", &page);
}

/// A value's type in words, with a link to its own table.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches("#/$defs/");
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().map(type_of).collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", value.to_string().trim_matches('"'));
    }
    let named = |name: &Value| match name.as_str() {
        Some("array") => match schema["prefixItems"].as_array() {
            Some(items) => format!("list of {}", items.iter().map(type_of).collect::<Vec<_>>().join(", ")),
            None => format!("list of {}", type_of(&schema["items"])),
        },
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map to {}", type_of(&schema["additionalProperties"]))
        }
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    };
    match schema["type"].as_array() {
        Some(names) => names.iter().map(named).collect::<Vec<_>>().join(" or "),
        None => named(&schema["type"]),
    }
}

/// The table of an object's keys; for a choice, a table of its values, or of each form's keys.
fn table_of(schema: &Value) -> String {
    let meaning = |schema: &Value| schema["description"].as_str().unwrap_or_default().replace('|', "\\|");
    let keys = |schema: &Value| {
        let keys = schema["properties"].as_object().into_iter().flatten();
        keys.map(|(key, value)| format!("| `{key}` | {} | {} |\n", type_of(value), meaning(value))).collect::<String>()
    };
    let forms = schema["oneOf"].as_array().into_iter().flatten();
    let forms = forms.map(|form| match keys(form) {
        own if own.is_empty() => {
            let values =
                form["enum"].as_array().into_iter().flatten().map(|value| format!("`{}`", value.as_str().unwrap()));
            let values = values.collect::<Vec<_>>().join(", ");
            let value = if values.is_empty() { type_of(form) } else { values };
            format!("| {value} | | {} |\n", meaning(form))
        }
        own => own,
    });
    format!("| key | type | meaning |\n|---|---|---|\n{}{}", keys(schema), forms.collect::<String>())
}

#[test]
fn the_keys_page_matches_the_schema() {
    let schema: Value = serde_json::from_str(&read(root().join("docs/results.schema.json"))).unwrap();
    let mut page = "# Keys of the result\n\nThe keys that `--json` and `loadline report ARCHIVE --json` print, from \
                    [the schema](../results.schema.json).\nThe name of a key includes its unit, such as \
                    `_bytes`, `_s`, `_ms`, or `_us`.\n\n"
        .to_owned();
    page.push_str(&table_of(&schema));
    for (name, of) in schema["$defs"].as_object().unwrap() {
        write!(page, "\n## {name}\n\n{}\n\n", of["description"].as_str().unwrap_or_default().replace(". ", ".\n"))
            .unwrap();
        match of["oneOf"].is_array() || of["properties"].is_object() {
            true => page.push_str(&table_of(of)),
            false => writeln!(page, "{}", type_of(of)).unwrap(),
        }
    }
    check("keys.md", &page);
}
