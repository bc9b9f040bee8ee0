//! A search for the load line on a Markdown page: the line with its proof, and every trial.

use super::Section;
use super::escape::sentence;
use crate::record::Document;
use crate::report::summary::find::facts;
use crate::report::summary::tried::tried;

/// The line and all that belongs to it; `None` where nothing was searched.
pub(super) fn section(document: &Document) -> Option<Section> {
    let find = document.find.as_ref()?;
    let line = |(label, text): &(String, String)| format!("- {label}: {}\n", sentence(text));
    let lines: String = facts(find, &document.trials).iter().map(line).collect();
    Some(Section::open("Load line", lines))
}

/// Every trial of the search. All cells are words and numbers of our own.
pub(super) fn trials(document: &Document) -> Option<String> {
    document.find.as_ref()?;
    let table = tried(&document.trials);
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let align: Vec<&str> = (0..table.head.len())
        .map(|column| if (2..table.head.len() - table.words).contains(&column) { "--:" } else { ":--" })
        .collect();
    // Some renderers take a number sign for a reference.
    let head: Vec<String> = table.head.iter().map(|cell| cell.replace('#', "trial")).collect();
    let rows: String = table.rows.iter().map(|cells| row(cells)).collect();
    let notes = table.notes.join(" ");
    let (head, align) = (row(&head), align.join("|"));
    Some(format!("{head}|{align}|\n{rows}\nSizes in MiB, p99 in ms, CPU in \u{b5}s per request. {notes}\n"))
}

#[cfg(test)]
mod tests {
    use super::super::super::consumers::check_markdown;
    use super::super::markdown;
    use crate::report::find_sample;

    #[test]
    fn a_search_reads_from_the_answer_down() {
        insta::assert_snapshot!(markdown(&find_sample::found()));
    }

    #[test]
    fn every_ending_is_markdown_that_begins_with_the_answer() {
        for (outcome, document) in find_sample::endings() {
            let text = markdown(&document);
            check_markdown(&text);
            assert!(text.contains("### Load line\n"), "{outcome:?}");
            assert!(!text.starts_with("Nothing") && !text.contains("### Trials that failed"), "{outcome:?}: {text}");
        }
    }

    #[test]
    fn hostile_text_makes_no_markup() {
        for text in super::super::super::samples::hostile_texts() {
            check_markdown(&markdown(&find_sample::hostile(&text)));
        }
    }
}
