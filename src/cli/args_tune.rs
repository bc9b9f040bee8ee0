//! Arguments for tuning: the verb `tune`.

use super::args::RunOptions;
use super::args_find::refusing;
use crate::scenario::TuneSettings;
use clap::{Arg, Parser};
use std::path::PathBuf;

/// `loadline tune`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Tune {
    /// A scenario file, or a jar; none where a command follows `--`
    #[arg(value_name = "SCENARIO | JAR")]
    pub(super) scenario: Option<PathBuf>,
    /// The configuration to tune, where the scenario has several
    #[arg(long, value_name = "NAME")]
    pub(super) only: Vec<String>,
    #[command(flatten)]
    pub(super) tuning: TuneSettings,
    /// Weigh it as it is, print what would be tried and what not, with the reasons, and stop
    #[arg(long, help_heading = "Tuning")]
    pub(super) dry_run: bool,
    /// Print all remedies that are known, with what they may cost and where that was measured
    #[arg(long, help_heading = "Tuning", conflicts_with_all = ["scenario", "command", "only", "resume"])]
    pub(super) list: bool,
    /// Go on with the tuning of this archive, as it was asked
    #[arg(long, help_heading = "Tuning", value_name = "ARCHIVE")]
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
  loadline tune --rate 200 --url 'http://127.0.0.1:{port}/' -- java -jar app.jar '{port}'
  loadline tune --rate 200 --target 'p99<50ms' --url http://127.0.0.1:8080/ -- java -jar app.jar
  loadline tune app.loadline.yaml --dry-run
  loadline tune app.loadline.yaml --try env.MALLOC_ARENA_MAX=2 --try -Dserver.tomcat.threads.max=50
  loadline tune --list";

/// Options of other verbs that would be without effect on a tuning: an error says what it has instead.
pub(super) fn refused() -> [Arg; 6] {
    let target = "tuning asks for a `--target`; budgets are for `weigh`, `run` and `compare`";
    let trials = "tuning makes the trials it needs: see `--trials-max` and `--minutes`";
    let marks = "tuning weighs at the marks it needs; `weigh`, `run` and `compare` at those asked for";
    refusing(target, "the baseline of a tuning is the server as it is", trials, marks)
}
