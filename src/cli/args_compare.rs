//! Arguments for comparing, judging and showing: the verb `compare`, budgets, and the files that a result goes to.

use super::args::RunOptions;
use crate::scenario::{Budget, CompareSettings, Explain, Marking, Running, axes};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// `loadline compare`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Compare {
    /// A scenario file, a jar, or two archives; none of them where a command follows `--`
    #[arg(value_name = "SCENARIO | JAR | ARCHIVE ARCHIVE", num_args = 0..=2)]
    pub(super) what: Vec<PathBuf>,
    /// The axes to vary.
    #[arg(long, value_name = "AXIS=VALUE,VALUE", value_parser = variation, help = vary())]
    pub(super) vary: Vec<(String, Vec<String>)>,
    /// Compare only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Begin without asking, however long it takes
    #[arg(long, short)]
    pub(super) yes: bool,
    /// Start each configuration once more, under a profiler and with a heap dump, to name the code and the objects
    /// behind the difference
    #[arg(long)]
    pub(super) explain: bool,
    #[command(flatten)]
    pub(super) explaining: Explain,
    #[command(flatten)]
    pub(super) comparing: CompareSettings,
    #[command(flatten)]
    pub(super) running: Running,
    #[command(flatten)]
    pub(super) options: RunOptions,
    #[command(flatten)]
    pub(super) marking: Marking,
    #[command(flatten)]
    pub(super) judging: Judging,
    /// The server, where there is no scenario: a `java` command line. `{port}` stands for a free port
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  loadline compare app.loadline.yaml
  loadline compare --vary gc=serial,g1 --vary jdk=17,25 --url http://127.0.0.1:8080/ -- java -jar app.jar
  loadline compare before/ after/ --html difference.html";

/// Options to judge a result.
#[derive(Debug, Clone, Default, Parser)]
#[command(next_help_heading = "Judging")]
pub(super) struct Judging {
    /// A budget to keep: `rss.loaded<=60MiB`, `p99<=20ms`, or with a baseline `rss.loaded<=+2%`; may be repeated; exit
    /// code 1 if one is broken
    #[arg(long, value_name = "BUDGET")]
    pub(super) budget: Vec<Budget>,
    /// The baseline: a configuration, or an archive [default: the first configuration]
    #[arg(long, value_name = "NAME | ARCHIVE")]
    pub(super) baseline: Option<String>,
    /// Effect of an undecided budget on the exit code
    #[arg(long, value_name = "HOW", default_value = "pass")]
    pub(super) undecided: Undecided,
    /// A budget on what was not measured is an error (exit code 2)
    #[arg(long)]
    pub(super) strict: bool,
    /// Exit as `git bisect run` expects: 0 where budgets are kept, 1 where one is broken, 125 where that is not known,
    /// 128 where the request is wrong. Without a budget, verdicts are asked
    #[arg(long, conflicts_with_all = ["undecided", "strict"])]
    pub(super) bisect: bool,
}

/// Effect of an undecided budget on the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Undecided {
    /// It does no harm: 0.
    #[default]
    Pass,
    /// It counts as broken: 1.
    Fail,
}

/// Files for a result besides the summary. `-` is stdout, in place of the summary.
#[derive(Debug, Clone, Default, Parser)]
#[command(next_help_heading = "Files")]
pub(super) struct Exports {
    /// The report with its pictures, one file that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Tables in Markdown
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    /// Every metric of every trial, a row each
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Budgets as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// As JMH writes its results, for its viewers
    #[arg(long, value_name = "FILE")]
    pub(super) jmh: Option<PathBuf>,
    /// As OpenMetrics text
    #[arg(long, value_name = "FILE")]
    pub(super) openmetrics: Option<PathBuf>,
    /// In Bencher's format, with intervals
    #[arg(long, value_name = "FILE")]
    pub(super) bencher: Option<PathBuf>,
    /// Changes, as a comment on a pull request; FILE is empty if there are none
    #[arg(long, value_name = "FILE")]
    pub(super) comment: Option<PathBuf>,
    /// Let the comment say so where nothing changed
    #[arg(long, requires = "comment")]
    pub(super) comment_always: bool,
    /// In GitHub Actions: a summary of the step, and an annotation for each broken budget
    #[arg(long)]
    pub(super) github: bool,
}

/// How much the summary says.
#[derive(Debug, Clone, Copy, Default, Parser)]
#[command(next_help_heading = "Output")]
pub(super) struct View {
    /// Every trial, also where trials are compared
    #[arg(long)]
    pub(super) each: bool,
    /// Every metric that was compared, not only those judged
    #[arg(long)]
    pub(super) details: bool,
}

fn vary() -> String {
    format!("What varies, such as `gc=serial,g1`: {}; may be repeated for every combination", axes())
}

fn variation(text: &str) -> Result<(String, Vec<String>), String> {
    let refuse = || format!("`{text}` varies nothing; write it as `gc=serial,g1`");
    let (axis, values) = text.split_once('=').ok_or_else(refuse)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    match !axis.is_empty() && values.iter().all(|value| !value.is_empty()) {
        true => Ok((axis.trim().to_owned(), values)),
        false => Err(refuse()),
    }
}
