//! The display width of text, with padding and truncation. A Chinese character takes two columns, a combining one none.
//! Also used outside terminals, such as for names in charts.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns that the text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Pads text with spaces to at least `columns`.
pub(super) fn filled(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The longest prefix that fits into `columns`.
pub(super) fn first(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken > columns
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// The longest suffix that fits into `columns`.
pub(super) fn last(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let fits = |(_, c): &(usize, char)| {
        taken += c.width().unwrap_or(0);
        taken <= columns
    };
    text.char_indices().rev().take_while(fits).last().map_or("", |(begin, _)| &text[begin..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!([width("abc"), width("訂單"), width("e\u{301}"), width("")], [3, 4, 1, 0]);
        assert_eq!(filled("訂單", 6), "訂單  ");
        assert_eq!([first("訂單x", 3), first("訂單x", 4), first("abc", 9)], ["訂", "訂單", "abc"]);
        assert_eq!([last("x訂單", 3), last("x訂單", 5), last("abc", 0)], ["單", "x訂單", ""]);
    }

    proptest! {
        #[test]
        fn shortened_and_padded_text_keeps_its_width(text: String, columns in 0usize..40) {
            let sum = |text: &str| text.chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
            prop_assert!(sum(first(&text, columns)) <= columns);
            prop_assert!(sum(last(&text, columns)) <= columns);
            prop_assert!(width(&filled(&text, columns)) >= columns.min(width(&text)));
        }
    }
}
