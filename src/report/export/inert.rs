//! Foreign text made harmless before a format quotes it: what steers a terminal or a reader's eye becomes visible.

use crate::units;
use std::fmt::Write as _;

/// What a cell or a sentence can show; longer text is cut, with a sign that it was.
const CHARACTERS_MAX: usize = 300;

/// One line, with control characters, separators of lines and marks of direction written out (`\n`, `\u{1b}`), as are
/// the code points that no XML may hold.
pub(in crate::report) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => out.extend(character.escape_default()),
            character if steers(character) => {
                let _ = write!(out, "{}", character.escape_unicode());
            }
            character => out.push(character),
        }
    }
    out
}

/// [`visible`], and no longer than a person reads.
pub(super) fn short(text: &str) -> String {
    clipped(text, CHARACTERS_MAX)
}

/// [`visible`], of at most so many characters of the text.
pub(super) fn clipped(text: &str, characters_max: usize) -> String {
    visible(&units::clipped(text, characters_max))
}

/// Whether a character moves a cursor, ends a line, turns the direction of reading, or may stand in no XML.
pub(in crate::report) fn steers(character: char) -> bool {
    // Trojan Source (CVE-2021-42574) lists the marks of direction; U+2028 and U+2029 end lines for some readers.
    let direction = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}');
    let line = matches!(character, '\u{2028}' | '\u{2029}');
    character.is_control() || direction || line || matches!(character, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_written_out() {
        assert_eq!(visible("a\n\r\tb"), "a\\n\\r\\tb");
        assert_eq!(visible("\u{1b}[31m\0\u{85}"), "\\u{1b}[31m\\u{0}\\u{85}");
        assert_eq!(visible("x\u{202e}y\u{2028}z\u{ffff}"), "x\\u{202e}y\\u{2028}z\\u{ffff}");
        assert_eq!(visible("grün 日本 <&>"), "grün 日本 <&>");
    }

    #[test]
    fn long_text_is_cut_with_a_sign() {
        let cut = short(&"ü".repeat(10_000));
        assert_eq!(cut.chars().count(), CHARACTERS_MAX + 1);
        assert!(cut.ends_with('…'));
        assert_eq!(short(&"x".repeat(CHARACTERS_MAX)), "x".repeat(CHARACTERS_MAX));
    }
}
