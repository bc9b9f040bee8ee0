//! The formats of files, and the options that ask for them.

use super::Unchanged;

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
}
