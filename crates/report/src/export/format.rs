//! The formats of files, and the options that ask for them. A new format has rows here, and a module that writes it.

use super::Unchanged;
use crate::record::Document;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A page with pictures.
    Html,
    /// Tables in Markdown.
    Markdown,
    /// A row for each metric of each trial.
    Csv,
    /// Budgets as JUnit XML.
    Junit,
    /// Results as JMH writes them.
    Jmh,
    /// OpenMetrics text.
    Openmetrics,
    /// Bencher's own.
    Bencher,
    /// A comment on a pull request.
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

    /// The option that asks for it, without its dashes.
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

    /// The help of that option.
    pub fn help(self) -> &'static str {
        match self {
            Self::Html => "The report with its charts, as one self-contained file",
            Self::Markdown => "Tables in Markdown",
            Self::Csv => "Every metric of every trial, a row each",
            Self::Junit => "Budgets as JUnit XML",
            Self::Jmh => "As JMH writes its results, for its viewers",
            Self::Openmetrics => "As OpenMetrics text",
            Self::Bencher => "In Bencher's format, with intervals",
            Self::Comment(_) => "Changes, as a comment on a pull request; FILE is empty if there are none",
        }
    }

    /// A document in this format. `against` is the same document compared with the archive that is the baseline, for a
    /// comment. `html` makes the page, which has more than the document.
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
