//! Finds a JSON document among other lines.

use serde_json::{Deserializer, Value};

/// Maximum number of lines beginning with `{` to try: a log of JSON lines may precede the result.
const TRIED_MAX: usize = 64;

/// The last complete JSON object at the start of a line for which `find` succeeds.
///
/// An object marks its own end, so the last line need not be complete.
pub(super) fn last_object<T>(text: &str, find: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let inner = text.match_indices("\n{").map(|(at, _)| at + 1);
    let starts: Vec<usize> = text.starts_with('{').then_some(0).into_iter().chain(inner).collect();
    starts.iter().rev().take(TRIED_MAX).find_map(|at| {
        let value = Deserializer::from_str(&text[*at..]).into_iter::<Value>().next()?.ok()?;
        find(&value)
    })
}

/// A finite, non-negative number.
pub(super) fn amount(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}
