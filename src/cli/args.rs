//! The command line: its verbs, a row each, and what is printed about them. Words are validated and nothing else is
//! done; `scenario` gives those that change the run their meaning.

use super::exit::{self, Code};
use super::one_server::resumed;
use super::session::Call;
use super::{
    account, advise, capture, compare, demo, doctor, explain, find, history, init, load, merge, plan, post_mortem,
    report, run, tune, watch, weigh, work,
};
use crate::error::Result;
use crate::scenario::{FindSettings, TuneSettings};
use clap::{Arg, Command, CommandFactory, Parser, Subcommand, ValueEnum};

/// Weighs a JVM server under load and shows what holds its memory.
#[derive(Debug, Parser)]
#[command(name = "loadline", version, max_term_width = 100, after_help = exit::HELP, before_help = EXAMPLES)]
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
  loadline account --all
  loadline advise --all";

/// Makes the list of verbs: the options of each are the `Verb` of its file, and its `run` does it.
macro_rules! verbs {
    ($($(#[$about:meta])* $verb:ident => $file:ident,)*) => {
        #[derive(Debug, Subcommand)]
        pub(super) enum Verb {
            $($(#[$about])* $verb(Box<$file::Verb>),)*
        }

        impl Verb {
            /// Does what it says.
            pub(super) fn run(self, call: Call) -> Result<Code> {
                match self {
                    $(Self::$verb(verb) => $file::run(*verb, call),)*
                }
            }
        }
    };
}

verbs! {
    /// Weigh one configuration of a server under load
    Weigh => weigh,
    /// Write a first scenario file for the server of a project, from what is found there
    Init => init,
    /// Do everything a scenario file asks
    Run => run,
    /// Compare configurations side by side, with verdicts
    Compare => compare,
    /// Find the smallest memory limit at which a server still holds its target
    Find => find,
    /// Try remedies against memory under the load, keep what helps, and confirm it
    Tune => tune,
    /// Plan the load lines of many services, or the blocks of a comparison, for many nodes
    Plan => plan,
    /// Do one entry of a plan, as an engine starts it on a node
    Work => work,
    /// Put together what nodes answered to a plan: the table of a fleet, or one comparison
    Merge => merge,
    /// Load a server that already runs, without weighing it
    Load => load,
    /// Weigh a built-in small server in a 6 MB heap, with G1 and with Serial
    Demo => demo,
    /// Say who holds the resident memory of a running JVM
    Account => account,
    /// Advise limit and heap for JVMs that run, without a trial
    Advise => advise,
    /// Print the script that collects what an account needs, where Loadline cannot run
    Capture => capture,
    /// Name the code and the objects that hold the memory of a server
    Explain => explain,
    /// Watch running JVMs: what each holds, what grows, and when it meets its limit
    Watch => watch,
    /// Say who was killed for lack of memory, and who held it, by the kernel's log
    PostMortem => post_mortem,
    /// Print the summary of an archive again; needs no JVM
    Report => report,
    /// Follow metrics over archives, commit by commit, and name what changed when
    History => history,
    /// Say what this machine, or one JVM, lets Loadline measure, and how to get the rest
    Doctor => doctor,
}

/// Options that nine of ten calls need: `-h` shows these, `--help` all.
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

/// Builds the parser of the command line: all that the help shows, and what is refused with better words than clap's.
pub(super) fn parser() -> Command {
    let verbs = Args::command().mut_subcommand("find", |find| resumed::<FindSettings>(find.args(find::refused())));
    let verbs = verbs.mut_subcommand("tune", |tune| resumed::<TuneSettings>(tune.args(tune::refused())));
    let is_usual = |arg: &Arg| arg.is_positional() || USUAL.contains(&arg.get_id().as_str());
    verbs.mut_subcommands(|verb| {
        verb.mut_args(|arg| if is_usual(&arg) { arg.help_heading(None) } else { arg.hide_short_help(true) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
        parser().debug_assert();
    }

    /// clap checks it in builds for debugging only.
    #[test]
    fn no_verb_has_two_options_of_one_name() {
        for verb in parser().get_subcommands() {
            let mut names: Vec<&str> = verb.get_arguments().map(|arg| arg.get_id().as_str()).collect();
            names.sort_unstable();
            let twice: Vec<_> = names.windows(2).filter(|two| two[0] == two[1]).collect();
            assert!(twice.is_empty(), "`{}` has {twice:?} twice", verb.get_name());
        }
    }

    #[test]
    fn the_short_help_of_a_verb_fits_a_screen() {
        for verb in parser().get_subcommands_mut() {
            let lines = verb.render_help().to_string().lines().count();
            assert!(lines <= 40, "`{} -h` has {lines} lines", verb.get_name());
        }
    }

    /// The words of a command as a shell splits them, up to a pipe, a redirection or a comment.
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
    fn every_command_of_the_documents_is_understood() {
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
    fn the_documents_name_no_option_that_is_none() {
        let (program, mut seen) = (parser(), 0);
        let folders = ["docs", "docs/how-to"].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        for path in folders.map(|entry| entry.unwrap().path()) {
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
