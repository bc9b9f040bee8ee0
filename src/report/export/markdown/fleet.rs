//! A fleet on a Markdown page: what there is to win first, then what has to be done something about, then every
//! service.

use super::escape::{code, prose, sentence};
use super::markdown;
use crate::record::FleetDocument;
use crate::report::screen::Glyphs;
use crate::report::summary::fleet::told;
use crate::report::summary::{Block, Depth, Table};

/// The fleet for a page of Markdown, and the comparison that nodes made blocks of. Headings begin at the third level.
pub fn fleet_markdown(document: &FleetDocument) -> String {
    let comparison = document.comparison.as_deref();
    // It has a page of its own, behind this one.
    let told = told(&FleetDocument { comparison: None, ..document.clone() }, Glyphs::Blocks, Depth::default());
    let services = told.services.map(Block::Table);
    let mut out = String::new();
    if let Some(to_win) = &told.to_win {
        out.push_str(&format!("{}\n", prose(to_win)));
    }
    told.before.iter().chain(&services).chain(&told.after).for_each(|one| block(&mut out, one));
    if let Some(comparison) = comparison {
        out = if out.is_empty() { markdown(comparison) } else { format!("{out}\n{}", markdown(comparison)) };
    }
    out
}

pub(super) fn block(out: &mut String, block: &Block) {
    match block {
        Block::Failing(lines) if lines.is_empty() => {}
        Block::Failing(lines) => {
            out.push('\n');
            lines.iter().for_each(|line| out.push_str(&format!("- **{}**\n", sentence(line))));
        }
        Block::Heading(text) => out.push_str(&format!("\n### {}\n", sentence(text))),
        Block::Text(text) => out.push_str(&format!("\n{}\n", sentence(text))),
        Block::Facts(facts) => {
            out.push('\n');
            facts.iter().for_each(|(label, text)| out.push_str(&format!("- {}: {}\n", prose(label), sentence(text))));
        }
        Block::Doubts(doubts) => {
            out.push('\n');
            doubts.iter().for_each(|(what, next)| {
                out.push_str(&format!("- {}: {}\n", sentence(what), sentence(next)));
            });
        }
        Block::Table(of) => out.push_str(&table(of)),
        // A fleet has no pictures, and nothing to copy.
        Block::Bars(_) | Block::Literal { .. } => {}
    }
}

fn table(of: &Table) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let align = (0..of.head.len()).map(|column| if of.has_numbers(column) { "--:" } else { ":--" });
    let head = row(of.head.iter().map(|cell| prose(cell)).collect());
    let align = format!("|{}|\n", align.collect::<Vec<_>>().join("|"));
    let cells = |cells: &Vec<String>| {
        let shown = |(column, cell): (usize, &String)| match column {
            0 => code(cell),
            // Numbers are our own.
            _ if of.has_numbers(column) => cell.clone(),
            _ => prose(cell),
        };
        row(cells.iter().enumerate().map(shown).collect())
    };
    let rows: String = of.rows.iter().map(cells).collect();
    let notes: String = of.notes.iter().map(|note| format!("\n{}\n", sentence(note))).collect();
    format!("\n### {}\n\n{head}{align}{rows}{notes}", sentence(&of.title))
}

#[cfg(test)]
mod tests {
    use super::super::super::{consumers::check_markdown, samples};
    use super::*;
    use crate::report::fleet_sample;

    #[test]
    fn a_fleet_reads_from_what_there_is_to_win() {
        insta::assert_snapshot!(fleet_markdown(&fleet_sample::fleet()));
    }

    #[test]
    fn no_text_makes_markup() {
        for text in samples::hostile_texts() {
            check_markdown(&fleet_markdown(&fleet_sample::hostile(&text)));
        }
    }

    #[test]
    fn a_comparison_has_its_page() {
        let comparison = Some(Box::new(samples::compared()));
        let document = FleetDocument { services: Vec::new(), comparison, ..fleet_sample::fleet() };
        let text = fleet_markdown(&document);
        check_markdown(&text);
        assert!(text.contains("against `serial`") && text.contains("### without an answer"), "{text}");
    }
}
