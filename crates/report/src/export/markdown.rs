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
    fn markdown_of_a_comparison_begins_with_the_verdict() {
        insta::assert_snapshot!(markdown(&samples::compared()));
    }

    #[test]
    fn markdown_has_failures_before_numbers() {
        insta::assert_snapshot!(markdown(&samples::failing()));
    }

    #[test]
    fn markdown_of_a_search_begins_with_the_answer() {
        insta::assert_snapshot!(markdown(&find_sample::found()));
    }

    #[test]
    fn markdown_of_a_tuning_begins_with_the_answer() {
        insta::assert_snapshot!(markdown(&tune_sample::proved()));
    }

    #[test]
    fn markdown_of_a_fleet_begins_with_possible_savings() {
        insta::assert_snapshot!(fleet_markdown(&fleet_sample::fleet()));
    }

    #[test]
    fn markdown_of_a_history_begins_with_changes() {
        insta::assert_snapshot!(history_markdown(&history_sample::history()));
    }

    #[test]
    fn every_outcome_is_valid_markdown() {
        find_sample::endings().iter().for_each(|(_, document)| check_markdown(&markdown(document)));
        tune_sample::endings().iter().for_each(|(_, document)| check_markdown(&markdown(document)));
        check_markdown(&markdown(&samples::empty()));
        let comparison = Some(Box::new(samples::compared()));
        let text = fleet_markdown(&FleetDocument { services: Vec::new(), comparison, ..fleet_sample::fleet() });
        check_markdown(&text);
        assert!(text.contains("vs. serial") && text.contains("### no result"), "{text}");
    }
}
