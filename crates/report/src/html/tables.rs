//! The text parts of a page: tables, facts, figures with legends.

use crate::chart::{Figure, Sign, draw_sign, fluid};
use crate::markup::{Attribute, Markup};
use crate::table::{Cell, Table};
use crate::units::shortened;
use crate::words::Standing;

/// Maximum length of a cell; full commands and flags are among the facts.
const CELL_CHARS: usize = 300;
/// Maximum length of a fact: enough for a command line with all its flags.
const FACT_CHARS: usize = 12_000;
/// Maximum rows; the JSON document has all of them.
const ROWS_MAX: usize = 2000;
/// Shorter cells are not wrapped.
const BRIEF_CHARS: usize = 24;
/// Lines shown without scrolling, if none is wrapped.
const LINES_SHOWN: usize = 12;
/// Cells of this length or more get a wide column.
const LONG_CHARS: usize = 40;

/// A table in a box that scrolls on narrow pages.
pub(super) fn table(out: &mut Markup, table: &Table) {
    let numbers: Vec<bool> = (0..table.head.len()).map(|column| table.has_numbers(column)).collect();
    let head = |out: &mut Markup| {
        for (head, number) in table.head.iter().zip(&numbers) {
            let class = if *number { "n" } else { "" };
            out.words("th", &[("scope", &"col"), ("class", &class)], shortened(head, CELL_CHARS));
        }
    };
    let box_of: [Attribute<'_>; 4] =
        [("class", &"scroll"), ("role", &"region"), ("tabindex", &"0"), ("aria-label", &table.title)];
    out.element("div", &box_of, |out| {
        out.element("table", &[], |out| {
            out.element("thead", &[], |out| {
                out.element("tr", &[], head);
            });
            out.line().element("tbody", &[], |out| {
                for row in table.rows.iter().take(ROWS_MAX) {
                    out.element("tr", &[], |out| cells(out, row, &numbers)).line();
                }
            });
        });
    });
    let left_out = table.rows.len().saturating_sub(ROWS_MAX);
    let more = (left_out > 0).then(|| format!("{left_out} more rows are in the JSON output."));
    for note in table.notes.iter().chain(&more) {
        out.words("p", &[("class", &"notes")], shortened(note, FACT_CHARS));
    }
}

fn cells(out: &mut Markup, row: &[Cell], numbers: &[bool]) {
    for (column, cell) in row.iter().enumerate() {
        if let Cell::Verdict(standing, word) = cell {
            out.element("td", &[], |out| badge(out, *standing, word));
            continue;
        }
        let shown = shortened(&written(cell), CELL_CHARS);
        let number = numbers.get(column) == Some(&true);
        match (column, number) {
            (0, _) => {
                let class = if shown.chars().count() <= BRIEF_CHARS { "brief" } else { "" };
                out.element("th", &[("scope", &"row"), ("class", &class)], |out| {
                    out.words("div", &[], shown);
                });
            }
            (_, true) => {
                out.words("td", &[("class", &"n")], shown);
            }
            _ => {
                let class = match shown.chars().count() {
                    ..=BRIEF_CHARS => "brief",
                    LONG_CHARS.. => "long",
                    _ => "",
                };
                out.element("td", &[], |out| {
                    out.element("div", &[("class", &class)], |out| unbroken(out, &shown));
                });
            }
        }
    }
}

/// A cell with a minus sign as wide as a plus.
fn written(cell: &Cell) -> String {
    match cell {
        Cell::Quantity(quantity) => quantity.clone().wide().to_string(),
        Cell::Interval(estimate) => estimate.clone().wide().interval(),
        Cell::Text(text) | Cell::Verdict(_, text) => text.clone(),
    }
}

pub(super) fn badge(out: &mut Markup, standing: Standing, word: &str) {
    let (class, sign, _) = standing.look();
    let class = format!("badge {class}");
    out.words("span", &[("class", &class), ("data-sign", &sign)], shortened(word, BRIEF_CHARS));
}

pub(super) fn facts(out: &mut Markup, facts: &[(String, String)]) {
    out.element("dl", &[], |out| {
        for (label, text) in facts {
            out.words("dt", &[], shortened(label, CELL_CHARS));
            out.element("dd", &[], |out| unbroken(out, &shortened(text, FACT_CHARS))).line();
        }
    });
}

/// A sentence in which text in backticks is literal.
pub(super) fn prose(out: &mut Markup, text: &str) {
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate() {
        // The last backtick may be unmatched.
        match index % 2 == 1 && index + 1 < parts.len() {
            true => drop(out.element("code", &[], |out| unbroken(out, part))),
            false if index % 2 == 1 => unbroken(out.text("`"), part),
            false => unbroken(out, part),
        }
    }
}

/// Prevents line breaks after the dash of an option such as `-Xmx8m`.
fn unbroken(out: &mut Markup, text: &str) {
    for piece in text.split_inclusive(' ') {
        let word = piece.trim_end_matches(' ');
        match is_option(word) {
            true => out.words("span", &[("class", &"option")], word).text(&piece[word.len()..]),
            false => out.text(piece),
        };
    }
}

/// Whether the word contains a dash that begins an option instead of joining two words.
fn is_option(word: &str) -> bool {
    let mut before = ' ';
    word.chars().any(|c| {
        let begins = c.is_alphanumeric() && before == '-';
        let joins = before.is_alphanumeric() && c == '-';
        // A dash that joins two words counts as a letter.
        before = if joins { 'a' } else { c };
        begins
    })
}

/// Lines from a terminal or file. Long text can be scrolled, even with the keyboard.
pub(super) fn lines(out: &mut Markup, lines: &[String]) {
    let stop: &[Attribute<'_>] = &[("tabindex", &"0")];
    out.element("pre", if lines.len() > LINES_SHOWN { stop } else { &[] }, |out| {
        for line in lines {
            let line = shortened(&line.replace('\n', "\u{2424}"), FACT_CHARS / 6);
            match line.contains(' ') {
                true => unbroken(out, &line),
                false => drop(out.text(line)),
            }
            out.line();
        }
    });
}

/// A chart with its legend, an output for hovered values, and a collapsed table of its numbers.
pub(super) fn figure(out: &mut Markup, figure: &Figure) {
    out.element("figure", &[], |out| {
        out.words("figcaption", &[], shortened(&figure.chart.title, CELL_CHARS));
        if !figure.chart.legend.is_empty() {
            out.element("ul", &[("class", &"legend")], |out| {
                for (sign, words) in &figure.chart.legend {
                    out.element("li", &[], |out| key(out, sign, words));
                }
            });
        }
        out.line().append(&fluid(&figure.chart)).line();
        if !figure.chart.group.is_empty() {
            out.words("p", &[("class", &"readout"), ("aria-live", &"polite")], "");
        }
        out.element("details", &[], |out| {
            out.words("summary", &[], &figure.table.title);
            table(out, &figure.table);
        });
    });
    out.line();
}

fn key(out: &mut Markup, sign: &Sign, words: &str) {
    let place: [Attribute<'_>; 4] =
        [("class", &"chart-key"), ("width", &"18"), ("height", &"12"), ("aria-hidden", &"true")];
    out.element("svg", &place, |out| draw_sign(out, sign, 0, 6));
    out.text(shortened(words, 80));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned_and_words_left_aligned() {
        let rows = [vec!["rss", "61.2", "1 of 2", "better"]];
        let head = ["metric", "a", "b", "c"];
        let numbers = |lead: usize, words: usize| {
            let mut out = Markup::new();
            super::table(&mut out, &Table::new("", head, rows.clone()).worded(lead, words));
            out.as_str().matches("<td class=\"n\">").count()
        };
        assert_eq!([numbers(0, 1), numbers(1, 0), numbers(2, 1), numbers(2, 9)], [2, 3, 1, 0]);
    }

    #[test]
    fn literals_are_marked_as_code() {
        for (text, html) in [
            ("use `cpus`, now", "use <code>cpus</code>, now"),
            ("one ` alone", "one ` alone"),
            ("`<b>` and `", "<code>&lt;b&gt;</code> and `"),
            ("set `-Xmx8m` here", "set <code><span class=\"option\">-Xmx8m</span></code> here"),
            ("", ""),
        ] {
            let mut out = Markup::new();
            prose(&mut out, text);
            assert_eq!(out.as_str(), html);
        }
    }

    #[test]
    fn options_are_not_wrapped() {
        for word in ["-Xmx8m", "--out", "'-XX:+UseSerialGC'", "OPTIONS=-Xmx8m", "(-0.4"] {
            assert!(is_option(word), "{word}");
        }
        for word in ["free-committed", "-", "--", "tiny-http.yaml", "a - b", ""] {
            assert!(!is_option(word), "{word}");
        }
    }
}
