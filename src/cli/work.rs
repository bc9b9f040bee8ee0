//! `loadline work`: executes one entry of a plan on a node, started by an engine.

use super::deadline::Deadline;
use super::exit::Code;
use super::find;
use super::session::{Call, Interrupt, Output, Session, is_interrupted};
use crate::archive::PLAN_BYTES_MAX;
use crate::bounded;
use crate::error::{Error, ErrorKind, Result, plain};
use crate::fleet::{EntrySelection, PlaceSeen, Plan, ServiceVersions, Started};
use crate::record::{Conditions, EntryOutcome, EntryResult, Machine};
use crate::report::{self, Progress};
use crate::scenario::Scenario;
use crate::series::{self, Archived, Local, PreparedSeries, machine_now};
use crate::subject::{image, jdk, limit};
use crate::work::{self, Blocks, By, Done, Runner, Searched, Stopped, WorkerInput};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `loadline work`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES, after_help = CODES)]
pub(super) struct Verb {
    /// Plan file written by `loadline plan`
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Index of the entry to run, from 0 [default: JOB_COMPLETION_INDEX, or LOADLINE_FIRST + SLURM_ARRAY_TASK_ID]
    #[arg(long, value_name = "N")]
    index: Option<u32>,
    /// Directory shared by all entries; this one writes to DIR/index-N
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of this node [default: NODE_NAME, SLURMD_NODENAME, or the hostname]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Stop after this many minutes with partial results, even if the plan allows more
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    minutes: Option<f64>,
    /// Run build steps even if their inputs are unchanged
    #[arg(long)]
    rebuild: bool,
    /// Print JSON instead of a one-line result
    #[arg(long)]
    json: bool,
    /// Print no progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline work plan.jsonl --out results --index 3
  srun loadline work plan.jsonl --out results          # in a task of `sbatch --array`
  loadline work /plan/plan.jsonl --out /results        # in a Job with `completionMode: Indexed`";

const CODES: &str = "\
Exit codes and whether to retry:
    0  the entry has a result, even if the limit failed or time ran out
    2  invalid request, such as a missing entry, a different plan, or changed files; do not retry
    3  the server failed; do not retry
    4  this node cannot measure the server; retry on another node
   70  a bug in Loadline; retry
  130  interrupted; retry to continue";

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|minutes: &f64| minutes.is_finite() && *minutes > 0.0);
    minutes.ok_or_else(|| format!("`{text}` is not a number of minutes; write it as `30` or `0.5`"))
}

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let clock = call.clock;
    let text = bounded::text_named(&verb.plan, PLAN_BYTES_MAX)
        .map_err(|cause| Error::request(format!("cannot read the plan {}: {}", verb.plan.display(), plain(&cause))))
        .map_err(|error| error.hint("`loadline plan` creates one"))?;
    let plan = Plan::parse(&text).map_err(|error| error.at(format!("plan: {}", verb.plan.display())))?;
    let file = std::path::absolute(&verb.plan).map_err(|cause| Error::io("find", &verb.plan, &cause))?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let started = Started::of(EntrySelection { index: verb.index, node: verb.node.as_deref() }, &variable, &host)?;
    let minutes = plan.entry(started.index)?.minutes;
    let minutes = verb.minutes.map_or(minutes, |typed| typed.min(minutes));
    let span = Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| {
        Error::request(format!("the plan gives entry {} {minutes} minutes", started.index))
            .hint("recreate the plan with `loadline plan`")
    })?;
    let signals = Interrupt::listen()?;
    let stop = signals.another()?;
    let deadline = Deadline::begin(clock, span, &signals, &stop);
    let output = Output { json: verb.json, quiet: verb.quiet, ..Output::default() };
    let session = Session::stopped_by(stop, output, call).of_plan().rebuilding(verb.rebuild);
    let node = ThisNode { session, signals, deadline };
    let folder = file.parent().unwrap_or(Path::new("/"));
    let asked = WorkerInput { plan: &plan, folder, out: &verb.out, started: &started };
    let done = work::work(&asked, &node, clock).map_err(|error| match error.kind {
        ErrorKind::Interrupted => error.hint("run the same entry again with the same `--out` to continue"),
        _ => error,
    })?;
    tell(&done, &verb)
}

