//! The parts of JSON Schema that the published schemas use: the described paths, and a validator's objections.

use crate::called::{read, root};
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) struct Schema(Value);

impl Schema {
    /// A published schema, checked against its own dialect.
    pub(crate) fn published(name: &str) -> Self {
        let schema: Value = serde_json::from_str(&read(root().join("docs").join(name))).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{name} is not a valid JSON Schema");
        Self(schema)
    }

    /// A validator's objections.
    pub(crate) fn complaints(&self, document: &Value) -> Vec<String> {
        let validator = jsonschema::validator_for(&self.0).unwrap();
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    pub(crate) fn accepts(&self, document: &Value) -> bool {
        self.complaints(document).is_empty()
    }

    /// Whether it accepts this document with a different value at one path.
    pub(crate) fn accepts_with(&self, document: &Value, pointer: &str, other: Value) -> bool {
        let mut document = document.clone();
        *document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = other;
        self.accepts(&document)
    }

    /// Checks that the document matches, and contains only described properties.
    #[track_caller]
    pub(crate) fn describes(&self, document: &Value, what: &str) {
        assert_eq!(self.complaints(document), [] as [&str; 0], "{what}");
        assert_eq!(self.undescribed(document), [] as [&str; 0], "{what}");
    }

    /// Paths of properties that the schema does not describe: readers may ignore them, but writers must not emit them.
    fn undescribed(&self, document: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare(&self.0, document, "", &mut found);
        found
    }

    /// The kinds in a tagged definition.
    pub(crate) fn kinds(&self, definition: &str) -> BTreeSet<String> {
        let cases = self.0["$defs"][definition]["allOf"].as_array().unwrap();
        cases.iter().map(|case| kind(case).to_owned()).collect()
    }

    /// Every property of every definition with its schema, including those of tagged kinds.
    pub(crate) fn described(&self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        collect("", &self.0, &mut all);
        for (name, definition) in self.0["$defs"].as_object().unwrap() {
            collect(name, definition, &mut all);
        }
        all
    }

    fn compare(&self, schema: &Value, value: &Value, place: &str, undescribed: &mut Vec<String>) {
        let schema = alternative(self.resolve(schema), value);
        match value {
            Value::Array(items) => {
                items.iter().for_each(|item| self.compare(&schema["items"], item, place, undescribed));
            }
            Value::Object(fields) if schema.get("properties").is_some() => {
                for (key, field) in fields {
                    let place = format!("{place}/{key}");
                    match property(schema, value, key) {
                        Some(described) => self.compare(described, field, &place, undescribed),
                        None => undescribed.push(place),
                    }
                }
            }
            _ => {}
        }
    }

    /// Follows references; in `anyOf [X, null]`, X is the description.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return &self.0["$defs"][name];
        }
        match schema["anyOf"].get(0) {
            Some(first) => self.resolve(first),
            None => schema,
        }
    }
}

/// The alternative of a choice by `kind` for this value.
fn alternative<'a>(schema: &'a Value, value: &Value) -> &'a Value {
    let mut cases = schema["oneOf"].as_array().into_iter().flatten();
    let fits = |case: &&Value| value["kind"].is_string() && case["properties"]["kind"]["const"] == value["kind"];
    cases.find(fits).unwrap_or(schema)
}

/// A property's description: a common one, or one for the value's `kind`.
fn property<'a>(schema: &'a Value, value: &Value, key: &str) -> Option<&'a Value> {
    if let Some(common) = schema["properties"].get(key) {
        return Some(common);
    }
    let kind = value["kind"].as_str()?;
    let of_kind = schema["allOf"].as_array()?.iter().find(|case| self::kind(case) == kind)?;
    of_kind["then"]["properties"].get(key)
}

/// The kind of a tagged definition's case.
fn kind(case: &Value) -> &str {
    case["if"]["properties"]["kind"]["const"].as_str().unwrap_or_default()
}

fn collect(name: &str, schema: &Value, all: &mut Vec<(String, Value)>) {
    let properties = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
    all.extend(properties(schema).into_iter().map(|(key, described)| (format!("{name}.{key}"), described)));
    for case in schema["allOf"].as_array().into_iter().flatten() {
        let kind = kind(case);
        let own = properties(&case["then"]).into_iter();
        all.extend(own.map(|(key, described)| (format!("{name}.{kind}.{key}"), described)));
    }
}
