//! Building blocks for user-written files: ordered maps, values with several spellings, and errors with the line and
//! the closest valid word.

use crate::error::Error;
use crate::units::clipped;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// A map in file order.
pub(super) struct Named<T>(pub(super) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_map(Entries(PhantomData)).map(Self)
    }
}

/// Deserializes a map in file order, using this seed for values.
pub(super) struct Entries<S>(pub(super) S);

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for Entries<S> {
    type Value = Vec<(String, S::Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map with names as keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key()? {
            entries.push((name, map.next_value_seed(self.0)?));
        }
        Ok(entries)
    }
}

loadline_base::written_as! {
    Scalar, "text", |of| {"description": "A string or a number.", "type": ["string", "number", "boolean"]};
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("named_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": (generator.subschema_for::<T>())})
    }
}

/// A value written as text, number, or Boolean: `1`, `"1"`, `true`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a string or a number")]
pub(super) enum Scalar {
    Text(String),
    Whole(i64),
    Fraction(f64),
    Switch(bool),
}

impl Scalar {
    pub(super) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Whole(n) => n.to_string(),
            Self::Fraction(n) => n.to_string(),
            Self::Switch(b) => b.to_string(),
        }
    }
}

pub(super) fn parsed<'de, D, T>(from: D) -> std::result::Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    let written = Option::<Scalar>::deserialize(from)?;
    written.map(|written| written.text().parse().map_err(D::Error::custom)).transpose()
}

pub(super) fn each_parsed<'de, D, T>(from: D) -> std::result::Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    let written = Vec::<Scalar>::deserialize(from)?;
    written.into_iter().map(|written| written.text().trim().parse().map_err(D::Error::custom)).collect()
}

/// Deserializes a map in file order.
pub(super) fn named<'de, D, T>(from: D) -> std::result::Result<Vec<(String, T)>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Named::deserialize(from).map(|named| named.0)
}

pub(super) fn texts<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Vec<String>, D::Error> {
    Ok(Vec::<Scalar>::deserialize(from)?.into_iter().map(Scalar::text).collect())
}

/// Deserializes a map of strings and numbers in file order.
pub(super) fn texts_by_name<'de, D, T>(from: D) -> std::result::Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: From<Vec<(String, String)>> + Default,
{
    let written = Option::<Named<Scalar>>::deserialize(from)?;
    let text = |(name, value): (String, Scalar)| (name, value.text());
    Ok(written.map_or_else(T::default, |named| named.0.into_iter().map(text).collect::<Vec<_>>().into()))
}

/// Deserializes a map of strings and numbers, which may be empty.
pub(super) fn texts_or_none_by_name<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Vec<(String, Option<String>)>, D::Error> {
    let written = Option::<Named<Option<Scalar>>>::deserialize(from)?.map_or_else(Vec::new, |named| named.0);
    Ok(written.into_iter().map(|(name, value)| (name, value.map(Scalar::text))).collect())
}

/// Maximum length of the line shown in an error.
const LINE_CHARS_MAX: usize = 200;

/// Converts a YAML error to one with the line and the closest valid key.
///
/// Extracts the words from serde's message: ``unknown field `comand`, expected one of `build`, `command` at line 3``.
pub(super) fn explain(text: &str, cause: &yaml_serde::Error) -> Error {
    let full = cause.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.contains("unknown field").then(|| quoted.next()).flatten();
    let meant = unknown.and_then(|word| did_you_mean(word, quoted));
    let what = match unknown {
        Some(word) => format!("unknown key `{word}`"),
        None => in_plain_words(&message),
    };
    let mut error = match cause.location() {
        Some(place) => {
            let line = text.lines().nth(place.line().saturating_sub(1)).unwrap_or("").trim_end();
            let line = clipped(line, LINE_CHARS_MAX);
            Error::request(format!("line {}: {what}", place.line())).at(format!("{:>4} | {line}", place.line()))
        }
        None => Error::request(what),
    };
    if unknown.is_some() {
        error = error.hint(meant.unwrap_or_else(|| message.split(", ").skip(1).collect::<Vec<_>>().join(", ")));
    }
    error
}

/// Rewrites a serde message without Rust type names.
fn in_plain_words(message: &str) -> String {
    let Some((seen, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let expected = match expected {
        "u16" | "u32" | "u64" => "a whole number",
        "a sequence" => "a list such as `[a, b]`",
        "a boolean" => "`true` or `false`",
        other if other.starts_with("struct ") => "a map such as `{key: value}`",
        other => other,
    };
    format!("{seen}, expected {expected}")
}

/// A hint with the closest valid word, if it is close enough to be a typo.
pub(super) fn did_you_mean<'a>(word: &str, valid: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(word, valid).map(|meant| format!("did you mean `{meant}`?"))
}

/// The closest valid word, if it is close enough to be a typo.
fn nearest<'a>(word: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    valid
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
