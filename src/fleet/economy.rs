//! The work needed for a service tonight: confirming a line takes a third as long as finding one.

use crate::record::Why;
use crate::scenario::Last;
use crate::units::{Span, unix_s};

/// Why a service's line must be searched for, as far as a plan can tell; `None` if the last line should be confirmed.
/// `made_unix_s` is the time of the plan. If the last line's question or inputs are unknown, they count as unchanged.
pub fn why_search(
    last: Option<&Last>,
    question: &str,
    inputs: Option<&str>,
    made_unix_s: i64,
    search_every: Span,
) -> Option<Why> {
    let Some(last) = last else { return Some(Why::First) };
    let searched = last.searched_at.as_deref().and_then(unix_s);
    let is_long_ago =
        searched.is_none_or(|searched| made_unix_s.saturating_sub(searched) >= search_every.0.as_secs() as i64);
    match () {
        () if differs(last.question.as_deref(), Some(question)) => Some(Why::QuestionChanged),
        () if differs(last.inputs.as_deref(), inputs) => Some(Why::InputsChanged),
        () if is_long_ago => Some(Why::LongAgo),
        () => None,
    }
}

/// The properties of a service that only the node knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceVersions {
    /// The digest of the image.
    pub image_digest: Option<String>,
    /// The version of the JDK that runs the service.
    pub jdk: Option<String>,
}

/// Why a line that was to be confirmed must be searched for, from the node's state.
pub fn why_here(last: &Last, seen: &ServiceVersions) -> Option<Why> {
    match () {
        () if differs(last.image_digest.as_deref(), seen.image_digest.as_deref()) => Some(Why::ImageChanged),
        () if differs(last.jdk.as_deref(), seen.jdk.as_deref()) => Some(Why::JdkChanged),
        () => None,
    }
}

fn differs(before: Option<&str>, now: Option<&str>) -> bool {
    before.zip(now).is_some_and(|(before, now)| before != now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use std::time::Duration;

    const WEEK: Span = Span(Duration::from_secs(7 * 86_400));

    fn last() -> Last {
        Last {
            searched_at: Some("2026-11-20T00:00:00Z".to_owned()),
            question: Some("q".to_owned()),
            inputs: Some("i".to_owned()),
            image_digest: Some("d".to_owned()),
            jdk: Some("17".to_owned()),
            ..Last::of(Bytes(1))
        }
    }

    #[test]
    fn a_line_is_searched_after_a_change_or_a_week() {
        let at = |text: &str| unix_s(text).unwrap();
        let soon = at("2026-11-22T00:00:00Z");
        let why = |last: &Last, now| why_search(Some(last), "q", Some("i"), now, WEEK);
        assert_eq!(why_search(None, "q", Some("i"), soon, WEEK), Some(Why::First));
        assert_eq!(why(&last(), soon), None);
        assert_eq!(why(&last(), at("2026-11-26T23:59:59Z")), None);
        assert_eq!(why(&last(), at("2026-11-27T00:00:00Z")), Some(Why::LongAgo));
        assert_eq!(why(&Last { question: Some("other".to_owned()), ..last() }, soon), Some(Why::QuestionChanged));
        assert_eq!(why(&Last { inputs: Some("other".to_owned()), ..last() }, soon), Some(Why::InputsChanged));
        assert_eq!(why(&Last { question: None, inputs: None, ..last() }, soon), None, "no change is known");
        assert_eq!(why(&Last { searched_at: None, ..last() }, soon), Some(Why::LongAgo));
    }

    #[test]
    fn a_node_detects_changes_that_a_plan_cannot() {
        let seen = |image: &str, jdk: &str| ServiceVersions {
            image_digest: Some(image.to_owned()),
            jdk: Some(jdk.to_owned()),
        };
        assert_eq!(why_here(&last(), &seen("d", "17")), None);
        assert_eq!(why_here(&last(), &ServiceVersions::default()), None);
        assert_eq!(why_here(&last(), &seen("e", "17")), Some(Why::ImageChanged));
        assert_eq!(why_here(&last(), &seen("d", "21")), Some(Why::JdkChanged));
    }
}
