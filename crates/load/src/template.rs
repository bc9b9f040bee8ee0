//! Text with placeholders, parsed once and filled in per request: `{seq}` and `{rand LOW HIGH}`.

use loadline_base::error::{Error, Result};
use loadline_base::numbers::SplitMix64;
use std::io::Write;

/// Text with placeholders. Other braces are plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(Vec<u8>),
    Sequence,
    /// A number from `low` up, one of `span` possible values.
    Random {
        low: u64,
        span: u64,
    },
}

impl Template {
    /// Parses the text. Errors: `Request` for a `{rand …}` without two numbers in order.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut segments = Vec::new();
        let mut rest = text;
        while let Some((before, segment, after)) = first_placeholder(rest)? {
            segments.push(Segment::Literal(before.as_bytes().to_vec()));
            segments.push(segment);
            rest = after;
        }
        segments.push(Segment::Literal(rest.as_bytes().to_vec()));
        segments.retain(|segment| !matches!(segment, Segment::Literal(literal) if literal.is_empty()));
        Ok(Self(segments))
    }

    /// Whether the text is always the same.
    pub(super) fn is_fixed(&self) -> bool {
        self.0.iter().all(|segment| matches!(segment, Segment::Literal(_)))
    }

    /// The literal parts, to check that their characters are allowed in a request.
    pub(super) fn literals(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Literal(literal) => Some(literal.as_slice()),
            Segment::Sequence | Segment::Random { .. } => None,
        })
    }

    /// Appends the text with its placeholders filled in.
    pub(super) fn fill(&self, out: &mut Vec<u8>, sequence: u64, random: &mut SplitMix64) {
        for segment in &self.0 {
            match segment {
                Segment::Literal(literal) => out.extend_from_slice(literal),
                Segment::Sequence => decimal(out, sequence),
                Segment::Random { low, span } => decimal(out, low + random.below(*span)),
            }
        }
    }
}

/// Text before, placeholder, text after; `None` if none is left.
fn first_placeholder(text: &str) -> Result<Option<(&str, Segment, &str)>> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let Some(length) = text[open..].find('}') else { return Ok(None) };
        let close = open + length;
        if let Some(segment) = placeholder(&text[open + 1..close])? {
            return Ok(Some((&text[..open], segment, &text[close + 1..])));
        }
        from = open + 1;
    }
    Ok(None)
}

fn placeholder(inside: &str) -> Result<Option<Segment>> {
    let mut words = inside.split(' ').filter(|word| !word.is_empty());
    match words.next() {
        Some("seq") if words.next().is_none() => return Ok(Some(Segment::Sequence)),
        Some("rand") => {}
        _ => return Ok(None),
    }
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    match (number(), number(), words.next()) {
        (Some(low), Some(high), None) if low <= high && high - low < u64::MAX => {
            Ok(Some(Segment::Random { low, span: high - low + 1 }))
        }
        _ => Err(Error::request(format!("`{{{inside}}}` is not a placeholder")).hint("write it as `{rand 1 1000}`")),
    }
}

pub(super) fn decimal(out: &mut Vec<u8>, number: u64) {
    // Writing to memory never fails.
    let _ = write!(out, "{number}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, sequence: u64) -> String {
        let mut out = Vec::new();
        Template::parse(text).unwrap().fill(&mut out, sequence, &mut SplitMix64::new(1));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_kept() {
        assert_eq!(filled("/item/{seq}?again={seq}", 42), "/item/42?again=42");
        assert_eq!(filled("{\"id\": {seq}, \"a\": {}}", 0), "{\"id\": 0, \"a\": {}}");
        assert_eq!(filled("{seq", 1), "{seq");
        assert_eq!(filled("{sequence}", 1), "{sequence}");
        assert_eq!(filled("{rand 7 7}", 1), "7");
        assert_eq!(filled("", 1), "");
        assert_eq!(filled("{seq}", u64::MAX), u64::MAX.to_string());
        for _ in 0..100 {
            let number: u64 = filled("{rand 1 1000}", 0).parse().unwrap();
            assert!((1..=1000).contains(&number));
        }
    }

    #[test]
    fn a_text_without_placeholders_is_fixed() {
        assert!(Template::parse("/a{b}").unwrap().is_fixed());
        assert!(!Template::parse("/{rand 1 2}").unwrap().is_fixed());
    }

    #[test]
    fn a_wrong_range_is_rejected() {
        for text in ["{rand}", "{rand 1}", "{rand 2 1}", "{rand a b}", "{rand 1 2 3}", "{rand -1 2}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
