//! Untrusted text in Markdown. In a code span, nothing is markup. In sentences, and wherever a span cannot hold the
//! text, punctuation becomes character references, which CommonMark never interprets as structure (section 2.5).

use super::super::inert::short;

pub(super) fn code(text: &str) -> String {
    let text = short(text);
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    // A pipe would end a cell even inside a span. Renderers differ in their handling of backticks and leading or
    // trailing spaces.
    if text.contains(['`', '|', '\\']) || text.trim() != text {
        return format!("<code>{}</code>", referenced(&text, |_| true));
    }
    format!("`{text}`")
}

/// Characters without a special meaning anywhere in a line.
fn is_harmless(c: char) -> bool {
    matches!(c, ',' | ';' | '.' | '?' | '%' | '/' | '(' | ')' | '=' | '+' | '-' | '\'' | ':')
}

/// A phrase without markup.
pub(super) fn prose(text: &str) -> String {
    let text = short(text);
    let mut out = String::with_capacity(text.len());
    // At the start of a line, `-`, `+`, and `1.` can begin a list; elsewhere, they are harmless.
    let start = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(start);
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let begins_list = digits.is_empty() || rest[first..].is_empty() || rest[first..].starts_with(' ');
    out.push_str(digits);
    out.push_str(&referenced(&rest[..first], |c| begins_list || !is_harmless(c)));
    out.push_str(&referenced(&rest[first..], |c| !is_harmless(c)));
    unlinked(out)
}

/// A phrase that does not start a line: in a cell, or after a label.
pub(super) fn within(text: &str) -> String {
    unlinked(referenced(&short(text), |c| !is_harmless(c)))
}

fn unlinked(mut out: String) -> String {
    // GitHub links addresses and names unless a zero-width character interrupts them.
    for (linked, broken) in [
        ("://", "&#58;//"),
        ("www.", "www&#46;"),
        ("WWW.", "WWW&#46;"),
        ("&#64;", "&#64;&#8203;"),
        ("&#35;", "&#35;&#8203;"),
    ] {
        out = out.replace(linked, broken);
    }
    out
}

/// One of Loadline's own sentences from the result document: text in backticks is code, the rest is prose.
pub(super) fn sentence(text: &str) -> String {
    let text = short(text);
    let pieces: Vec<&str> = text.split('`').collect();
    // An even number of pieces means an unmatched backtick.
    if pieces.len().is_multiple_of(2) {
        return prose(&text);
    }
    let piece = |(index, piece): (usize, &&str)| match index % 2 {
        _ if piece.is_empty() => String::new(),
        0 => prose(piece),
        _ => code(piece),
    };
    pieces.iter().enumerate().map(piece).collect()
}

fn referenced(text: &str, wanted: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_ascii_punctuation() && wanted(character) {
            true => out.push_str(&format!("&#{};", u32::from(character))),
            false => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_spans_keep_names_readable() {
        assert_eq!(code("rss.loaded<=60MiB"), "`rss.loaded<=60MiB`");
        assert_eq!(code("<script>"), "`<script>`");
        assert_eq!(code("a|b"), "<code>a&#124;b</code>");
        assert_eq!(code("a`b"), "<code>a&#96;b</code>");
        assert_eq!(code(" a"), "<code> a</code>");
        assert_eq!(code("a\nb"), "<code>a&#92;nb</code>");
        assert_eq!(code(""), "(empty)");
    }

    #[test]
    fn markup_in_prose_is_escaped() {
        assert_eq!(prose("6.1.0-35-amd64"), "6.1.0-35-amd64");
        assert_eq!(prose("1. x"), "1&#46; x");
        assert_eq!(prose("GET /hello, 25 connections"), "GET /hello, 25 connections");
        assert_eq!(prose("a*b_c [d](e) <f>"), "a&#42;b&#95;c &#91;d&#93;(e) &#60;f&#62;");
        assert_eq!(prose("- x"), "&#45; x");
        assert_eq!(prose("@you"), "&#64;&#8203;you");
        assert_eq!(prose("http://x www.y"), "http&#58;//x www&#46;y");
        assert_eq!(within("-Xmx16m *a* @you"), "-Xmx16m &#42;a&#42; &#64;&#8203;you");
    }

    #[test]
    fn code_in_a_sentence_is_kept() {
        assert_eq!(sentence("give `--cpus` to *it*"), "give `--cpus` to &#42;it&#42;");
        assert_eq!(sentence("one ` alone"), "one &#96; alone");
        assert_eq!(sentence("`a`"), "`a`");
    }
}
