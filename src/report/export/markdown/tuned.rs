//! A tuning on a Markdown page: what is proved, the paragraph for a change request, every remedy, the path of the
//! search.

use super::Section;
use super::escape::{code, sentence};
use crate::record::{Document, RemedyRecord, SettingRecord, TuneRecord, Unit};
use crate::report::quantity::{change, shown};
use crate::report::summary::Table;
use crate::report::summary::tune::{fate_word, gains, method, owners, stage_words};
use crate::report::summary::tune_answer::{AS_IS, answer};
use crate::report::summary::tune_request::request;

/// What stands for itself: the answer, what it changes, the paragraph; nothing where nothing was tuned.
pub(super) fn sections(document: &Document) -> Vec<Section> {
    let Some(tune) = &document.tune else { return Vec::new() };
    let mut facts = answer(tune);
    facts.extend(method(tune));
    // A fact without a label goes on with the one before.
    let line = |(label, text): &(String, String)| match label.as_str() {
        "" => format!("- {}\n", sentence(text)),
        "set" => format!("- set: {}\n", code(text)),
        label => format!("- {label}: {}\n", sentence(text)),
    };
    let mut found = vec![Section::open("Tuning", facts.iter().map(line).collect::<String>())];
    found.extend(gains(tune).map(|table| Section::open("What it changes", numbers(&table, 2))));
    found.extend(owners(tune, usize::MAX).map(|table| Section::folding("By owner, MiB", numbers(&table, 1))));
    let paragraph = |text: Vec<String>| text.iter().map(|text| sentence(text)).collect::<Vec<_>>().join(" ") + "\n";
    found.extend(request(document, tune).map(|text| Section::open("For a change request", paragraph(text))));
    let doubts: String = tune.doubts.iter().map(|doubt| format!("- {}\n", sentence(doubt))).collect();
    found.extend((!doubts.is_empty()).then(|| Section::open("Doubts about the answer", doubts)));
    found
}

/// What can be unfolded: a title of our own, and its block.
pub(super) fn details(document: &Document) -> Vec<(String, String)> {
    let Some(tune) = &document.tune else { return Vec::new() };
    let tables = [("Remedies", remedies(tune)), ("Path of the search", path(tune))];
    tables.into_iter().filter_map(|(title, table)| Some((title.to_owned(), table?))).collect()
}

/// A table of the summary, whose first columns may hold foreign names.
fn numbers(table: &Table, words: usize) -> String {
    let align: Vec<&str> = (0..table.head.len()).map(|column| if column < words { ":--" } else { "--:" }).collect();
    let row = |cells: &Vec<String>| {
        let cell = |(column, cell): (usize, &String)| if column < words { sentence(cell) } else { cell.clone() };
        format!("| {} |\n", cells.iter().enumerate().map(cell).collect::<Vec<_>>().join(" | "))
    };
    let rows: String = table.rows.iter().map(row).collect();
    let notes: String = table.notes.iter().map(|note| format!("\n{}\n", sentence(note))).collect();
    format!("{}|{}|\n{rows}{notes}", row(&table.head), align.join("|"))
}

fn options(words: &[String]) -> String {
    if words.is_empty() { "-".to_owned() } else { code(&crate::scenario::shell_words(words)) }
}

fn remedies(tune: &TuneRecord) -> Option<String> {
    let size = |bytes: Option<f64>| shown(Unit::Bytes, bytes);
    let row = |of: &RemedyRecord| {
        format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            code(&of.id),
            fate_word(of.fate),
            options(&of.options),
            size(of.gain_bytes_max.map(|bytes| bytes as f64)),
            size(of.saved_bytes),
            change(of.cpu_ratio),
            if of.why.is_empty() { "-".to_owned() } else { sentence(&of.why) }
        )
    };
    let rows: String = tune.remedies.iter().map(row).collect();
    let head = "| remedy | fate | set | at most | saved | CPU per request | why |\n|:--|:--|:--|--:|--:|--:|:--|\n";
    (!rows.is_empty()).then(|| format!("{head}{rows}"))
}

fn path(tune: &TuneRecord) -> Option<String> {
    let row = |of: &SettingRecord| {
        let with: Vec<String> = of.remedies.iter().map(|id| code(id)).collect();
        format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            stage_words(of.stage),
            if with.is_empty() { AS_IS.to_owned() } else { with.join(", ") },
            of.trials,
            shown(Unit::Bytes, of.bytes),
            change(of.cpu_ratio),
            if of.holds { "yes" } else { "no" },
            if of.why.is_empty() { "-".to_owned() } else { sentence(&of.why.join("; ")) }
        )
    };
    let rows: String = tune.path.iter().map(row).collect();
    let head = "| for | with | trials | memory | CPU per request | held | missed |\n|:--|:--|--:|--:|--:|:--|:--|\n";
    (!rows.is_empty()).then(|| format!("{head}{rows}"))
}

#[cfg(test)]
mod tests {
    use super::super::super::consumers::check_markdown;
    use super::super::markdown;
    use crate::report::tune_sample;

    #[test]
    fn a_tuning_reads_from_the_answer_down() {
        insta::assert_snapshot!(markdown(&tune_sample::proved()));
    }

    #[test]
    fn every_ending_is_markdown_that_begins_with_the_answer() {
        for (outcome, document) in tune_sample::endings() {
            let text = markdown(&document);
            check_markdown(&text);
            assert!(text.contains("### Tuning\n"), "{outcome:?}");
            assert!(!text.starts_with("Nothing was measured") && !text.contains("### Trials that failed"), "{text}");
        }
    }

    #[test]
    fn hostile_text_makes_no_markup() {
        for text in super::super::super::samples::hostile_texts() {
            check_markdown(&markdown(&tune_sample::hostile(&text)));
        }
    }
}
