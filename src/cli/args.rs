//! The command line. Validates words and does nothing else; `scenario` gives those that change the run their meaning.

use super::args_compare::{Compare, Exports, Judging, View};
use super::args_explain::Explain;
use super::args_find::Find;
use super::args_history::History;
use super::args_init::Init;
use super::args_load::Load;
use super::args_merge::Merge;
use super::args_plan::Plan;
use super::args_tune::Tune;
use super::args_watch::Watch;
use super::args_work::Work;
use crate::report::Detail;
use crate::result::Column;
use crate::scenario::{CompareSettings, Inside, Marking, ScenarioOptions};
use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Weighs a JVM server under load and says where every megabyte sits.
#[derive(Debug, Parser)]
#[command(name = "loadline", version, max_term_width = 100, after_help = super::exit::HELP, before_help = EXAMPLES)]
#[command(override_usage = "loadline <VERB> [OPTIONS]\n       loadline --generate <WHAT>")]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
#[command(subcommand_value_name = "VERB")]
pub(super) struct Args {
    /// Print the manual page, what completes commands in a shell, or the schema of scenario files
    #[arg(long, value_name = "WHAT", required = true)]
    pub(super) generate: Option<Generate>,
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
}

/// Output made from the option table, besides the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Generate {
    Man,
    CompleteBash,
    CompleteZsh,
    CompleteFish,
    ScenarioSchema,
}

const EXAMPLES: &str = "\
Examples:
  loadline demo
  loadline weigh target/app.jar
  loadline init
  loadline weigh --url http://127.0.0.1:8080/hello -- java -jar app.jar
  loadline weigh --url 'http://127.0.0.1:{port}/' --heap 64m --gc serial -- java -jar app.jar '{port}'
  loadline compare --vary gc=serial,g1 --url http://127.0.0.1:8080/ -- java -jar app.jar
  loadline find --rate 200 --target 'p99<50ms' --url http://127.0.0.1:8080/ -- java -jar app.jar
  loadline find --rate 200 --url http://127.0.0.1:8080/ --image app:1.2
  loadline tune --rate 200 --target 'p99<50ms' --url http://127.0.0.1:8080/ -- java -jar app.jar
  loadline load http://127.0.0.1:8080/hello --rate 500 --require 'p99<50ms'
  loadline account 4711
  loadline explain target/app.jar
  loadline account --all";

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Weigh one configuration of a server under load
    Weigh(Box<Weigh>),
    /// Write a first scenario file for the server of a project, from what is found there
    Init(Init),
    /// Do everything a scenario file asks
    Run(Box<Run>),
    /// Compare configurations side by side, with verdicts
    Compare(Box<Compare>),
    /// Find the smallest memory limit at which a server still holds its target, and prove it
    Find(Box<Find>),
    /// Try remedies against memory under the load, keep what helps, and prove it
    Tune(Box<Tune>),
    /// Plan the load lines of many services, or the blocks of a comparison, for many nodes
    Plan(Box<Plan>),
    /// Do one entry of a plan, as an engine starts it on a node
    Work(Box<Work>),
    /// Put together what nodes answered to a plan: the table of a fleet, or one comparison
    Merge(Box<Merge>),
    /// Load a server that already runs, without weighing it
    Load(Box<Load>),
    /// Weigh a built-in small server in a 6 MB heap, with G1 and with Serial
    Demo(Box<Demo>),
    /// Say who holds the resident memory of a running JVM, now
    Account(Account),
    /// Name the code and the objects that hold the memory of a server
    Explain(Box<Explain>),
    /// Watch running JVMs: what each holds, what grows, and when it meets its limit
    Watch(Box<Watch>),
    /// Print the summary of an archive again; needs no JVM
    Report(Box<Report>),
    /// Follow metrics over archives, commit by commit, and name what changed when
    History(Box<History>),
    /// Say what this machine, or one JVM, lets Loadline measure, and how to get the rest
    Doctor(Doctor),
}

