//! Arguments for histories: the verb `history`.

use crate::record::HistoryBy;
use crate::scenario::CompareSettings;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// `loadline history`
///
/// Reads archives and files that `--json` printed, and follows each configuration of each scenario by itself. Shows the
/// centre of each metric at each point with its interval, changes that trials on both sides confirm, gradual growth,
/// and the owners that moved. If the JDK, the machine or the load changed at the same point, it says so and blames no
/// commit.
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct History {
    /// Archives, folders in which archives lie, or result documents
    #[arg(value_name = "DIR", required = true)]
    pub(super) places: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) comparing: CompareSettings,
    /// Basis of a point [default: commit if every archive says its own, else build, else date]
    #[arg(long, value_name = "WHAT")]
    pub(super) by: Option<By>,
    /// Follow only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Commits in their order, the oldest first, a line each, as `git log --reverse --format='%H %s'` prints them; `-`
    /// reads them from stdin [default: the order in which archives were made]
    #[arg(long, value_name = "FILE")]
    pub(super) commits: Option<PathBuf>,
    /// Every point on the screen, not only the latest and those at which something changed
    #[arg(long, help_heading = "Output")]
    pub(super) each: bool,
    /// Write the document into FILE, or print it instead of the summary
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help_heading = "Output")]
    pub(super) json: Option<PathBuf>,
    /// The history with its pictures, one file that needs nothing else
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(super) html: Option<PathBuf>,
    /// The history in Markdown
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(super) markdown: Option<PathBuf>,
    /// Every metric at every point, a row each
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(super) csv: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  loadline history loadline-archive
  loadline history nightly/ --metric rss.loaded,p99 --html history.html
  git log --reverse --format='%H %s' | loadline history nightly/ --commits -";

/// Basis of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    /// Each archive
    Date,
    /// All archives of a commit that were made under the same conditions
    Commit,
    /// All archives of a build that were made under the same conditions
    Build,
}

impl From<By> for HistoryBy {
    fn from(by: By) -> Self {
        match by {
            By::Date => Self::Date,
            By::Commit => Self::Commit,
            By::Build => Self::Build,
        }
    }
}
