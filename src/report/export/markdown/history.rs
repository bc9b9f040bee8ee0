//! A history on a Markdown page: what changed first, then every metric point by point.

use super::escape::prose;
use super::fleet::block;
use crate::record::HistoryDocument;
use crate::report::summary::Block;
use crate::report::summary::history::{ROWS_PAGE, SERIES_MAX, facts, heading, rest, sentences, table, title};

/// The history for a page of Markdown. Headings begin at the third level.
pub fn history_markdown(document: &HistoryDocument) -> String {
    let mut out = format!("### {}\n", prose(&heading(document)));
    block(&mut out, &Block::Facts(facts(document)));
    for series in document.series.iter().take(SERIES_MAX) {
        if document.series.len() > 1 {
            block(&mut out, &Block::Heading(title(series)));
        }
        block(&mut out, &Block::Failing(sentences(series)));
        for metric in &series.metrics {
            block(&mut out, &Block::Table(table(series, metric, ROWS_PAGE)));
        }
        series.refused.iter().for_each(|why| block(&mut out, &Block::Text(why.clone())));
    }
    rest(document).iter().for_each(|one| block(&mut out, one));
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::{consumers::check_markdown, samples};
    use super::*;
    use crate::report::history_sample;

    #[test]
    fn a_history_reads_from_what_changed() {
        insta::assert_snapshot!(history_markdown(&history_sample::history()));
    }

    #[test]
    fn no_text_makes_markup() {
        for text in samples::hostile_texts() {
            check_markdown(&history_markdown(&history_sample::hostile(&text)));
        }
    }
}