/// `loadline weigh`
#[derive(Debug, Parser)]
pub(super) struct Weigh {
    #[command(flatten)]
    pub(super) options: RunOptions,
    #[command(flatten)]
    pub(super) marking: Marking,
    #[command(flatten)]
    pub(super) inside: Inside,
    #[command(flatten)]
    pub(super) judging: Judging,
    /// The jar that starts the server. It is started once before, to see where it answers, unless `--url` says so
    #[arg(value_name = "JAR", conflicts_with = "image")]
    pub(super) jar: Option<PathBuf>,
    /// The server, where no jar is named: a `java` command line or a script that ends up in one; of a jar its
    /// arguments, of an image those of its entrypoint. `{port}` stands for a free port
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

/// `loadline run`
#[derive(Debug, Parser)]
pub(super) struct Run {
    /// A scenario file, `NAME.loadline.yaml`, or a folder NAME with one of its name
    #[arg(value_name = "SCENARIO")]
    pub(super) scenario: PathBuf,
    /// Run the small version that stands beside it, `NAME-quick.loadline.yaml`
    #[arg(long)]
    pub(super) quick: bool,
    /// Run only these configurations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    #[command(flatten)]
    pub(super) options: RunOptions,
    #[command(flatten)]
    pub(super) marking: Marking,
    #[command(flatten)]
    pub(super) inside: Inside,
    #[command(flatten)]
    pub(super) judging: Judging,
}

/// `loadline demo`
#[derive(Debug, Parser)]
pub(super) struct Demo {
    #[command(flatten)]
    pub(super) output: Output,
}

/// `loadline account`
#[derive(Debug, Parser)]
#[command(override_usage = "loadline account [OPTIONS] <PID>\n       loadline account [OPTIONS] --all")]
pub(super) struct Account {
    /// Process id of the JVM
    #[arg(value_name = "PID", value_parser = pid, required_unless_present = "all", conflicts_with = "all")]
    pub(super) pid: Option<u32>,
    /// All JVMs of this machine in one table, those of containers too
    ///
    /// A JVM is found by the code it runs (a mapped libjvm.so), not by its name. Each is read as `loadline account PID`
    /// reads it, one after another, and each pays the same: 20 to 100 ms of reading, during which it runs on but for
    /// pauses of 2 to 9 ms (longer on a busy machine, none with `--no-stop`). Only one whose own tables do not tell
    /// all, or with Native Memory Tracking, is asked: that adds 0.1 to 0.3 MiB of RSS, once.
    ///
    /// Exit code 0: every JVM that was found was read. 4: at least one may not be read; it is listed with the reason,
    /// and the others are printed all the same. One that ends meanwhile is listed too, and is no failure.
    #[arg(long, conflicts_with_all = ["by", "netty", "against", "classes", "heap_dump"])]
    pub(super) all: bool,
    /// Column that `--all` is sorted by [default: pss]
    // A `requires` alone does not hold where a pid, which conflicts with `all`, is given.
    #[arg(long, value_name = "COLUMN", requires = "all", conflicts_with = "pid")]
    pub(super) sort: Option<Column>,
    /// Changes since an earlier account, in a file that `loadline account PID --json` printed
    ///
    /// By owner, thread pool, file, NMT tag, code heap and class loader. The file may also be what `--all --json` or
    /// `--against FILE --json` printed. An account of another process is compared all the same, with a doubt that says
    /// so.
    #[arg(long, value_name = "FILE")]
    pub(super) against: Option<PathBuf>,
    /// Details by thread (stack, CPU time, what it allocated), pool (threads by name), file, tag (malloc by NMT tag),
    /// loader (classes by class loader), code (its cache by segment), region (address) or flag (those that somebody
    /// set); may be repeated. `--json` has all of them
    #[arg(long, value_name = "WHAT", value_delimiter = ',', hide_possible_values = true)]
    pub(super) by: Vec<Detail>,
    /// Do not hold the JVM's threads while it is read; what changes meanwhile blurs the account
    #[arg(long)]
    pub(super) no_stop: bool,
    /// Ask the JVM by its attach socket for what is read from outside where it can be; adds 0.2 to 0.3 MiB to it
    #[arg(long)]
    pub(super) attach: bool,
    /// List Netty's buffer pools, chunk by chunk, by an agent that is loaded into the JVM after it was weighed
    #[arg(long)]
    pub(super) netty: bool,
    /// List the live objects by class, by a full GC that is made after the JVM was weighed and stops it meanwhile
    #[arg(long)]
    pub(super) classes: bool,
    /// Write a heap dump into a new FILE, after everything else: a full GC, then the JVM stands still while it writes
    /// about as much as lives in its heap
    #[arg(long, value_name = "FILE")]
    pub(super) heap_dump: Option<PathBuf>,
    /// Print the account as a document instead of the summary
    #[arg(long)]
    pub(super) json: bool,
    /// No talk on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// `loadline doctor`
#[derive(Debug, Parser)]
pub(super) struct Doctor {
    /// A JVM by its process id: what can be read of it, with which flags it runs and who set them, and whether it can
    /// be attached to; nothing is asked of it
    #[arg(value_name = "PID", value_parser = pid)]
    pub(super) pid: Option<u32>,
    /// All flags of that JVM, those at their default too
    #[arg(long, requires = "pid")]
    pub(super) flags: bool,
}

/// `loadline report`
#[derive(Debug, Parser)]
pub(super) struct Report {
    /// The folder that a run named in its last line
    #[arg(value_name = "ARCHIVE")]
    pub(super) archive: PathBuf,
    /// Print the result document instead of the summary
    #[arg(long)]
    pub(super) json: bool,
    /// Draw each picture into this folder, as SVG
    #[arg(long, value_name = "DIR", help_heading = "Files", value_parser = pictures)]
    pub(super) plot: Option<PathBuf>,
    /// Write the single requests of each trial into this folder, in the columns of `ab -g`
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub(super) ab: Option<PathBuf>,
    #[command(flatten)]
    pub(super) view: View,
    #[command(flatten)]
    pub(super) exports: Exports,
    #[command(flatten)]
    pub(super) comparing: CompareSettings,
    #[command(flatten)]
    pub(super) judging: Judging,
}

/// Everything that changes what is run, and where its result goes.
#[derive(Debug, Parser)]
#[group(skip)]
pub(super) struct RunOptions {
    #[command(flatten)]
    pub(super) asked: ScenarioOptions,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Clone, Default, Parser)]
#[command(next_help_heading = "Output")]
pub(super) struct Output {
    /// Folder of the archive [default: loadline-archive/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the result document instead of the summary
    #[arg(long)]
    pub(super) json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) source: Source,
    #[command(flatten)]
    pub(super) view: View,
    #[command(flatten)]
    pub(super) exports: Exports,
}

