//! Bounds YAML before parsing. The parser (libyaml-rs 0.3) takes quadratic time in the nesting depth of `[` and `{`,
//! before it returns anything: 200,000 of them take half a minute, during which signals are ignored.

use super::written::explain;
use crate::error::{Error, Result};
use serde::de::DeserializeOwned;

/// No scenario or fleet file is larger: 10,000 services take about 3 MB.
pub const YAML_BYTES_MAX: u64 = 16 << 20;
/// Maximum nesting of `[` and `{`, as counted by [`nested`]. The parser takes a second for it. Each of a fleet's
/// 10,000 services can have three of them.
const DEPTH_MAX: usize = 40_000;

/// Parses a file of at most [`YAML_BYTES_MAX`]. Errors: `Request` with the line and the closest valid word.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    within_bounds(text)?;
    yaml_serde::from_str(text).map_err(|cause| explain(text, &cause))
}

/// Checks whether text is safe to parse. Errors: `Request` with the line that exceeds a bound.
pub fn within_bounds(text: &str) -> Result<()> {
    if text.len() as u64 > YAML_BYTES_MAX {
        return Err(Error::request(format!("the file is larger than {} MiB", YAML_BYTES_MAX >> 20))
            .hint("split it; put a large request body in a separate file (`body: {file: NAME}`)"));
    }
    let mut depth = 0;
    for (number, line) in text.split('\n').enumerate() {
        let (deepest, left_open) = nested(line);
        if depth + deepest > DEPTH_MAX {
            let what = format!("line {}: `[` and `{{` are nested more than {DEPTH_MAX} deep", number + 1);
            return Err(Error::request(what).hint("write one list or map entry per line: `- a` and `key: value`"));
        }
        depth += left_open;
    }
    Ok(())
}

/// Upper bounds on a line's nesting of `[` and `{`, and on how many it leaves open. Only the parser knows which are
/// inside text, so every opening one counts. A closing one counts only on the line that opened it, and only if that
/// line has no quote, comment, or tag that could hide it.
fn nested(line: &str) -> (usize, usize) {
    let hides = line.bytes().any(|byte| matches!(byte, b'"' | b'\'' | b'#' | b'!' | b'%'));
    line.bytes().fold((0, 0), |(deepest, open): (usize, usize), byte| match byte {
        b'[' | b'{' => (deepest.max(open + 1), open + 1),
        b']' | b'}' if !hides => (deepest, open.saturating_sub(1)),
        _ => (deepest, open),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_that_parses_in_quadratic_time_is_rejected_with_its_line() {
        let many = |text: &str| text.repeat(200_000);
        let closed_before = format!("a{}: {}", many("]"), many("["));
        for text in [many("["), many("{"), many("[\"]\","), many("[ # ]\n").replace('\n', "\r"), closed_before] {
            let error = read::<yaml_serde::Value>(&format!("name: x\nload: {text}")).unwrap_err();
            assert_eq!(error.what, "line 2: `[` and `{` are nested more than 40000 deep");
        }
        let error = read::<yaml_serde::Value>(&many("[\n")).unwrap_err();
        assert_eq!(error.what, "line 40001: `[` and `{` are nested more than 40000 deep");
        let error = read::<yaml_serde::Value>(&"x".repeat((16 << 20) + 1)).unwrap_err();
        assert_eq!(error.what, "the file is larger than 16 MiB");
    }

    #[test]
    fn many_siblings_do_not_exceed_the_nesting_limit() {
        let list = "- {a: [b, {c: d}]}\n".repeat(100_000);
        assert!(within_bounds(&list).is_ok());
        assert_eq!(read::<Vec<u32>>(&format!("[{}]", "1,".repeat(100_000))).unwrap().len(), 100_000);
    }

    /// Quadratic time would mean minutes for each.
    #[test]
    fn accepted_yaml_is_parsed_quickly() {
        let many = |text: &str| text.repeat(200_000);
        let deep = [many("- "), many("? "), many("!a "), many("&a "), many("a: \n "), "[".repeat(DEPTH_MAX)];
        for text in deep {
            assert!(read::<yaml_serde::Value>(&text).is_err(), "{:?}…", &text[..6]);
        }
    }
}
