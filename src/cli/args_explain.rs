//! Arguments of the verb `explain`.

use super::args::RunOptions;
use super::args_compare::Judging;
use crate::scenario::{self, Marking};
use crate::units::Span;
use clap::Parser;
use std::path::PathBuf;

/// `loadline explain`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Explain {
    /// A scenario file, a jar, or the process id of a JVM that runs; none of them where a command follows `--`
    #[arg(value_name = "SCENARIO | JAR | PID")]
    pub(super) what: Option<PathBuf>,
    /// Explain only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    #[command(flatten)]
    pub(super) explain: scenario::Explain,
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

/// Options for a JVM that runs already.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Explaining")]
pub(super) struct Running {
    /// How long a JVM that runs is recorded; it allocates meanwhile what is to be explained [default: 60s]
    #[arg(long = "for", value_name = "TIME")]
    pub(super) span: Option<Span>,
    /// Have a JVM that runs write a heap dump as well: a full GC, then it stands still while it writes about as much as
    /// lives in its heap
    #[arg(long)]
    pub(super) heap: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline explain target/app.jar
  loadline explain --url 'http://127.0.0.1:{port}/' --rate 200 -d 20s -- java -jar app.jar '{port}'
  loadline explain app.loadline.yaml --html why.html
  loadline explain 4711 --for 60s --html why.html";
