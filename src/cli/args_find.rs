//! Arguments for searching: the verb `find`.

use super::args::RunOptions;
use crate::scenario::FindSettings;
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Parser};
use std::path::PathBuf;

/// `loadline find`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Find {
    /// A scenario file, or a jar; none where a command follows `--`
    #[arg(value_name = "SCENARIO | JAR")]
    pub(super) scenario: Option<PathBuf>,
    /// The configuration to search, where the scenario has several
    #[arg(long, value_name = "NAME")]
    pub(super) only: Vec<String>,
    #[command(flatten)]
    pub(super) searching: FindSettings,
    /// Go on with the search of this archive, as it was asked
    #[arg(long, help_heading = "Searching", value_name = "ARCHIVE")]
    #[arg(conflicts_with_all = ["scenario", "command", "only"])]
    pub(super) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(super) options: RunOptions,
    /// The server, where there is no scenario: a `java` command line, or arguments of the image. `{port}` stands for a
    /// free port
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  loadline find --rate 200 --url 'http://127.0.0.1:{port}/' -- java -jar app.jar '{port}'
  loadline find --target 'p99<50ms' --rate 200 --limit 512m --url http://127.0.0.1:8080/ -- java -jar app.jar
  loadline find --rate 200 --url http://127.0.0.1:8080/ --image app:1.2
  loadline find app.loadline.yaml --as-is
  loadline find --resume loadline-archive/app-20260101-120000";

/// Options of other verbs that would be without effect on a search: an error says what a search has instead.
pub(super) fn refused() -> [Arg; 6] {
    let target = "a search asks for a `--target`; budgets are for `weigh`, `run` and `compare`";
    let trials = "a search makes the trials it needs: see `--proofs` and `--trials-max`";
    let marks = "a search weighs once; `weigh`, `run` and `compare` do at marks";
    refusing(target, "a search has no baseline; `compare` has one", trials, marks)
}

/// Options that are not there, and what to use instead of each.
pub(super) fn refusing(
    target: &'static str,
    baseline: &'static str,
    trials: &'static str,
    marks: &'static str,
) -> [Arg; 6] {
    let options = [
        ("budget", "BUDGET", target),
        ("baseline", "NAME | ARCHIVE", baseline),
        ("undecided", "HOW", target),
        ("strict", "", target),
        ("trials", "N", trials),
        ("marks", "MARKS", marks),
    ];
    options.map(|(name, value, instead)| {
        let refusing = UnknownArgumentValueParser::suggest(instead);
        let arg = Arg::new(name).long(name).value_name(value).hide(true).value_parser(refusing);
        if value.is_empty() { arg.num_args(0).default_missing_value("") } else { arg }
    })
}
