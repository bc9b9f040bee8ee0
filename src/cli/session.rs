//! The common part of all verbs that make trials: the conditions before them, the summary at their end. For verbs that
//! run blocks of them, also the run itself.

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
    /// Folder of the archive [default: loadline-archive/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the result document instead of the summary
    #[arg(long)]
    pub(super) json: bool,
    /// No progress on stderr, and one line instead of the summary
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
    /// How much of the summary to print.
    pub(super) fn depth(&self) -> Depth {
        Depth { line: self.quiet, ..self.depth }
    }
}

/// Which state of the subject's source is weighed, for `loadline history`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Parser)]
#[command(next_help_heading = "Output")]
pub(super) struct RevisionOptions {
    /// The commit that is weighed [default: HEAD of the working folder, else what CI says]
    #[arg(long, value_name = "HASH", value_parser = NonEmptyStringValueParser::new())]
    pub(super) commit: Option<String>,
    /// The build that is weighed [default: what CI says]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) build: Option<String>,
}

/// Whether none of these options was typed.
pub(super) fn is_untyped<O: Args + PartialEq>(options: &O) -> bool {
    #[derive(Parser)]
    struct OptionsOnly<O: Args> {
        #[command(flatten)]
        options: O,
    }
    OptionsOnly::<O>::try_parse_from(["loadline"]).is_ok_and(|nothing| nothing.options == *options)
}

/// Whether the user asked to stop. The second Ctrl-C ends Loadline at once; the guardian then ends the subject.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to INT, TERM and HUP.
    pub(super) fn listen() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds the flag unset and sets it, the second one ends.
            signal_hook::flag::register_conditional_shutdown(signal, Code::Interrupted as i32, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .map_err(cannot_listen)?;
        }
        Ok(Self(flag))
    }

    /// Listens to the same and to QUIT, and leaves it to the next look at the flag to end, however often they come: who
    /// draws on a terminal gives it back first.
    pub(super) fn patient() -> Result<Self> {
        flagged(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT], false).map(Self)
    }

    /// Another flag that the same signals set, and that somebody else may set: a deadline ends what runs, and is no
    /// signal.
    pub(super) fn another(&self) -> Result<Self> {
        flagged(&[SIGINT, SIGTERM, SIGHUP], self.seen()).map(Self)
    }

    /// Set by the first signal.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether the first signal came.
    pub(super) fn seen(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag that each of these signals sets, and that is set already where one was `seen`.
pub(super) fn flagged(signals: &[i32], seen: bool) -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(seen));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&flag)).map_err(cannot_listen)?;
    }
    Ok(flag)
}

fn cannot_listen(cause: std::io::Error) -> Error {
    Error::machine(format!("cannot listen to signals: {cause}"))
}

/// The words of the command line that repeats the run: the program by its name, not by its place.
#[derive(Debug, Clone)]
pub(super) struct CommandLine(Vec<String>);

impl CommandLine {
    /// The command line as it was typed.
    pub(super) fn of(arguments: &[OsString]) -> Self {
        let typed = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        Self(std::iter::once("loadline".to_owned()).chain(typed).collect())
    }

    /// The same without `--out`: a folder that holds an archive takes no second one.
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

    /// Puts words behind the verb.
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

/// A call of the program.
pub(super) struct Call {
    /// The command line that repeats it.
    pub(super) typed: CommandLine,
    /// It began with the call.
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
    /// The session of a call, which signals end.
    ///
    /// # Errors
    /// As [`Interrupt::listen`].
    pub(super) fn new(output: Output, call: Call) -> Result<Self> {
        Ok(Self::stopped_by(Interrupt::listen()?, output, call))
    }

    /// The same, but what sets this flag ends it.
    pub(super) fn stopped_by(interrupt: Interrupt, output: Output, Call { typed, clock }: Call) -> Self {
        let (jdks, spawner) = (jdk::discover(&Places::usual(), clock), Spawner::new(clock));
        let (rebuild, hashed_by) = (Rebuild::IfChanged, HashedBy::Trials);
        Self { clock, interrupt, output, typed, jdks, spawner, rebuild, hashed_by }
    }

    /// The session of a verb that makes trials of a server.
    ///
    /// # Errors
    /// As [`Interrupt::listen`].
    pub(super) fn of(options: &RunOptions, call: Call) -> Result<Self> {
        Ok(Self::new(options.output.clone(), call)?.rebuilding(options.asked.subject.rebuild))
    }

    /// The same, but build steps run although they would only repeat themselves, where that was asked.
    pub(super) fn rebuilding(self, always: bool) -> Self {
        Self { rebuild: if always { Rebuild::Always } else { Rebuild::IfChanged }, ..self }
    }

    /// The same, but hashes of files are those of a plan.
    pub(super) fn of_plan(self) -> Self {
        Self { hashed_by: HashedBy::Plan, ..self }
    }

    /// The JDKs found, the nearest at hand first.
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

    /// Returns the tools that trials are made with.
    pub(super) fn tools<'a>(&'a self, machine: &'a Machine) -> Tools<'a> {
        let interrupt = self.interrupt.flag();
        Tools { clock: self.clock, spawner: &self.spawner, jdks: &self.jdks, machine, interrupt }
    }

    /// Runs every configuration as often as asked, and reports.
    ///
    /// # Errors
    /// The error that stopped the run, or the first trial that failed. Measured trials are printed and kept before.
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
            // A request that could not be carried out leaves nothing worth keeping.
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

