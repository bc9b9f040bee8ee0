//! File formats and their options. A new format needs rows in this file, and a module that writes it.

use super::Unchanged;
use crate::record::Document;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A page with charts.
    Html,
    /// Tables in Markdown.
    Markdown,
    /// One row per metric and trial.
    Csv,
    /// Budgets as JUnit XML.
    Junit,
    /// JMH's result format.
    Jmh,
    /// OpenMetrics text.
    Openmetrics,
    /// Bencher's format.
    Bencher,
    /// A pull request comment.
    Comment(Unchanged),
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 8] = [
        Self::Html,
        Self::Markdown,
        Self::Csv,
        Self::Junit,
        Self::Jmh,
        Self::Openmetrics,
        Self::Bencher,
        Self::Comment(Unchanged::Silent),
    ];

    /// The option's name, without dashes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Csv => "csv",
            Self::Junit => "junit",
            Self::Jmh => "jmh",
            Self::Openmetrics => "openmetrics",
            Self::Bencher => "bencher",
            Self::Comment(_) => "comment",
        }
    }

    /// The option's help.
    pub fn help(self) -> &'static str {
        match self {
            Self::Html => "Write a self-contained HTML report with charts",
            Self::Markdown => "Write tables in Markdown",
            Self::Csv => "Write a CSV row for each metric of each trial",
            Self::Junit => "Write budgets as JUnit XML",
            Self::Jmh => "Write results in JMH's JSON format, for its viewers",
            Self::Openmetrics => "Write metrics as OpenMetrics text",
            Self::Bencher => "Write metrics in Bencher's JSON format, with intervals",
            Self::Comment(_) => "Write changes as a pull request comment; FILE is empty if nothing changed",
        }
    }

    /// A document in this format. For a comment, `against` is the comparison with the baseline archive. `html` renders
    /// the page, which needs more data than the document.
    pub fn text(self, document: &Document, against: Option<&Document>, html: impl FnOnce() -> String) -> String {
        match self {
            Self::Html => html(),
            Self::Markdown => super::markdown(document),
            Self::Csv => super::csv(document),
            Self::Junit => super::junit(document),
            Self::Jmh => super::jmh(document),
            Self::Openmetrics => super::openmetrics(document),
            Self::Bencher => super::bencher(document),
            Self::Comment(unchanged) => super::comment(against.unwrap_or(document), unchanged),
        }
    }
}
