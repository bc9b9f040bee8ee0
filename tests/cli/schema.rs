//! A JSON Schema as far as the published ones go: the places that it describes, and the objections of a validator.

use crate::called::{read, root};
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) struct Schema(Value);

impl Schema {
    /// A published schema, checked against its own dialect.
    pub(crate) fn published(name: &str) -> Self {
        let schema: Value = serde_json::from_str(&read(root().join("docs").join(name))).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{name} is no JSON Schema");
        Self(schema)
    }

    /// Returns the objections of a validator.
    pub(crate) fn complaints(&self, document: &Value) -> Vec<String> {
        let validator = jsonschema::validator_for(&self.0).unwrap();
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    pub(crate) fn accepts(&self, document: &Value) -> bool {
        self.complaints(document).is_empty()
    }

    /// Whether it accepts this document with another value at one place.
    pub(crate) fn accepts_with(&self, document: &Value, pointer: &str, other: Value) -> bool {
        let mut document = document.clone();
        *document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = other;
        self.accepts(&document)
    }

    /// Stops the test unless the document is as described, and nothing in it is not described.
    #[track_caller]
    pub(crate) fn describes(&self, document: &Value, what: &str) {
        assert_eq!(self.complaints(document), [] as [&str; 0], "{what}");
        assert_eq!(self.undescribed(document), [] as [&str; 0], "{what}");
    }

    /// Stops the test unless all but its own definitions are described as the other one describes them.
    #[track_caller]
    pub(crate) fn agrees_with(&self, other: &Self, own: &[&str]) {
        let shared = other.described();
        for (place, described) in self.described() {
            let is_own = own.contains(&place.split('.').next().unwrap());
            assert!(is_own || shared.contains(&(place.clone(), described)), "{place}");
        }
    }

    /// Places of properties in `document` that the schema does not describe: readers may ignore them, writers may not.
    pub(crate) fn undescribed(&self, document: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare(&self.0, document, "", &mut found, &mut BTreeSet::new());
        found
    }

    /// Properties that the schema describes, as `DEFINITION.PROPERTY`, and that none of `documents` has anywhere.
    pub(crate) fn unused(&self, documents: &[Value]) -> Vec<String> {
        let mut seen = BTreeSet::new();
        documents.iter().for_each(|document| self.compare(&self.0, document, "", &mut Vec::new(), &mut seen));
        self.described().into_iter().filter(|(place, _)| !seen.contains(place)).map(|(place, _)| place).collect()
    }

    /// The same but those whose places begin so.
    pub(crate) fn unused_but(&self, documents: &[Value], known: &[&str]) -> Vec<String> {
        let is_known = |place: &String| known.iter().any(|start| place.starts_with(start));
        self.unused(documents).into_iter().filter(|place| !is_known(place)).collect()
    }

    /// The kinds that a tagged definition describes.
    pub(crate) fn kinds(&self, definition: &str) -> BTreeSet<String> {
        let cases = self.0["$defs"][definition]["allOf"].as_array().unwrap();
        cases.iter().map(|case| kind(case).to_owned()).collect()
    }

    /// Every property of every definition with its schema; of the kinds of a tagged object too.
    pub(crate) fn described(&self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        collect("", &self.0, &mut all);
        for (name, definition) in self.0["$defs"].as_object().unwrap() {
            collect(name, definition, &mut all);
        }
        all
    }

    fn compare(
        &self,
        schema: &Value,
        value: &Value,
        place: &str,
        undescribed: &mut Vec<String>,
        seen: &mut BTreeSet<String>,
    ) {
        let (name, schema) = self.resolve(schema);
        let schema = alternative(schema, value);
        match value {
            Value::Array(items) => {
                items.iter().for_each(|item| self.compare(&schema["items"], item, place, undescribed, seen));
            }
            Value::Object(fields) if schema.get("properties").is_some() => {
                for (key, field) in fields {
                    let place = format!("{place}/{key}");
                    match property(schema, value, key) {
                        Some((kind, described)) => {
                            seen.insert(format!("{name}{kind}.{key}"));
                            self.compare(described, field, &place, undescribed, seen);
                        }
                        None => undescribed.push(place),
                    }
                }
            }
            _ => {}
        }
    }

    /// Follows references; of `anyOf [X, null]` it is X that describes.
    fn resolve<'a>(&'a self, schema: &'a Value) -> (&'a str, &'a Value) {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return (name, &self.0["$defs"][name]);
        }
        match schema["anyOf"].get(0) {
            Some(first) => self.resolve(first),
            None => ("", schema),
        }
    }
}

/// Returns the alternative of a choice by `kind` that describes this value.
fn alternative<'a>(schema: &'a Value, value: &Value) -> &'a Value {
    let mut cases = schema["oneOf"].as_array().into_iter().flatten();
    let fits = |case: &&Value| value["kind"].is_string() && case["properties"]["kind"]["const"] == value["kind"];
    cases.find(fits).unwrap_or(schema)
}

/// The description of a property: among the common ones, or among those of the value's `kind`.
fn property<'a>(schema: &'a Value, value: &Value, key: &str) -> Option<(String, &'a Value)> {
    if let Some(common) = schema["properties"].get(key) {
        return Some((String::new(), common));
    }
    let kind = value["kind"].as_str()?;
    let of_kind = schema["allOf"].as_array()?.iter().find(|case| self::kind(case) == kind)?;
    Some((format!(".{kind}"), of_kind["then"]["properties"].get(key)?))
}

/// The kind that a case of a tagged definition is about.
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
