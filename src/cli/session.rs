//! Shared by all verbs that run trials: preparation and final summary, and for verbs that run blocks, the run itself.

use super::exit::Code;
use super::exports::{Exports, Shown};
use super::judging::code;
use super::live::Live;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Conditions, Document, Machine, Trial, Unknowns};
use crate::report::{Depth, Progress};
use crate::result::Judgement;
use crate::scenario::{Scenario, ScenarioOptions, shell_word, shell_words};
use crate::series::{
    self, Archived, Blocks, HashedBy, KnownFiles, Local, PreparedSeries, Preparing, Rebuild, machine_now, source_of,
};
use crate::subject::jdk::{self, Places};
use crate::subject::{FoundJdk, Spawner};
use crate::trial::{self, Tools};
use crate::units::{utc, utc_as, without_numbers};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// Directory to archive the run in [default: loadline-archive/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the result as JSON instead of the summary
    #[arg(long)]
    pub(super) json: bool,
    /// Print a one-line summary, and no progress on stderr
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) source: RevisionOptions,
    #[command(flatten)]
    pub(super) depth: Depth,
    #[command(flatten)]
    pub(super) exports: Exports,
}

impl Output {
    pub(super) fn depth(&self) -> Depth {
        Depth { line: self.quiet, ..self.depth }
    }
}

/// The version of the subject's source that is measured, for `loadline history`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Parser)]
#[command(next_help_heading = "Output")]
pub(super) struct RevisionOptions {
    /// Commit to record for the run [default: HEAD of the working directory, else the CI job's commit]
    #[arg(long, value_name = "HASH", value_parser = NonEmptyStringValueParser::new())]
    pub(super) commit: Option<String>,
    /// Build to record for the run [default: the CI job's build]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) build: Option<String>,
}

/// Whether none of these options was given on the command line.
pub(super) fn is_untyped<O: Args + PartialEq>(options: &O) -> bool {
    #[derive(Parser)]
    struct OptionsOnly<O: Args> {
        #[command(flatten)]
        options: O,
    }
    OptionsOnly::<O>::try_parse_from(["loadline"]).is_ok_and(|nothing| nothing.options == *options)
}

/// Whether the user interrupted the run. A second Ctrl-C ends Loadline immediately; the guardian then ends the subject.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles SIGINT, SIGTERM, and SIGHUP.
    pub(super) fn listen() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the first signal finds the flag unset and sets it; the second one exits.
            signal_hook::flag::register_conditional_shutdown(signal, Code::Interrupted as i32, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .map_err(cannot_listen)?;
        }
        Ok(Self(flag))
    }

    /// Handles the same signals and SIGQUIT, but never exits in the handler: a user interface first restores the
    /// terminal.
    pub(super) fn patient() -> Result<Self> {
        flagged(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT], false).map(Self)
    }

    /// A second flag for the same signals, which code can set too, because a deadline is not a signal.
    pub(super) fn another(&self) -> Result<Self> {
        flagged(&[SIGINT, SIGTERM, SIGHUP], self.seen()).map(Self)
    }

    /// Set by the first signal.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether a signal arrived.
    pub(super) fn seen(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag that these signals set, initially `seen`.
pub(super) fn flagged(signals: &[i32], seen: bool) -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(seen));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&flag)).map_err(cannot_listen)?;
    }
    Ok(flag)
}

fn cannot_listen(cause: std::io::Error) -> Error {
    Error::machine(format!("cannot listen for signals: {cause}"))
}

/// The command line that repeats the run, with the program's name instead of its path.
#[derive(Debug, Clone)]
pub(super) struct CommandLine(Vec<String>);

impl CommandLine {
    pub(super) fn of(arguments: &[OsString]) -> Self {
        let typed = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        Self(std::iter::once("loadline".to_owned()).chain(typed).collect())
    }

