//! Prints a page as Markdown. Untrusted text goes into code spans or character references, so that no renderer
//! interprets it as markup.

use super::escape::{code, prose, sentence, within};
use crate::page::{Fold, Page, Part, Section, Verdict};
use crate::table::{Cell, Table};
use crate::words::Standing;

/// The page, with headings from level three to fit below others. `folds` selects collapsed sections.
pub(in crate::export) fn printed(page: &Page, folds: impl Fn(&Section) -> bool) -> String {
    let mut out = String::new();
    if !page.title.is_empty() {
        out.push_str(&format!("### {}\n", sentence(&page.title)));
    }
    for of in &page.sections {
        let mut body = String::new();
        of.parts.iter().for_each(|one| part(&mut body, one, of, 5));
        match (of.heading.is_empty() || body.is_empty(), folds(of)) {
            (true, _) => out.push_str(&body),
            (_, true) => out.push_str(&folded(&sentence(&of.caption()), body.trim_start())),
            (_, false) => out.push_str(&format!("\n#### {}\n{body}", sentence(&of.caption()))),
        }
    }
    out
}

/// A collapsed part.
fn folded(title: &str, body: &str) -> String {
    // The empty lines make the enclosed text Markdown again.
    format!("\n<details>\n<summary>{title}</summary>\n\n{body}\n</details>\n")
}

fn part(out: &mut String, part: &Part, of: &Section, level: usize) {
    match part {
        Part::Text(text) => out.push_str(&format!("\n{}\n", sentence(text))),
        Part::Facts(facts) => list(out, facts.iter().map(fact)),
        Part::Verdicts(all) => list(out, all.iter().map(verdict)),
        Part::Doubts(doubts) => list(out, doubts.iter().map(doubt)),
        Part::Orders(orders) => orders.iter().take(1).for_each(|(_, one)| table(out, one, of, level)),
        Part::Table(one) => table(out, one, of, level),
        Part::Section(within) => {
            let mut body = String::new();
            within.parts.iter().for_each(|one| self::part(&mut body, one, within, (level + 1).min(6)));
            match within.fold {
                _ if body.is_empty() => {}
                Fold::Never => {
                    heading(out, &within.heading, of, level);
                    out.push_str(&body);
                }
                Fold::Open | Fold::Closed => out.push_str(&folded(&sentence(&within.heading), body.trim_start())),
            }
        }
        // Markdown omits both lines to copy and charts.
        Part::Literal(_) | Part::Bars(_) | Part::Figure(_) => {}
    }
}

fn list(out: &mut String, lines: impl Iterator<Item = String>) {
    let lines: String = lines.map(|line| format!("- {line}\n")).collect();
    if !lines.is_empty() {
        out.push_str(&format!("\n{lines}"));
    }
}

/// A fact without a label continues the previous one.
fn fact((label, text): &(String, String)) -> String {
    match label.is_empty() {
        true => sentence(text),
        false => format!("{}: {}", prose(label), sentence(text)),
    }
}

fn verdict(of: &Verdict) -> String {
    match of.standing {
        Standing::Fail | Standing::Worse => format!("**{}**", sentence(&of.sentence())),
        _ => sentence(&of.sentence()),
    }
}

fn doubt((what, next): &(String, String)) -> String {
    match next.is_empty() {
        true => sentence(what),
        false => format!("{}. Next: {}", sentence(what.trim_end_matches('.')), sentence(next)),
    }
}

fn heading(out: &mut String, text: &str, of: &Section, level: usize) {
    if !text.is_empty() && !text.eq_ignore_ascii_case(&of.heading) {
        out.push_str(&format!("\n{} {}\n", "#".repeat(level), sentence(text)));
    }
}

fn table(out: &mut String, one: &Table, of: &Section, level: usize) {
    heading(out, &one.title, of, level);
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let align = (0..one.head.len()).map(|column| if one.has_numbers(column) { "--:" } else { ":--" });
    out.push('\n');
    out.push_str(&row(one.head.iter().map(|cell| prose(cell)).collect()));
    out.push_str(&format!("|{}|\n", align.collect::<Vec<_>>().join("|")));
    for cells in &one.rows {
        let shown = |(column, cell): (usize, &Cell)| written(cell, one.has_numbers(column));
        out.push_str(&row(cells.iter().enumerate().map(shown).collect()));
    }
    one.notes.iter().for_each(|note| out.push_str(&format!("\n{}\n", sentence(note))));
}

/// A cell; a single word that is a name is formatted as code.
fn written(cell: &Cell, is_number: bool) -> String {
    let text = cell.to_string();
    match cell {
        Cell::Quantity(_) | Cell::Interval(_) => text,
        Cell::Verdict(Standing::Fail | Standing::Worse, word) => format!("**{}**", prose(word)),
        Cell::Verdict(_, word) => prose(word),
        Cell::Text(_) if is_number || text == "-" => within(&text),
        Cell::Text(_) if text.len() > 1 && !text.contains(' ') && !text.chars().all(char::is_alphabetic) => code(&text),
        Cell::Text(_) => sentence(&text),
    }
}
