//! Markdown for a README, pull request, or issue: prints a page (`print`), or its parts in a comment.

mod comment;
mod escape;
mod print;

pub use comment::{Unchanged, comment};

use crate::page::{Depth, Fold, Section, Topic};
use crate::record::{Document, FleetDocument, HistoryDocument};
use crate::screen::Glyphs;
use crate::summary::{page_of_history, summarize, summarize_fleet};
pub(super) use print::printed;

/// Includes every metric, which a page collapses.
const DEPTH: Depth = Depth { details: true, ..Depth::NONE };

/// The result as a Markdown page. Headings start at level three, to fit below others.
pub fn markdown(document: &Document) -> String {
    printed(&summarize(document, &[], DEPTH), closed)
}

/// A summary in which only parts that need attention are expanded.
pub(super) fn short_markdown(document: &Document) -> String {
    printed(&summarize(document, &[], DEPTH), |of| closed(of) || of.topic > Topic::StandsOut)
}

/// The fleet as a Markdown page, with the comparison of its blocks.
pub fn fleet_markdown(document: &FleetDocument) -> String {
    printed(&summarize_fleet(document, Glyphs::Blocks, Depth::default()), closed)
}

/// The history as a Markdown page.
pub fn history_markdown(document: &HistoryDocument) -> String {
    printed(&page_of_history(document, Depth::default()), closed)
}

/// Sections that are initially collapsed.
fn closed(of: &Section) -> bool {
    of.fold != Fold::Never
}

#[cfg(test)]
mod tests {
    use super::super::{consumers::check_markdown, samples};
    use super::*;
    use crate::{find_sample, fleet_sample, history_sample, tune_sample};

    #[test]
    fn a_comparison_reads_from_the_verdict_down() {
        insta::assert_snapshot!(markdown(&samples::compared()));
    }

    #[test]
    fn a_failure_comes_before_the_numbers() {
        insta::assert_snapshot!(markdown(&samples::failing()));
    }

    #[test]
    fn a_search_reads_from_the_answer_down() {
        insta::assert_snapshot!(markdown(&find_sample::found()));
    }

    #[test]
    fn a_tuning_reads_from_the_answer_down() {
        insta::assert_snapshot!(markdown(&tune_sample::proved()));
    }

    #[test]
    fn a_fleet_reads_from_what_there_is_to_win() {
        insta::assert_snapshot!(fleet_markdown(&fleet_sample::fleet()));
    }

    #[test]
    fn a_history_reads_from_what_changed() {
        insta::assert_snapshot!(history_markdown(&history_sample::history()));
    }

    #[test]
    fn every_ending_is_markdown() {
        find_sample::endings().iter().for_each(|(_, document)| check_markdown(&markdown(document)));
        tune_sample::endings().iter().for_each(|(_, document)| check_markdown(&markdown(document)));
        check_markdown(&markdown(&samples::empty()));
        let comparison = Some(Box::new(samples::compared()));
        let text = fleet_markdown(&FleetDocument { services: Vec::new(), comparison, ..fleet_sample::fleet() });
        check_markdown(&text);
        assert!(text.contains("vs. serial") && text.contains("### no result"), "{text}");
    }
}
