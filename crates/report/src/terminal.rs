//! Prints a page as 80-column text that is readable without color.

use super::page::{Bar, Bars, Page, Part, Section, Verdict};
use super::table::Table;
use super::width::{filled, first, width};
use super::words::Standing;
use crate::error::{Error, Result};
use crate::units::{Bytes, visible};
use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};
use loadline_base::order::Order as _;
use std::io::Write;

/// Fits an ordinary terminal.
pub(super) const WIDTH: usize = 80;
/// Columns if the output is not a terminal; a longer word gets its own line.
pub(super) const LINE_COLUMNS: usize = 120;
/// Width of labels in a list of facts.
const LABEL: usize = 11;
/// Text columns are never narrower than this.
const WORDS_MIN: usize = 12;

/// The page as text, at most 80 columns wide unless a single word is longer.
pub fn render(page: &Page) -> String {
    let mut out = Lines { out: String::new(), width: WIDTH };
    // Failures come first.
    let (open, others): (Vec<&Verdict>, Vec<&Verdict>) =
        page.verdicts().partition(|verdict| matches!(verdict.standing, Standing::Fail | Standing::Undecided));
    open.iter().for_each(|verdict| wrapped(&mut out, &verdict.sentence(), "", "  "));
    if !page.title.is_empty() {
        heading(&mut out, &page.title);
    }
    others.iter().for_each(|verdict| wrapped(&mut out, &verdict.sentence(), "  ", "  "));
    page.sections.iter().for_each(|of| section(&mut out, of));
    out.out
}

pub(super) fn render_within(parts: &[Part], width: usize) -> String {
    let mut out = Lines { out: String::new(), width };
    parts.iter().for_each(|one| part(&mut out, one));
    out.out
}

/// Text with facts below it, wrapped to this width.
pub(super) fn with_facts(text: &str, facts: &[(&str, String)], width: usize) -> String {
    let mut out = Lines { out: String::new(), width };
    wrapped(&mut out, text, "", "  ");
    for (label, text) in facts {
        wrapped(&mut out, text, &format!("  {} ", filled(label, LABEL - 1)), &" ".repeat(LABEL + 2));
    }
    out.out
}

/// A message's lines wrapped to this width. Lines that quote a program's output stay unchanged.
pub(super) fn folded_lines(text: &str, columns: usize) -> String {
    let mut out = Lines { out: String::new(), width: columns };
    for line in text.split('\n') {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        match width(line) <= columns || words.starts_with('|') {
            true => push_line(&mut out, line),
            false => wrapped(&mut out, words, indent, &format!("{indent}  ")),
        }
    }
    out.out
}

fn section(out: &mut Lines, of: &Section) {
    if !of.titled && !of.heading.is_empty() {
        heading(out, &of.heading);
    }
    of.parts.iter().for_each(|one| part(out, one));
}

fn part(out: &mut Lines, of: &Part) {
    match of {
        Part::Facts(facts) => facts.iter().for_each(|(label, text)| fact(out, label, text)),
        Part::Table(table) => grid(out, table),
        Part::Orders(orders) => orders.iter().take(1).for_each(|(_, table)| grid(out, table)),
        Part::Bars(bars) => picture(out, bars),
        Part::Text(text) => wrapped(out, text, "  ", "  "),
        Part::Doubts(doubts) => list_doubts(out, doubts),
        Part::Literal(of) => {
            heading(out, &of.title);
            // Lines to copy keep their whitespace and length.
            of.lines.iter().for_each(|line| push_line(out, &format!("  {line}")));
        }
        Part::Section(within) => section(out, within),
        // Verdicts are printed around the title; a terminal draws no charts.
        Part::Verdicts(_) | Part::Figure(_) => {}
    }
}

struct Lines {
    out: String,
    width: usize,
}

/// Prints to stdout. Ignores a closed pipe. Errors: `Machine` if the write fails for any other reason.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(|cause| Error::io("write to", "standard output", &cause)),
    }
}

fn heading(out: &mut Lines, text: &str) {
    if !out.out.is_empty() {
        out.out.push('\n');
    }
    wrapped(out, text, "", "  ");
}

