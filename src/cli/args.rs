//! The command line: a table of verbs, and their help. Only validates arguments; `scenario` interprets those that
//! change a run.

use super::exit::{self, Code};
use super::one_server::resumed;
use super::session::Call;
use super::{
    account, advise, capture, compare, demo, doctor, explain, find, history, init, load, merge, plan, post_mortem,
    report, run, tune, watch, weigh, work,
};
use crate::error::Result;
use crate::scenario::{FindSettings, TuneSettings};
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Command, CommandFactory, Parser, Subcommand, ValueEnum};

/// Measure a JVM server's memory under load, and find the smallest limit it can run under
#[derive(Debug, Parser)]
#[command(name = "loadline", version, max_term_width = 100, after_help = exit::HELP, before_help = EXAMPLES)]
#[command(override_usage = "loadline <VERB> [OPTIONS]\n       loadline --generate <WHAT>")]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
#[command(subcommand_value_name = "VERB")]
pub(super) struct Args {
    /// Print the man page, shell completions, or the scenario file schema
    #[arg(long, value_name = "WHAT", required = true)]
    pub(super) generate: Option<Generate>,
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
}

/// Output generated from the option table, in addition to the help.
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
  loadline account --all
  loadline advise --all";

/// Generates the list of verbs: each verb's options are its file's `Verb`, and its file's `run` executes it.
macro_rules! verbs {
    ($($(#[$about:meta])* $verb:ident => $file:ident,)*) => {
        #[derive(Debug, Subcommand)]
        pub(super) enum Verb {
            $($(#[$about])* $verb(Box<$file::Verb>),)*
        }

        impl Verb {
            /// Runs the verb.
            pub(super) fn run(self, call: Call) -> Result<Code> {
                match self {
                    $(Self::$verb(verb) => $file::run(*verb, call),)*
                }
            }
        }
    };
}

verbs! {
    /// Measure a server's memory and speed under load
    Weigh => weigh,
    /// Create a scenario file from a project directory, jar, or image
    Init => init,
    /// Run all configurations of a scenario file and check its budgets
    Run => run,
    /// Compare configurations, with a verdict on each metric
    Compare => compare,
    /// Find the smallest memory limit at which a server meets its target
    Find => find,
    /// Find settings that save memory under load, and confirm the savings
    Tune => tune,
    /// Split a comparison, or searches for many services, across nodes
    Plan => plan,
    /// Run one entry of a plan on this node
    Work => work,
    /// Merge the results of a plan into a fleet table or a comparison
    Merge => merge,
    /// Load-test a running server without measuring its memory
    Load => load,
    /// Measure a small built-in server in a 6 MB heap, with G1 and Serial
    Demo => demo,
    /// Break down the resident memory of a running JVM
    Account => account,
    /// Suggest memory limits and heap sizes for running JVMs
    Advise => advise,
    /// Print a shell script that captures a JVM's memory where Loadline can't run
    Capture => capture,
    /// Find the code and objects behind a server's memory use
    Explain => explain,
    /// Monitor the memory of running JVMs: use, growth, and time to the limit
    Watch => watch,
    /// Explain an OOM kill from the kernel log: the process killed and the memory in use
    PostMortem => post_mortem,
    /// Print the report of an archived run
    Report => report,
    /// Track metrics across archived runs, and show which commit changed them
    History => history,
    /// Check what Loadline can measure on this machine or in one JVM
    Doctor => doctor,
}

/// The examples come after the usage.
const LAYOUT: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// Options that nine of ten calls need: `-h` shows only these, and `--help` shows all options.
const USUAL: [&str; 32] = [
    "against",
    "all",
    "budget",
    "by",
    "classes",
    "connections",
    "dry_run",
    "duration",
    "for",
    "gc",
    "heap",
    "html",
    "jdk",
    "json",
    "jvm",
    "limit",
    "minutes",
    "of_history",
    "of_pod",
    "out",
    "over",
    "patch",
    "price",
    "prove",
    "rate",
    "require",
    "skip",
    "target",
    "trials",
    "try",
    "url",
    "vary",
];

/// Verbs that take PIDs without an option.
const TAKE_PIDS: [&str; 4] = ["account", "advise", "doctor", "watch"];

/// Other tools have this option; if it were not defined here, clap would suggest `--pod`.
fn pid_option() -> Arg {
    let refusing = UnknownArgumentValueParser::suggest("give the PID without an option, as in `account 1234`");
    Arg::new("pid option").long("pid").value_name("PID").hide(true).value_parser(refusing)
}

/// Builds the parser, including the help and rejections with better messages than clap's.
pub(super) fn parser() -> Command {
    let verbs = Args::command().mut_subcommand("find", |find| resumed::<FindSettings>(find.args(find::refused())));
    let verbs = verbs.mut_subcommand("tune", |tune| resumed::<TuneSettings>(tune.args(tune::refused())));
    let verbs =
        TAKE_PIDS.into_iter().fold(verbs, |verbs, name| verbs.mut_subcommand(name, |verb| verb.arg(pid_option())));
    let is_usual = |arg: &Arg| arg.is_positional() || USUAL.contains(&arg.get_id().as_str());
    verbs.help_template(LAYOUT).mut_subcommands(|verb| {
        verb.help_template(LAYOUT)
            .mut_args(|arg| if is_usual(&arg) { arg.help_heading(None) } else { arg.hide_short_help(true) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_definition_is_valid() {
        Args::command().debug_assert();
        parser().debug_assert();
    }

    /// clap checks this only in debug builds.
    #[test]
    fn options_of_a_verb_have_unique_names() {
        for verb in parser().get_subcommands() {
            let mut names: Vec<&str> = verb.get_arguments().map(|arg| arg.get_id().as_str()).collect();
            names.sort_unstable();
            let twice: Vec<_> = names.windows(2).filter(|two| two[0] == two[1]).collect();
            assert!(twice.is_empty(), "`{}` defines {twice:?} twice", verb.get_name());
        }
    }

    #[test]
    fn the_short_help_of_a_verb_fits_a_screen() {
        for verb in parser().get_subcommands_mut() {
            let lines = verb.render_help().to_string().lines().count();
            assert!(lines <= 40, "`{} -h` has {lines} lines", verb.get_name());
        }
    }

    /// Splits a command like a shell, up to a pipe, a redirection, or a comment.
    fn words(command: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for c in command.chars() {
            match (c, quote) {
                ('\'' | '"', None) => quote = Some(c),
                (_, Some(open)) if c == open => quote = None,
                (' ', None) => words.push(String::new()),
                ('|' | '>' | '#' | '&' | ';', None) => break,
                _ => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty() && word != "…");
        words
    }

    #[test]
    fn every_documented_command_parses() {
        let of_folders = ["docs", "docs/how-to"].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let pages = of_folders.map(|entry| entry.unwrap().path()).chain(["README.md".into()]);
        let mut seen = 0;
        for path in pages.filter(|path| path.extension().is_some_and(|end| end == "md")) {
            let text = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
            for line in text.lines().filter_map(|line| line.trim().strip_prefix("$ loadline ")) {
                let placed = line.replace("PID", "4711").replace("URL", "http://127.0.0.1:8080/");
                let typed = std::iter::once("loadline".to_owned()).chain(words(&placed));
                if let Err(error) = parser().try_get_matches_from(typed) {
                    panic!("{}: `loadline {line}`: {error}", path.display());
                }
                seen += 1;
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn every_documented_option_exists() {
        let (program, mut seen) = (parser(), 0);
        let folders = ["docs", "docs/how-to"].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        for path in folders.map(|entry| entry.unwrap().path()) {
            let Some("md") = path.extension().and_then(|end| end.to_str()) else { continue };
            let text = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
            for (at, _) in text.match_indices("loadline ") {
                let command = text[at..].split(['`', '\n', '|', '#']).next().unwrap();
                // A nested command has its own options.
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