    /// Returns the baseline of a comment, if a comment is asked for and the baseline is an archive.
    fn against(&self, judgement: &Judgement, result: &Document, scenario: &Scenario, at: &Path) -> Option<Document> {
        self.output.exports.has_comment().then_some(())?;
        match judgement.against_archive(result, scenario, at)? {
            Ok(document) => Some(document),
            Err(error) => {
                // The measurements are reported all the same.
                Progress::new(false).warn(&format!("warning: the comment is not against the baseline: {}", error.what));
                None
            }
        }
    }

    /// Runs the build steps, and starts nothing else.
    ///
    /// # Errors
    /// If an export is asked for that cannot be made, and as [`Preparing::prepare`].
    pub(super) fn prepare(&self, scenario: &Scenario, live: &mut Live) -> Result<PreparedSeries> {
        self.output.exports.check(self.output.json)?;
        self.preparing(&|| self.interrupt.seen()).prepare(scenario, live)
    }

    /// Runs the build steps and hashes what trials will read, for machines that make them.
    ///
    /// # Errors
    /// As [`Preparing::seal`].
    pub(super) fn seal(&self, scenario: &Scenario, known: &mut KnownFiles, live: &mut Live) -> Result<Scenario> {
        self.preparing(&|| self.interrupt.seen()).seal(scenario, known, live)
    }

    fn preparing<'a>(&'a self, interrupted: &'a dyn Fn() -> bool) -> Preparing<'a> {
        let Self { clock, jdks, spawner, rebuild, hashed_by, .. } = self;
        Preparing { spawner, jdks, clock: *clock, rebuild: *rebuild, interrupted, hashed_by: *hashed_by }
    }

    /// Closes the archive, and shows what was found.
    ///
    /// # Errors
    /// If it cannot be shown.
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

    /// Does the same for a verb that can go on with its archive, however its trials ended.
    ///
    /// # Errors
    /// The error that ended the trials, or if something cannot be kept or shown.
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
            ended.progress.step(&format!("`{resume}` goes on"));
        }
        // The hint of a search does not know its archive.
        let named = |hint: String| hint.replace("--resume ARCHIVE", &resume);
        done.map_err(|error| Error { hint: error.hint.map(named), ..error })?;
        ended.kept
    }

    /// Shows what several archives say together, which lie in this folder.
    ///
    /// # Errors
    /// If it cannot be shown.
    pub(super) fn present(&self, result: &Document, folder: &Path) -> Result<()> {
        let Live { mut progress, .. } = self.live();
        self.show(result, None, folder, &mut progress)?;
        progress.step(&format!("archives: {}", folder.display()));
        Ok(())
    }

    /// Creates the progress output of a run.
    pub(super) fn live(&self) -> Live {
        Live::new(Progress::new(self.output.quiet))
    }

    /// Returns the conditions of every trial of a run that begins now.
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

    /// Returns the folder of its archive.
    pub(super) fn folder(&self, scenario: &Scenario) -> PathBuf {
        let began_s = self.clock.origin_unix_s();
        let usual = || {
            let name = format!("loadline-archive/{}-{}", scenario.name, utc_as(began_s, "%Y%m%d-%H%M%S"));
            // Two runs may begin in one second.
            let mut names = std::iter::once(name.clone()).chain((2..100).map(|n| format!("{name}-{n}")));
            PathBuf::from(names.find(|name| !Path::new(name).exists()).unwrap_or(name))
        };
        self.output.out.clone().unwrap_or_else(usual)
    }

    /// Prints what was measured; nothing where nothing was weighed and no document was asked for.
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
        // None of its trials is asked anything: what it found is in the target alone.
        let of_rates = result.find.as_ref().is_some_and(|find| find.unknowns == Unknowns::Rate);
        match *json || of_rates || result.over.is_some() || weighed(&result.trials) {
            true => shown.show(*json, depth, exports, progress),
            false => exports.write(&shown, progress),
        }
    }
}

/// A run whose archive is closed and whose result was shown.
struct Finished {
    folder: PathBuf,
    /// The first write of the archive that failed, if one did.
    kept: Result<()>,
    progress: Progress,
}

/// Whether the user ended a run.
pub(super) fn is_interrupted<T>(done: &Result<T>) -> bool {
    matches!(done, Err(error) if error.kind == ErrorKind::Interrupted)
}

/// Whether anything was measured.
fn weighed(trials: &[Trial]) -> bool {
    trials.iter().any(|trial| !trial.marks.is_empty())
}

/// No error where none failed; that of the only trial; else the first one, and before it those that say something else.
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
    fn what_repeats_a_run_names_no_folder_that_is_taken() {
        let repeats = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            CommandLine::of(&words).repeating().to_string()
        };
        assert_eq!(repeats("/opt/loadline run a.yaml --out b -n 9"), "loadline run a.yaml -n 9");
        assert_eq!(repeats("loadline run a.yaml --out=b --seed 2"), "loadline run a.yaml --seed 2");
        // What follows `--` is the server's own.
        assert_eq!(repeats("loadline find --out b -- java --out c"), "loadline find -- java --out c");
        assert_eq!(repeats("loadline find --out"), "loadline find");
    }

    #[test]
    fn several_errors_are_summed_up_in_the_first() {
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
