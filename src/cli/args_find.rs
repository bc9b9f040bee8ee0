//! What was typed about searching: the verb `find`.

use super::args::Options;
use crate::scenario::{Amount, Budget};
use crate::units::Bytes;
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Parser};
use std::path::PathBuf;

/// `loadline find`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Find {
    /// A scenario file; none where a command follows `--`
    #[arg(value_name = "SCENARIO")]
    pub(super) scenario: Option<PathBuf>,
    /// The configuration to search, where the scenario has several
    #[arg(long, value_name = "NAME")]
    pub(super) only: Vec<String>,
    #[command(flatten)]
    pub(super) searching: Searching,
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

/// How the load line is searched; changes what a scenario says.
#[derive(Debug, Clone, Default, Parser)]
#[command(next_help_heading = "Searching")]
pub(super) struct Searching {
    /// What must hold: `p99<50ms`, `rate>=98%` of what is offered, `failed==0`, `gc_share<10%`, `start_up<5s`; may be
    /// repeated [default: rate>=98% and failed==0; rate>=90% in a closed model]
    #[arg(long, value_name = "TARGET")]
    pub(super) target: Vec<Budget>,
    /// Leave the heap to the JVM, which chooses it by the limit
    #[arg(long)]
    pub(super) as_is: bool,
    /// The relative step at which the search stops [default: 2%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) step: Option<f64>,
    /// Trials in a row that must hold [default: 5]
    #[arg(long, value_name = "N")]
    pub(super) proofs: Option<u32>,
    /// What is added to the line in the answer [default: 10%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) headroom: Option<f64>,
    /// The smallest limit to ask [default: 16m]
    #[arg(long, value_name = "SIZE")]
    pub(super) limit_min: Option<Bytes>,
    /// The limit at which memory is no concern [default: that of `--limit`, or most of what the machine has]
    #[arg(long, value_name = "SIZE")]
    pub(super) limit_max: Option<Bytes>,
    /// Prove this limit, instead of searching for the smallest: exit code 1 where it does not hold
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["limit_min"])]
    pub(super) prove: Option<Bytes>,
    /// Find the highest rate that `--limit` carries, instead of a limit; `--rate` is where to begin
    #[arg(long, conflicts_with_all = ["limit_min", "limit_max", "prove", "as_is"])]
    pub(super) max_rate: bool,
    /// Trials after which the search ends, whatever is known by then [default: 60]
    #[arg(long, value_name = "N")]
    pub(super) trials_max: Option<u32>,
    /// Do not search the line of a host that has the file pages in memory already
    #[arg(long)]
    pub(super) no_warm: bool,
    /// Go on with the search of this archive, as it was asked
    #[arg(long, value_name = "ARCHIVE", conflicts_with_all = ["scenario", "command", "only"])]
    pub(super) resume: Option<PathBuf>,
}

/// Options of other verbs that would be without effect on a search: an error says what a search has instead.
pub(super) fn refused() -> [Arg; 6] {
    let of = |name, value, instead: &'static str| {
        let refusing = UnknownArgumentValueParser::suggest(instead);
        Arg::new(name).long(name).value_name(value).hide(true).value_parser(refusing)
    };
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

fn share(text: &str) -> Result<f64, String> {
    match text.parse()? {
        Amount::Share(share) | Amount::Number(share) if (0.0..10.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is no share; write it as `2%`")),
    }
}