/// Which state of the subject's source is weighed, for `loadline history`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Parser)]
#[command(next_help_heading = "Output")]
pub(super) struct Source {
    /// The commit that is weighed [default: HEAD of the working folder, else what CI says]
    #[arg(long, value_name = "HASH", value_parser = NonEmptyStringValueParser::new())]
    pub(super) commit: Option<String>,
    /// The build that is weighed [default: what CI says]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) build: Option<String>,
}

pub(super) fn pid(text: &str) -> Result<u32, String> {
    let refuse = || format!("`{text}` is no process id; write it as a number, such as `4711`");
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(refuse)
}

/// A folder for pictures. A name that ends like a picture's was meant for one.
fn pictures(text: &str) -> Result<PathBuf, String> {
    const PICTURES: [&str; 5] = ["png", "svg", "pdf", "jpg", "jpeg"];
    let folder = PathBuf::from(text);
    let ending = folder.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    if PICTURES.contains(&ending.as_str()) {
        return Err(format!(
            "`{text}` is no folder; each picture is an SVG file, so write the folder for all, as `pictures`"
        ));
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn pictures_go_into_a_folder() {
        assert_eq!(pictures("out/pictures"), Ok(PathBuf::from("out/pictures")));
        for file in ["x.png", "out/x.PNG", "x.svg"] {
            assert!(pictures(file).unwrap_err().contains("an SVG file"), "{file}");
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
        super::super::parser().debug_assert();
    }

    #[test]
    fn the_documents_name_no_option_that_is_none() {
        let (program, mut seen) = (super::super::parser(), 0);
        for path in std::fs::read_dir("docs").unwrap().map(|entry| entry.unwrap().path()) {
            let Some("md") = path.extension().and_then(|end| end.to_str()) else { continue };
            let text = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
            for (at, _) in text.match_indices("loadline ") {
                let command = text[at..].split(['`', '\n', '|', '#']).next().unwrap();
                // The options of a command within the command are its own.
                let mut words = command.split("$(").next().unwrap().split_whitespace().skip(1);
                let Some(verb) = words.next().and_then(|verb| program.find_subcommand(verb)) else { continue };
                for word in words.take_while(|word| *word != "--").filter_map(|word| word.strip_prefix("--")) {
                    let option = word.split(['=', ',', ')', ']', ';']).next().unwrap();
                    let is_known = verb.get_arguments().any(|of| of.get_long() == Some(option)) || option == "help";
                    assert!(is_known, "{}: `loadline {}` has no --{option}", path.display(), verb.get_name());
                    seen += 1;
                }
            }
        }
        assert!(seen > 100, "{seen}");
    }
}