    /// Without `--out`, because a directory holds only one archive.
    fn repeating(&self) -> Self {
        let ours = self.0.iter().position(|word| word == "--").unwrap_or(self.0.len());
        let mut words = self.0[..ours].iter();
        let mut kept = Vec::new();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--out" => drop(words.next()),
                word if word.starts_with("--out=") => {}
                _ => kept.push(word.clone()),
            }
        }
        kept.extend_from_slice(&self.0[ours..]);
        Self(kept)
    }

    pub(super) fn insert(&mut self, words: Vec<String>) {
        let behind = self.0.len().min(2);
        self.0.splice(behind..behind, words);
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shell_words(&self.0))
    }
}

pub(super) struct Call {
    /// The command line that repeats the call.
    pub(super) typed: CommandLine,
    /// Started with the call.
    pub(super) clock: Clock,
}

/// Everything that a run needs besides its scenario.
pub(super) struct Session {
    pub(super) clock: Clock,
    interrupt: Interrupt,
    pub(super) output: Output,
    pub(super) typed: CommandLine,
    jdks: Vec<FoundJdk>,
    spawner: Spawner,
    rebuild: Rebuild,
    hashed_by: HashedBy,
}

impl Session {
    /// A session that ends on signals.
    pub(super) fn new(output: Output, call: Call) -> Result<Self> {
        Ok(Self::stopped_by(Interrupt::listen()?, output, call))
    }

    /// A session that ends when this flag is set.
    pub(super) fn stopped_by(interrupt: Interrupt, output: Output, Call { typed, clock }: Call) -> Self {
        let (jdks, spawner) = (jdk::discover(&Places::usual(), clock), Spawner::new(clock));
        let (rebuild, hashed_by) = (Rebuild::IfChanged, HashedBy::Trials);
        Self { clock, interrupt, output, typed, jdks, spawner, rebuild, hashed_by }
    }

    /// A session for a verb that runs a server's trials.
    pub(super) fn of(options: &RunOptions, call: Call) -> Result<Self> {
        Ok(Self::new(options.output.clone(), call)?.rebuilding(options.asked.subject.rebuild))
    }

    /// Makes build steps run even if they are up to date, if requested.
    pub(super) fn rebuilding(self, always: bool) -> Self {
        Self { rebuild: if always { Rebuild::Always } else { Rebuild::IfChanged }, ..self }
    }

    /// Takes file hashes from a plan.
    pub(super) fn of_plan(self) -> Self {
        Self { hashed_by: HashedBy::Plan, ..self }
    }

    /// The JDKs found, most preferred first.
    pub(super) fn jdks(&self) -> &[FoundJdk] {
        &self.jdks
    }

    /// Feature releases of the JDKs found, ascending.
    pub(super) fn releases(&self) -> Vec<u32> {
        let mut releases: Vec<u32> = self.jdks.iter().map(|jdk| jdk.release).collect();
        releases.sort_unstable();
        releases.dedup();
        releases
    }

    pub(super) fn tools<'a>(&'a self, machine: &'a Machine) -> Tools<'a> {
        let interrupt = self.interrupt.flag();
        Tools { clock: self.clock, spawner: &self.spawner, jdks: &self.jdks, machine, interrupt }
    }

    /// Runs every configuration as many times as requested, and reports. Errors: the error that stopped the run, or
    /// that of the first failed trial, after printing and archiving the completed trials.
    pub(super) fn run(&self, asked: &Scenario, judgement: &Judgement) -> Result<Code> {
        asked.validate()?;
        judgement.check_metrics(asked, &asked.marks)?;
        Judgement::check_figures(asked)?;
        let mut live = self.live();
        let PreparedSeries { scenario, left_out } = self.prepare(asked, &mut live)?;
        let (judgement, said) = judgement.of_those_left(&scenario);
        said.iter().for_each(|said| live.progress.step(said));
        let conditions = Conditions { left_out, ..self.conditions(&scenario) };
        let mut store = Archived::create(&self.folder(&scenario), &conditions, &scenario, live)?;
        let mut trials = Vec::new();
        let blocks = Blocks::new(&scenario, judgement.compare());
        let mut local = Local::new(self.tools(&conditions.machine));
        let done = series::run(&blocks, &mut local, &mut store, &mut trials);
        if let Err(error) = &done
            && error.kind == ErrorKind::Request
            && !weighed(&trials)
        {
            // A rejected request leaves nothing worth keeping.
            store.discard();
            return done.map(|_| Code::Yes);
        }
        let result = judgement.document(&conditions, &trials);
        let against = self.against(&judgement, &result, &scenario, store.folder());
        let mut finished = self.finish(store, is_interrupted(&done), &result, against.as_ref())?;
        summed_up(done?, trials.len(), &mut finished.progress)?;
        finished.kept?;
        code(&judgement, &result, &mut finished.progress)
    }

