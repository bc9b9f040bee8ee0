//! Injection-safe markup: text is escaped, and only markup is inserted unchanged. Used for HTML and SVG, so control
//! characters, which XML forbids, are shown by number.

use std::fmt::{Display, Write};

/// A piece of HTML or SVG. Untrusted text cannot be inserted without escaping.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Markup(String);

pub(super) type Attribute<'a> = (&'static str, &'a dyn Display);

impl Markup {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Loadline's own markup.
    pub(super) fn fixed(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn text(&mut self, text: impl Display) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(Escaped(&mut self.0), "{text}");
        self
    }

    pub(super) fn append(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// An element with the content that `inside` writes.
    pub(super) fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.open(name, attributes);
        self.0.push('>');
        inside(self);
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
        self
    }

    /// An element that contains only text.
    pub(super) fn words(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: impl Display) -> &mut Self {
        self.element(name, attributes, |inside| {
            inside.text(text);
        })
    }

    /// An empty SVG element.
    pub(super) fn empty(&mut self, name: &'static str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.open(name, attributes);
        self.0.push_str("/>");
        self
    }

    pub(super) fn line(&mut self) -> &mut Self {
        self.0.push('\n');
        self
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    fn open(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
    }
}

/// Escapes text and passes it on.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for c in text.chars() {
            match c {
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '&' => self.0.push_str("&amp;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' => self.0.push('\n'),
                '\t' => self.0.push(' '),
                c if is_hidden(c) => write!(self.0, "\u{27e8}U+{:04X}\u{27e9}", u32::from(c))?,
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Invisible characters that affect visible ones: controls, directional marks, zero-width characters.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        Markup::new().text(text).as_str().to_owned()
    }

    #[test]
    fn text_is_escaped_and_control_characters_shown() {
        for (text, expect) in [
            ("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"),
            ("a & \"b\"", "a &amp; &quot;b&quot;"),
            ("\0\u{1b}[31m\r\t\u{7f}", "⟨U+0000⟩⟨U+001B⟩[31m⟨U+000D⟩ ⟨U+007F⟩"),
            ("\u{202e}gpj.exe\u{2066}", "⟨U+202E⟩gpj.exe⟨U+2066⟩"),
            ("\u{85}\u{feff}\u{ffff}", "⟨U+0085⟩⟨U+FEFF⟩⟨U+FFFF⟩"),
            ("two\nlines, größer, 負荷", "two\nlines, größer, 負荷"),
        ] {
            assert_eq!(escaped(text), expect);
        }
    }

    #[test]
    fn elements_are_closed_and_attributes_quoted() {
        let mut out = Markup::new();
        out.element("p", &[("title", &"\"><b>"), ("data-n", &3)], |p| {
            p.words("b", &[], "x<y").empty("br", &[]);
        });
        assert_eq!(out.as_str(), "<p title=\"&quot;&gt;&lt;b&gt;\" data-n=\"3\"><b>x&lt;y</b><br/></p>");
    }

    proptest! {
        #[test]
        fn any_text_is_escaped(text in "\\PC*|.*|[<>&\"'\\x00-\\x1f\u{202a}-\u{202e}a]*") {
            let out = escaped(&text);
            prop_assert!(!out.contains(['<', '>', '"', '\'']));
            prop_assert!(!out.chars().any(|c| c != '\n' && is_hidden(c)));
        }
    }
}