fn fact(out: &mut Lines, label: &str, text: &str) {
    // The space separates the text from a label that is wider than its column.
    let first = format!("  {} ", filled(label, LABEL - 1));
    wrapped(out, text, &first, &" ".repeat(2 + LABEL));
}

/// Each doubt with its next step, if any. Adjacent doubts with the same step share it.
fn list_doubts(out: &mut Lines, doubts: &[(String, String)]) {
    for same in doubts.chunk_by(|left, right| left.1 == right.1) {
        for (text, _) in same {
            wrapped(out, text, "  ! ", "    ");
        }
        if !same[0].1.is_empty() {
            wrapped(out, &same[0].1, "    -> ", "       ");
        }
    }
}

/// Wraps between words; a word longer than the line gets its own line.
fn wrapped(out: &mut Lines, text: &str, first: &str, rest: &str) {
    let mut line = first.to_owned();
    let mut empty = true;
    for word in words(text, out.width.saturating_sub(width(rest))) {
        if !empty && width(&line) + 1 + width(&word) > out.width {
            push_line(out, &line);
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(&word);
        empty = false;
    }
    push_line(out, &line);
}

/// The words of the text. A quotation in backquotes is one word, so that a command can be copied from one line. A
/// quotation that is too wide wraps, unless it is one of the usual commands.
fn words(text: &str, room: usize) -> Vec<String> {
    let folds = |run: &[String]| !run[0].ends_with("`loadline") && !run[0].ends_with("`jcmd");
    let mut words: Vec<String> = Vec::new();
    let mut quoted: Option<Vec<String>> = None;
    for word in text.split_whitespace().map(visible) {
        let turns = word.matches('`').count() % 2 == 1;
        match quoted.take() {
            Some(mut run) => {
                run.push(word);
                match turns {
                    false => quoted = Some(run),
                    true if width(&run.join(" ")) > room && folds(&run) => words.extend(run),
                    true => words.push(run.join(" ")),
                }
            }
            None if turns => quoted = Some(vec![word]),
            None => words.push(word),
        }
    }
    // An unmatched backquote does not quote.
    words.extend(quoted.into_iter().flatten());
    words
}

/// A line may contain untrusted text, which must not affect the terminal.
fn push_line(out: &mut Lines, line: &str) {
    out.out.push_str(visible(line.trim_end()).trim_end());
    out.out.push('\n');
}

fn grid(out: &mut Lines, table: &Table) {
    heading(out, &table.title);
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    // Escapes control characters before measuring: a line break would split a row.
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| visible(&cell.to_string())).collect::<Vec<_>>());
    let rows: Vec<Vec<String>> = std::iter::once(table.head.clone()).chain(rows).collect();
    let widths = widths(table, &rows, out.width);
    let mut lines = rows.iter().map(|row| row.iter().zip(&widths).map(|(cell, width)| folded(cell, *width)));
    if let Some(head) = lines.next() {
        grid.set_header(head);
    }
    for row in lines {
        grid.add_row(row);
    }
    for (index, column) in grid.column_iter_mut().enumerate() {
        let alignment = if table.has_numbers(index) { CellAlignment::Right } else { CellAlignment::Left };
        column.set_padding((gap(table, index) as u16, 0)).set_cell_alignment(alignment);
    }
    for line in grid.to_string().lines() {
        push_line(out, line);
    }
    for note in &table.notes {
        wrapped(out, note, "  ", "  ");
    }
}

/// Spaces before a column.
fn gap(table: &Table, column: usize) -> usize {
    if table.has_numbers(column) { 1 } else { 2 }
}

/// Column widths; narrows the widest text columns until the table fits.
fn widths(table: &Table, rows: &[Vec<String>], room: usize) -> Vec<usize> {
    let columns = 0..table.head.len();
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let mut widths: Vec<usize> = columns.clone().map(|column| widest(column).unwrap_or(0)).collect();
    let gaps: usize = columns.clone().map(|column| gap(table, column)).sum();
    while widths.iter().sum::<usize>() + gaps > room {
        let words = columns.clone().filter(|column| !table.has_numbers(*column) && widths[*column] > WORDS_MIN);
        let Some(widest) = words.max_by_key(|column| widths[*column]) else { break };
        widths[widest] -= 1;
    }
    widths
}

