//! The summary as text of 80 columns, readable without colour.

use super::summary::{Block, Summary, Table};
use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};
use std::io::Write;

/// Lines fit an ordinary terminal.
const WIDTH: usize = 80;
/// Width of the labels in a list of facts.
const LABEL: usize = 11;

/// The summary as text, every line at most 80 columns wide unless a single word is longer.
pub fn render(summary: &Summary) -> String {
    let mut out = String::new();
    for block in &summary.blocks {
        match block {
            Block::Heading(text) => heading(&mut out, text),
            Block::Facts(facts) => facts.iter().for_each(|(label, text)| fact(&mut out, label, text)),
            Block::Table(table) => grid(&mut out, table),
            Block::Text(text) => wrapped(&mut out, text, "  ", "  "),
            Block::Doubts(doubts) => list_doubts(&mut out, doubts),
        }
    }
    out
}

/// Prints to stdout. A closed pipe ends quietly: nobody reads on.
///
/// # Errors
/// Any other failure to write.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

fn heading(out: &mut String, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    wrapped(out, text, "", "  ");
}

fn fact(out: &mut String, label: &str, text: &str) {
    let first = format!("  {label:<LABEL$}");
    wrapped(out, text, &first, &" ".repeat(first.len()));
}

/// Each doubt with what to do; said once for neighbours that ask for the same.
fn list_doubts(out: &mut String, doubts: &[(String, String)]) {
    for same in doubts.chunk_by(|left, right| left.1 == right.1) {
        for (text, _) in same {
            wrapped(out, text, "  ! ", "    ");
        }
        wrapped(out, &same[0].1, "    -> ", "       ");
    }
}

/// Breaks at spaces; a word longer than the line keeps a line of its own.
fn wrapped(out: &mut String, text: &str, first: &str, rest: &str) {
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            push_line(out, &line);
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    push_line(out, &line);
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

fn grid(out: &mut String, table: &Table) {
    heading(out, &table.title);
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    grid.set_header(&table.head);
    for row in &table.rows {
        grid.add_row(row);
    }
    for (index, column) in grid.column_iter_mut().enumerate() {
        let first = index == 0;
        column.set_padding((if first { 2 } else { 1 }, 0));
        column.set_cell_alignment(if first { CellAlignment::Left } else { CellAlignment::Right });
    }
    for line in grid.to_string().lines() {
        push_line(out, line);
    }
    for note in &table.notes {
        wrapped(out, note, "  ", "  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_eighty_and_never_inside_a_word() {
        let long = "x".repeat(100);
        let facts = vec![("repeat".to_owned(), format!("{} {long} end", "word ".repeat(30)))];
        let text = render(&Summary { blocks: vec![Block::Facts(facts)] });
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH || line.contains(&long), "{line}");
            assert_eq!(line, line.trim_end());
        }
        assert!(text.contains(&long));
    }
}
