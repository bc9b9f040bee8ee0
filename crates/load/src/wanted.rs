//! The criteria for a correct response, and the search for them in the received bytes.

use super::response::ResponseFacts;
use super::tally::Failure;
use crate::work::{ExpectStatus, Method, Request, Work};

/// The criteria for a correct response to one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    status: ExpectStatus,
    length: Option<u64>,
    headers: Vec<(String, Option<String>)>,
    /// Text that the body must contain; not empty.
    pub(super) body: Option<Vec<u8>>,
    /// Whether no body follows the head, whatever it says: a response to HEAD.
    pub(super) bodiless: bool,
}

impl Wanted {
    pub(super) fn of(work: &Work, request: &Request) -> Self {
        let checks = &request.checks;
        Self {
            status: checks.status.unwrap_or(work.expect),
            length: checks.length.map(|length| length.0),
            headers: checks.headers.clone(),
            body: checks.body.as_ref().map(|text| text.clone().into_bytes()).filter(|text| !text.is_empty()),
            bodiless: request.method == Method::Head,
        }
    }

    /// How a complete response fails, if it does.
    #[inline]
    pub(super) fn judge(&self, answer: &ResponseFacts) -> Option<Failure> {
        if !self.status.accepts(answer.status) {
            return Some(Failure::Status(answer.status));
        }
        let whole = self.length.is_none_or(|length| length == answer.body_bytes);
        if whole && answer.fits { None } else { Some(Failure::Check) }
    }

    #[inline]
    pub(super) fn names_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    pub(super) fn finds_headers(&self, head: &[u8]) -> bool {
        let lines = || head.split(|&byte| byte == b'\n').skip(1);
        self.finds_among(|| {
            lines().filter_map(|line| {
                let colon = line.iter().position(|&byte| byte == b':')?;
                Some((&line[..colon], &line[colon + 1..]))
            })
        })
    }

    pub(super) fn finds_among<'a, I>(&self, headers: impl Fn() -> I) -> bool
    where
        I: Iterator<Item = (&'a [u8], &'a [u8])>,
    {
        self.headers.iter().all(|(wanted, text)| {
            headers().any(|(name, value)| {
                name.eq_ignore_ascii_case(wanted.as_bytes())
                    && text.as_ref().is_none_or(|text| value.trim_ascii() == text.trim().as_bytes())
            })
        })
    }
}

/// A search for text in a body that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Search {
    found: bool,
    /// The end of the previous pieces, shorter than the text.
    tail: Vec<u8>,
}

impl Search {
    #[inline]
    pub(super) fn begin(&mut self) {
        self.found = false;
        self.tail.clear();
    }

    pub(super) fn found(&self) -> bool {
        self.found
    }

    pub(super) fn look(&mut self, text: &[u8], piece: &[u8]) {
        if self.found || piece.is_empty() {
            return;
        }
        if contains(piece, text) {
            self.found = true;
            return;
        }
        let kept = text.len() - 1;
        // The text may begin in the tail and end in this piece.
        self.tail.extend_from_slice(&piece[..piece.len().min(kept)]);
        self.found = contains(&self.tail, text);
        if piece.len() >= kept {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - kept..]);
        } else if self.tail.len() > kept {
            self.tail.drain(..self.tail.len() - kept);
        }
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some((&first, rest)) = text.split_first() else { return true };
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == first) {
        let after = &bytes[from + at + 1..];
        if after.starts_with(rest) {
            return true;
        }
        from += at + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wanted(headers: &[(&str, Option<&str>)]) -> Wanted {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
        Wanted { headers, ..Wanted::default() }
    }

    #[test]
    fn headers_are_matched_by_name_and_value() {
        let head = b"HTTP/1.1 200 OK\r\nX-A:  b \r\nx-c: d\r\n\r\n";
        assert!(wanted(&[("x-a", None), ("X-C", Some("d"))]).finds_headers(head));
        assert!(wanted(&[("X-A", Some("b"))]).finds_headers(head));
        assert!(!wanted(&[("X-A", Some("c"))]).finds_headers(head));
        assert!(!wanted(&[("X-A", None), ("X-B", None)]).finds_headers(head));
        let pairs = [(b"x-a" as &[u8], b"b" as &[u8])];
        assert!(wanted(&[("X-A", Some("b"))]).finds_among(|| pairs.into_iter()));
    }

    #[test]
    fn a_response_is_judged_by_status_first() {
        let wanted = Wanted { length: Some(2), ..Wanted::default() };
        let answer = ResponseFacts { status: 200, keep_alive: true, body_bytes: 2, fits: true };
        assert_eq!(wanted.judge(&answer), None);
        assert_eq!(wanted.judge(&ResponseFacts { body_bytes: 3, ..answer }), Some(Failure::Check));
        assert_eq!(wanted.judge(&ResponseFacts { fits: false, ..answer }), Some(Failure::Check));
        assert_eq!(wanted.judge(&ResponseFacts { status: 500, fits: false, ..answer }), Some(Failure::Status(500)));
    }

    proptest! {
        #[test]
        fn a_text_is_found_in_a_body_split_anywhere(
            body in prop::collection::vec(0u8..3, 0..60),
            text in prop::collection::vec(0u8..3, 1..6),
            cuts in prop::collection::vec(0usize..60, 0..20),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).chain([0, body.len()]).collect();
            cuts.sort_unstable();
            let mut search = Search::default();
            for pair in cuts.windows(2) {
                search.look(&text, &body[pair[0]..pair[1]]);
            }
            prop_assert_eq!(search.found(), body.windows(text.len()).any(|window| window == text));
        }
    }
}