/// Breaks text into lines of at most this width, preferably after a space or punctuation within a name.
fn folded(text: &str, columns: usize) -> String {
    let (mut lines, mut rest) = (Vec::new(), text);
    while width(rest) > columns {
        let fits = first(rest, columns);
        let end = fits.rfind([' ', '.', ',', '_', '/', '=', '-']).map_or(fits.len(), |at| at + 1);
        lines.push(rest[..end].trim_end());
        rest = &rest[end..];
    }
    lines.push(rest);
    lines.join("\n")
}

/// Text bars, the widest one as wide as possible, each followed by its sum in MiB.
fn picture(out: &mut Lines, picture: &Bars) {
    heading(out, &picture.title);
    let total = |bar: &Bar| bar.parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
    let number = |bar: &Bar| format!("{:.1}", Bytes(total(bar)).as_mib());
    let widest = |of: &dyn Fn(&Bar) -> usize| picture.bars.iter().map(of).max().unwrap_or(0);
    let labels = widest(&|bar| width(&bar.label));
    let numbers = widest(&|bar| number(bar).len());
    let room = out.width.saturating_sub(2 + labels + 1 + 1 + numbers);
    let largest = picture.bars.iter().map(total).max().unwrap_or(0).max(1);
    for bar in &picture.bars {
        let cells = (total(bar) as f64 / largest as f64 * room as f64).round() as usize;
        let letters = apportioned(&bar.parts, cells).into_iter().zip(&picture.legend);
        let drawn: String = letters.map(|(count, (letter, _))| letter.to_string().repeat(count)).collect();
        push_line(out, &format!("  {} {drawn} {}", filled(&bar.label, labels), number(bar)));
    }
    let used = |index: usize| picture.bars.iter().any(|bar| bar.parts.get(index).is_some_and(|part| *part > 0));
    let legend = picture.legend.iter().enumerate().filter(|(index, _)| used(*index));
    let words: Vec<String> = legend.map(|(_, (letter, words))| format!("{letter} {words}")).collect();
    wrapped(out, &words.join("; "), "  ", "  ");
}

