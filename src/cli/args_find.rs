//! What was typed about searching: the verb `find`.

use super::args::Options;
use crate::scenario::Searching;
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
    pub(super) searching: Searching,
    /// Go on with the search of this archive, as it was asked
    #[arg(long, help_heading = "Searching", value_name = "ARCHIVE")]
    #[arg(conflicts_with_all = ["scenario", "command", "only"])]
    pub(super) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(super) options: Options,
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
    let of = refusing;
    let target = "a search asks for a `--target`; budgets are for `weigh`, `run` and `compare`";
    [
        of("budget", "BUDGET", target),
        of("baseline", "NAME | ARCHIVE", "a search has no baseline; `compare` has one"),
        of("undecided", "HOW", target),
        of("strict", "", target).num_args(0).default_missing_value(""),
        of("trials", "N", "a search makes the trials it needs: see `--proofs` and `--trials-max`"),
        of("marks", "MARKS", "a search weighs once; `weigh`, `run` and `compare` do at marks"),
    ]
}

/// An option that is not there, and what to use instead.
pub(super) fn refusing(name: &'static str, value: &'static str, instead: &'static str) -> Arg {
    let refusing = UnknownArgumentValueParser::suggest(instead);
    Arg::new(name).long(name).value_name(value).hide(true).value_parser(refusing)
}