/// Prints the result and returns the exit code for an engine.
fn tell(done: &Done, verb: &Verb) -> Result<Code> {
    let Done { result, by } = done;
    let mut progress = Progress::new(verb.quiet);
    match by {
        By::Us => {}
        By::Earlier => progress.step("this entry already has a result: nothing to do"),
        By::Meanwhile => progress.step("another worker finished first, so this result is dropped"),
    }
    let text = if verb.json { report::document(result) } else { sentence(result) };
    report::print(&text)?;
    let again = |error: Error| Err(result.why.iter().skip(1).fold(error, |error, line| error.at(line.clone())));
    let why = result.why.first().cloned().unwrap_or_default();
    match result.outcome {
        EntryOutcome::Answered | EntryOutcome::OutOfTime => Ok(Code::Yes),
        EntryOutcome::SubjectFailed => again(Error::subject(why)),
        EntryOutcome::NodeUnfit => again(Error::machine(why)),
    }
}

/// `entry 3, orders, on n1: completed: 5 of 5 trials in a row passed at 75.1 MiB`.
fn sentence(result: &EntryResult) -> String {
    let outcome = match result.outcome {
        EntryOutcome::Answered => "completed",
        EntryOutcome::OutOfTime => "its time ran out",
        EntryOutcome::SubjectFailed => "the server failed",
        EntryOutcome::NodeUnfit => "the node could not measure it",
    };
    let says = result.find.as_ref().map(|find| find.text.as_str()).or(result.why.first().map(String::as_str));
    let says = says.map(|says| format!(": {says}")).unwrap_or_default();
    let EntryResult { index, name, node, .. } = result;
    format!("entry {index}, {name}, on {}: {outcome}{says}\n", node.name)
}

struct ThisNode {
    session: Session,
    signals: Interrupt,
    deadline: Deadline,
}

impl Runner for ThisNode {
    fn place_before(&self) -> PlaceSeen {
        work::place_before(self.session.clock)
    }

    fn place_after(&self) -> PlaceSeen {
        work::place_after()
    }

    fn machine(&self) -> Machine {
        machine_now(self.session.clock)
    }

    fn can_limit(&self) -> Result<()> {
        limit::probe(self.session.clock).map(drop)
    }

    fn prepare(&self, scenario: &Scenario) -> Result<PreparedSeries> {
        self.session.prepare(scenario, &mut self.session.live())
    }

    fn seen(&self, scenario: &Scenario) -> Result<ServiceVersions> {
        if let Some(image) = &scenario.subject.image {
            let found = image::find(&image.name, self.session.clock)?;
            return Ok(ServiceVersions { image_digest: Some(found.id), jdk: None });
        }
        let wanted = scenario.configurations.first().and_then(|configuration| configuration.jdk.as_ref());
        let jdk = jdk::run_by(&scenario.subject, wanted, self.session.jdks(), self.session.clock)?;
        Ok(ServiceVersions { image_digest: None, jdk: jdk.map(|jdk| jdk.version) })
    }

    fn search(&self, scenario: &Scenario, archive: &Path) -> Searched {
        find::line(&self.session, scenario, archive)
    }

    fn blocks(&self, prepared: &PreparedSeries, first: u32, archive: &Path) -> Blocks {
        let scenario = &prepared.scenario;
        let conditions = Conditions { left_out: prepared.left_out.clone(), ..self.session.conditions(scenario) };
        let mut trials = Vec::new();
        let mut make = || {
            let mut store = Archived::create(archive, &conditions, scenario, self.session.live())?;
            let blocks = series::Blocks::new(scenario, &scenario.compare).of_part(first);
            let mut local = Local::new(self.session.tools(&conditions.machine));
            let done = series::run(&blocks, &mut local, &mut store, &mut trials);
            let (kept, _) = store.close(is_interrupted(&done));
            done.and_then(|survived| kept.map(|()| survived))
        };
        let ended = make();
        Blocks { trials, ended }
    }

    fn stopped(&self) -> Option<Stopped> {
        match (self.deadline.is_over(), self.signals.seen()) {
            (true, _) => Some(Stopped::TimeUp),
            (false, true) => Some(Stopped::Asked),
            (false, false) => None,
        }
    }

    fn say(&self, words: &str) {
        self.session.live().progress.step(words);
    }
}