/// Distributes `cells` by size: whole shares first, then by largest remainder.
fn apportioned(parts: &[u64], cells: usize) -> Vec<usize> {
    let total: u128 = parts.iter().map(|part| u128::from(*part)).sum::<u128>().max(1);
    let share = |part: &u64| u128::from(*part) * cells as u128;
    let mut counts: Vec<usize> = parts.iter().map(|part| (share(part) / total) as usize).collect();
    let mut order: Vec<usize> = (0..parts.len()).filter(|&index| parts[index] > 0).collect();
    order.largest_first(|&index| share(&parts[index]) % total);
    let left = cells.saturating_sub(counts.iter().sum());
    order.into_iter().take(left).for_each(|index| counts[index] += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_at_80_columns_between_words() {
        let long = "x".repeat(100);
        let facts = vec![("repeat".to_owned(), format!("{} {long} end", "word ".repeat(30)))];
        let text = render_within(&[Part::Facts(facts)], 80);
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH || line.contains(&long), "{line}");
            assert_eq!(line, line.trim_end());
        }
        assert!(text.contains(&long));
    }

    #[test]
    fn commands_in_backquotes_are_not_wrapped() {
        let folded = folded_lines("error: ask `loadline account 7 --by pool`, or a lone ` sign", 30);
        assert_eq!(folded, "error: ask\n  `loadline account 7 --by pool`,\n  or a lone ` sign\n");
    }

    #[test]
    fn messages_wrap_with_their_indent_and_quoted_lines_do_not_wrap() {
        let text = "error: one two three\n    | one two three\n  four five six seven";
        let folded = folded_lines(text, 15);
        assert_eq!(folded, "error: one two\n  three\n    | one two three\n  four five six\n    seven\n");
    }

    #[test]
    fn foreign_names_are_escaped_and_columns_stay_aligned() {
        let rows = [vec!["a\u{1b}[2J\nb".to_owned(), "1".to_owned()], vec!["c".to_owned(), "22".to_owned()]];
        let text = render_within(&[Part::Table(Table::new("t", ["name", "n"], rows))], 80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2..], ["  a\\u{1b}[2J\\nb  1", "  c             22"], "{text}");
    }

    #[test]
    fn a_wide_table_wraps_its_widest_columns() {
        let row = ["app-with-a-long-name, pid 4711 of a container", "alloc_per_request.steady", "1.0", "12,345,678.9"];
        let table = Table::new("t", ["owner", "metric", "MiB", "bytes"], [row.map(str::to_owned).to_vec()]);
        let text = render_within(&[Part::Table(table.worded(2, 0))], 60);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| width(line) <= 60), "{text}");
        assert!(lines[2].ends_with("1.0 12,345,678.9") && lines.len() > 3, "{text}");
        let first = lines[2..].iter().map(|line| line.split("  ").nth(1).unwrap_or_default()).collect::<String>();
        assert_eq!(first.replace(' ', ""), row[0].replace(' ', ""), "{text}");
    }

    #[test]
    fn labels_with_wide_characters_are_aligned() {
        let bar = |label: &str| Bar { label: label.to_owned(), parts: vec![10 << 20] };
        let bars = Bars {
            title: "t".to_owned(),
            bars: vec![bar("訂單"), bar("orders"), bar("e\u{301}te\u{301}")],
            legend: vec![('H', "heap".to_owned())],
        };
        let facts = vec![("訂單".to_owned(), "a".to_owned()), ("repeat".to_owned(), "b".to_owned())];
        let text = render_within(&[Part::Bars(bars), Part::Facts(facts)], 80);
        let column = |line: &str, what: &str| width(line.split_once(what).unwrap_or_else(|| panic!("{text}")).0);
        let lines: Vec<&str> = text.lines().collect();
        let bars: Vec<usize> = lines[1..4].iter().map(|line| column(line, "H")).collect();
        assert_eq!(bars, [9; 3], "{text}");
        assert!(lines[1..4].iter().all(|line| width(line) <= WIDTH), "{text}");
        let ends = |label: &str, value: &str| {
            column(lines.iter().find(|line| line.contains(label) && !line.contains('H')).unwrap(), value)
        };
        assert_eq!(ends("訂單", "a"), 2 + LABEL, "{text}");
    }

    #[test]
    fn bars_share_a_scale_and_parts_are_proportional() {
        let bar =
            |label: &str, parts: [u64; 3]| Bar { label: label.to_owned(), parts: parts.map(|n| n << 20).to_vec() };
        let legend = vec![('H', "heap".to_owned()), ('M', "malloc".to_owned()), ('.', "none".to_owned())];
        let bars = vec![bar("start", [30, 10, 0]), bar("collected", [40, 40, 0])];
        let text = render_within(&[Part::Bars(Bars { title: "t".to_owned(), bars, legend })], 80);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(lines[2].chars().count(), WIDTH);
        let count = |line: &str, letter: char| line.split_whitespace().nth(1).unwrap().matches(letter).count();
        assert_eq!((count(lines[2], 'H'), count(lines[2], 'M')), (32, 31));
        assert_eq!((count(lines[1], 'H'), count(lines[1], 'M')), (24, 8));
        assert_eq!(lines[3], "  H heap; M malloc");
    }

    #[test]
    fn leftover_columns_go_to_the_largest_remainders() {
        assert_eq!(apportioned(&[1, 1, 1], 10), [4, 3, 3]);
        assert_eq!(apportioned(&[99, 0, 1], 10), [10, 0, 0]);
        assert_eq!(apportioned(&[u64::MAX, u64::MAX], 3), [2, 1]);
        assert_eq!(apportioned(&[0, 0], 0), [0, 0]);
    }
}