    /// The baseline for a comment, if a comment is requested and the baseline is an archive.
    fn against(&self, judgement: &Judgement, result: &Document, scenario: &Scenario, at: &Path) -> Option<Document> {
        self.output.exports.has_comment().then_some(())?;
        match judgement.against_archive(result, scenario, at)? {
            Ok(document) => Some(document),
            Err(error) => {
                // The measurements are reported anyway.
                Progress::new(false).warn(&format!("warning: the comment ignores the baseline: {}", error.what));
                None
            }
        }
    }

    /// Runs only the build steps. Fails if a requested export is impossible, or as [`Preparing::prepare`] does.
    pub(super) fn prepare(&self, scenario: &Scenario, live: &mut Live) -> Result<PreparedSeries> {
        self.output.exports.check(self.output.json)?;
        self.preparing(&|| self.interrupt.seen()).prepare(scenario, live)
    }

    /// Runs the build steps, and hashes the files that trials on other machines will read.
    pub(super) fn seal(&self, scenario: &Scenario, known: &mut KnownFiles, live: &mut Live) -> Result<Scenario> {
        self.preparing(&|| self.interrupt.seen()).seal(scenario, known, live)
    }

    fn preparing<'a>(&'a self, interrupted: &'a dyn Fn() -> bool) -> Preparing<'a> {
        let Self { clock, jdks, spawner, rebuild, hashed_by, .. } = self;
        Preparing { spawner, jdks, clock: *clock, rebuild: *rebuild, interrupted, hashed_by: *hashed_by }
    }

    /// Closes the archive and shows the result.
    fn finish(
        &self,
        store: Archived<Live>,
        interrupted: bool,
        result: &Document,
        against: Option<&Document>,
    ) -> Result<Finished> {
        let folder = store.folder().to_owned();
        let (kept, Live { mut progress, .. }) = store.close(interrupted);
        self.show(result, against, &folder, &mut progress)?;
        progress.step(&format!("archive: {}", folder.display()));
        Ok(Finished { folder, kept, progress })
    }

    /// Like `finish`, for a verb that can resume its archive, whatever the trials' outcome. Errors: the error that
    /// ended the trials, or a failure to store or show the result.
    pub(super) fn conclude(
        &self,
        verb: &str,
        store: Archived<Live>,
        done: Result<()>,
        result: &Document,
    ) -> Result<()> {
        let interrupted = is_interrupted(&done);
        let mut ended = self.finish(store, interrupted, result, None)?;
        let resume = format!("loadline {verb} --resume {}", shell_word(&ended.folder.to_string_lossy()));
        if interrupted {
            ended.progress.step(&format!("to continue, run `{resume}`"));
        }
        // A search's hint has a placeholder instead of its archive.
        let named = |hint: String| hint.replace("--resume ARCHIVE", &resume);
        done.map_err(|error| Error { hint: error.hint.map(named), ..error })?;
        ended.kept
    }

    /// Shows the combined result of several archives in this directory.
    pub(super) fn present(&self, result: &Document, folder: &Path) -> Result<()> {
        let Live { mut progress, .. } = self.live();
        self.show(result, None, folder, &mut progress)?;
        progress.step(&format!("archives: {}", folder.display()));
        Ok(())
    }

    /// The progress output of a run.
    pub(super) fn live(&self) -> Live {
        Live::new(Progress::new(self.output.quiet))
    }

