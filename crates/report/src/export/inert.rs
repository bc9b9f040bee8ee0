//! Sanitizes untrusted text before a format quotes it: makes control and misleading characters visible.

use crate::units::{self, visible};

/// Maximum length of a cell or sentence; longer text is truncated and marked.
const CHARACTERS_MAX: usize = 300;

/// [`visible`], truncated to a readable length.
pub(super) fn short(text: &str) -> String {
    clipped(text, CHARACTERS_MAX)
}

/// [`visible`], truncated to this many characters.
pub(super) fn clipped(text: &str, characters_max: usize) -> String {
    visible(&units::clipped(text, characters_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_escapes() {
        assert_eq!(visible("a\n\r\tb"), "a\\n\\r\\tb");
        assert_eq!(visible("\u{1b}[31m\0\u{85}"), "\\u{1b}[31m\\u{0}\\u{85}");
        assert_eq!(visible("x\u{202e}y\u{2028}z\u{ffff}"), "x\\u{202e}y\\u{2028}z\\u{ffff}");
        assert_eq!(visible("grün 日本 <&>"), "grün 日本 <&>");
    }

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        let cut = short(&"ü".repeat(10_000));
        assert_eq!(cut.chars().count(), CHARACTERS_MAX + 1);
        assert!(cut.ends_with('…'));
        assert_eq!(short(&"x".repeat(CHARACTERS_MAX)), "x".repeat(CHARACTERS_MAX));
    }
}
