//! Markers in a subject's output: phases and counters.
//!
//! `loadline: phase=steady users=25` and `loadline: ops=1200 s=1.5 fail=0`; an additional pattern supports subjects
//! with their own markers.

use regex_lite::Regex;
use std::time::Duration;

/// Marks a line for Loadline; other text, such as a log's timestamp, can precede it.
const PREFIX: &str = "loadline: ";
/// The maximum number of values per line.
const VALUES_MAX: usize = 64;

/// A line intended for Loadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// When it was read, relative to the clock's origin.
    pub at: Duration,
    /// The phase that begins, if any.
    pub phase: Option<String>,
    /// Other `key=value` pairs in order, including counters.
    pub values: Vec<(String, String)>,
}

impl Marker {
    /// Parses a line; `None` if it is not a marker.
    pub fn parse(line: &str, patterns: &[Regex], at: Duration) -> Option<Self> {
        if let Some(start) = line.find(PREFIX) {
            let marker = Self::from_pairs(&line[start + PREFIX.len()..], at);
            if marker.is_some() {
                return marker;
            }
        }
        let captures = patterns.iter().find_map(|pattern| pattern.captures(line))?;
        let name = captures.get(1).or_else(|| captures.get(0))?;
        Some(Self { at, phase: Some(name.as_str().to_owned()), values: Vec::new() })
    }

    fn from_pairs(text: &str, at: Duration) -> Option<Self> {
        let pairs = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        let mut values: Vec<(String, String)> = pairs
            .filter(|(key, _)| !key.is_empty())
            .take(VALUES_MAX)
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let phase = values.iter().position(|(key, _)| key == "phase").map(|index| values.remove(index).1);
        (phase.is_some() || !values.is_empty()).then_some(Self { at, phase, values })
    }

    /// A value as a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        let value = self.values.iter().find(|(known, _)| known == key)?.1.parse().ok()?;
        Some(value).filter(|value: &f64| value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Expected<'a> = Option<(Option<&'a str>, &'a [(&'a str, &'a str)])>;

    fn check(line: &str, expect: Expected) {
        let pattern = Regex::new(r"PHASE (\w+)").unwrap();
        let marker = Marker::parse(line, &[pattern], Duration::ZERO);
        let own = |text: &str| text.to_owned();
        let expect = expect.map(|(phase, values)| {
            (phase.map(own), values.iter().map(|(key, value)| (own(key), own(value))).collect::<Vec<_>>())
        });
        assert_eq!(marker.map(|marker| (marker.phase, marker.values)), expect, "{line}");
    }

    #[test]
    fn markers_counters_and_custom_patterns_are_read() {
        check("loadline: phase=steady users=25", Some((Some("steady"), &[("users", "25")])));
        check("12:00 INFO loadline: a=1 phase=x", Some((Some("x"), &[("a", "1")])));
        check("loadline: ops=1200 s=1.5 fail=0", Some((None, &[("ops", "1200"), ("s", "1.5"), ("fail", "0")])));
        check("loadline: nothing here", None);
        check("loadline: =x", None);
        check("PHASE two", Some((Some("two"), &[])));
        check("loadline: phase=", Some((Some(""), &[])));
        check("other", None);
    }

    #[test]
    fn marker_numbers_are_finite() {
        let marker = Marker::parse("loadline: ops=12 s=NaN t=x", &[], Duration::ZERO).unwrap();
        assert_eq!((marker.number("ops"), marker.number("s"), marker.number("t")), (Some(12.0), None, None));
    }
}