    /// The conditions of all trials in a run that begins now.
    pub(super) fn conditions(&self, scenario: &Scenario) -> Conditions {
        let RevisionOptions { commit, build } = &self.output.source;
        Conditions {
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: scenario.name.clone(),
            started: utc(self.clock.origin_unix_s()),
            machine: machine_now(self.clock),
            seed: scenario.seed,
            command: self.typed.repeating().to_string(),
            load: trial::describe_load(&scenario.load),
            left_out: Vec::new(),
            source: source_of(commit.as_deref(), build.as_deref()),
        }
    }

    pub(super) fn folder(&self, scenario: &Scenario) -> PathBuf {
        let began_s = self.clock.origin_unix_s();
        let usual = || {
            let name = format!("loadline-archive/{}-{}", scenario.name, utc_as(began_s, "%Y%m%d-%H%M%S"));
            // Two runs may begin in the same second.
            let mut names = std::iter::once(name.clone()).chain((2..100).map(|n| format!("{name}-{n}")));
            PathBuf::from(names.find(|name| !Path::new(name).exists()).unwrap_or(name))
        };
        self.output.out.clone().unwrap_or_else(usual)
    }

    /// Prints the measurements; prints nothing if there are none and no document was requested.
    fn show(
        &self,
        result: &Document,
        against: Option<&Document>,
        folder: &Path,
        progress: &mut Progress,
    ) -> Result<()> {
        let Output { json, exports, .. } = &self.output;
        let depth = self.output.depth();
        let shown = Shown { document: result, folders: &[folder.to_owned()], missing: &[], against };
        // Its trials do not attach to the JVM, so the target is the only result.
        let of_rates = result.find.as_ref().is_some_and(|find| find.unknowns == Unknowns::Rate);
        match *json || of_rates || result.over.is_some() || weighed(&result.trials) {
            true => shown.show(*json, depth, exports, progress),
            false => exports.write(&shown, progress),
        }
    }
}

/// A run with a closed archive and a printed result.
struct Finished {
    folder: PathBuf,
    /// The archive's first write error, if any.
    kept: Result<()>,
    progress: Progress,
}

pub(super) fn is_interrupted<T>(done: &Result<T>) -> bool {
    matches!(done, Err(error) if error.kind == ErrorKind::Interrupted)
}

/// Whether anything was measured.
fn weighed(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| !trial.marks.is_empty())
}

/// Reduces trial errors: none, the only one, or the first one after printing those that differ from it.
fn summed_up(failed: Vec<Error>, total: usize, progress: &mut Progress) -> Result<()> {
    let count = failed.len();
    let mut failed = failed.into_iter();
    let Some(first) = failed.next() else { return Ok(()) };
    let mut told = vec![without_numbers(&first.what)];
    for other in failed {
        let what = without_numbers(&other.what);
        if !told.contains(&what) {
            told.push(what);
            progress.warn(&other.to_string());
        }
    }
    Err(if total > 1 { first.at(format!("{count} of {total} trials failed")) } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repeat_command_omits_the_output_directory() {
        let repeats = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            CommandLine::of(&words).repeating().to_string()
        };
        assert_eq!(repeats("/opt/loadline run a.yaml --out b -n 9"), "loadline run a.yaml -n 9");
        assert_eq!(repeats("loadline run a.yaml --out=b --seed 2"), "loadline run a.yaml --seed 2");
        // Arguments after `--` belong to the server.
        assert_eq!(repeats("loadline find --out b -- java --out c"), "loadline find -- java --out c");
        assert_eq!(repeats("loadline find --out"), "loadline find");
    }

    #[test]
    fn several_errors_are_summarized_in_the_first() {
        let error = |what: &str| Error::subject(what.to_owned());
        let mut progress = Progress::new(true);
        assert!(summed_up(Vec::new(), 3, &mut progress).is_ok());
        let failed = vec![error("it died on 18080"), error("it died on 18081"), error("no answer")];
        let first = summed_up(failed, 5, &mut progress).unwrap_err();
        assert_eq!((first.what.as_str(), first.context), ("it died on 18080", vec!["3 of 5 trials failed".to_owned()]));
        let only = summed_up(vec![error("it died")], 1, &mut progress).unwrap_err();
        assert!(only.context.is_empty());
    }
}
