//! `loadline load`: only the load engine, against a running server.

use super::exit::Code;
use super::session::{Call, Interrupt};
use crate::archive::{LoadFiles, LoadPaths, PhaseRows};
use crate::bounded;
use crate::clock::Clock;
use crate::doubt::Doubt;
use crate::error::{Error, ErrorKind, Result};
use crate::load::Address;
use crate::record::{DoubtRecord, LOAD_SCHEMA, LoadConditions, LoadDocument, Verdict};
use crate::report::{self, Depth, Progress};
use crate::scenario::{self, Condition, Cpus, LoadAlone, LoadOptions, PhasesFile, Until};
use crate::series;
use crate::subject::{CpuPlan, cpus};
use crate::trial::{self, LoadEvent, Loaded, Loading, Reached, is_measured};
use crate::units::{Span, grouped, parse_count, utc};
use clap::Parser;
use std::path::{Path, PathBuf};

/// `loadline load`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// HTTP or HTTPS URL to load: `http://HOST[:PORT][/PATH]`
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    alone: AloneOptions,
    #[command(flatten)]
    files: FileOptions,
}

const EXAMPLES: &str = "\
Examples:
  loadline load http://127.0.0.1:8080/hello
  loadline load http://127.0.0.1:8080/hello --rate 500 -d 30s --require 'p99<50ms' --strict
  loadline load http://127.0.0.1:8080/ --plan spike.yaml --hlog spike.hlog --csv spike.csv";

/// Options that only `load` has.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Load test")]
struct AloneOptions {
    /// Read phases from the `load:` key of a file, such as a scenario; options and the URL's path override them
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Number of load generator threads [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Option<u32>,
    /// Connect to this address; the `Host` header still comes from the URL
    #[arg(long, value_name = "HOST:PORT", value_parser = endpoint, conflicts_with = "unix_socket")]
    connect_to: Option<(String, u16)>,
    /// Exit with code 1 unless this holds: `p99<50ms`, `failed<0.1%`, `rate>=99%` (repeatable)
    #[arg(long, value_name = "CONDITION")]
    require: Vec<Condition>,
    /// Exit with code 1 if the offered rate is missed by more than 1% or the load generator may be the bottleneck
    #[arg(long)]
    strict: bool,
}

/// The output of `load`.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Output")]
struct FileOptions {
    /// Print JSON instead of the summary
    #[arg(long)]
    json: bool,
    /// Print a one-line summary, and no progress on stderr
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    paths: LoadPaths,
    /// Maximum number of rows per phase in `--rows` [default: 100k]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    rows_max: Option<u64>,
}

/// `host:80`, `[::1]:80`.
fn endpoint(text: &str) -> Result<(String, u16), String> {
    let refuse = || format!("`{text}` is not an address; write it as `127.0.0.1:8080`");
    let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match port.parse() {
        Ok(port) if port > 0 && !host.is_empty() => Ok((host.to_owned(), port)),
        _ => Err(refuse()),
    }
}

/// The default number of rows kept per phase: enough for a plot, 10 MB of memory.
const ROWS_MAX: u64 = 100_000;
/// The maximum for a small machine's memory; a row takes 80 bytes.
const ROWS_MAX_MOST: u64 = 10_000_000;

pub(super) fn run(verb: Verb, Call { typed, clock }: Call) -> Result<Code> {
    let asked = CheckedLoad::of(&verb, clock, Interrupt::listen()?)?;
    let mut progress = Progress::new(verb.files.quiet);
    // Before contacting the server, so that an unwritable path costs nothing.
    let paths = &verb.files.paths;
    let mut files = Files { files: LoadFiles::create(paths)?, trouble: false, keeps_rows: paths.rows.is_some() };
    let reached = asked.reach()?;
    let conditions = asked.conditions(&reached, typed.to_string());
    let mut live = TerminalProgress::default();
    let loaded = asked.loading(&reached).run(&mut |event| {
        live.show(&event, &mut progress);
        files.take(&event, clock, &mut progress);
    });
    progress.clear_line();
    finish(&verb, conditions, loaded, files.trouble)
}

/// Prints the measurements and returns the exit code.
fn finish(verb: &Verb, conditions: LoadConditions, loaded: Loaded, files_incomplete: bool) -> Result<Code> {
    let interrupted = matches!(&loaded.error, Some(error) if error.kind == ErrorKind::Interrupted);
    let measured = loaded.phases.iter().any(|phase| phase.works());
    let document = LoadDocument {
        schema: LOAD_SCHEMA.to_owned(),
        conditions,
        strict: verb.alone.strict.then(|| !loaded.doubts.iter().any(breaks_strict)),
        interrupted,
        phases: loaded.phases,
        timeline: loaded.timeline,
        thresholds: loaded.thresholds,
        doubts: loaded.doubts.into_iter().map(DoubtRecord::from).collect(),
    };
    if measured {
        let text = match verb.files.json {
            true => report::document(&document),
            false => {
                let depth = Depth { line: verb.files.quiet, ..Depth::default() };
                report::render(&report::summarize_load(&document, depth))
            }
        };
        report::print(&text)?;
    }
    if let Some(error) = loaded.error {
        return Err(error);
    }
    let held = document.thresholds.iter().all(|threshold| threshold.verdict == Verdict::Holds);
    if document.doubts.iter().any(|of| matches!(of.doubt, Doubt::ServerGone { .. })) {
        return Ok(Code::Subject);
    }
    Ok(match held && document.strict != Some(false) {
        false => Code::No,
        true if files_incomplete => Code::Machine,
        true => Code::Yes,
    })
}

/// Whether this doubt means that the load differs from the requested one.
fn breaks_strict(doubt: &Doubt) -> bool {
    matches!(doubt, Doubt::AchievedBelowOffered { .. } | Doubt::GeneratorSaturated { .. })
}

/// A load's validated options.
struct CheckedLoad<'v> {
    verb: &'v Verb,
    alone: LoadAlone,
    rows_max: usize,
    cpus: Option<Vec<u32>>,
    clock: Clock,
    interrupt: Interrupt,
}

impl<'v> CheckedLoad<'v> {
    fn of(verb: &'v Verb, clock: Clock, interrupt: Interrupt) -> Result<Self> {
        let text = verb.alone.plan.as_deref().map(|path| Ok((path, plan_text(path)?))).transpose()?;
        let file = text.as_ref().map(|(path, text)| PhasesFile { path, text });
        let alone = LoadAlone::of(&verb.url, file, &verb.load)?;
        series::check_certificates(alone.server.tls.as_ref())?;
        let rows_max = rows_max(verb)?;
        let typed = verb.load.load_cpus.clone().unwrap_or_default();
        let cpus = CpuPlan::new(&Cpus::All, &typed, &cpus::available())?.load;
        Ok(Self { verb, alone, rows_max, cpus, clock, interrupt })
    }

    fn reach(&self) -> Result<Reached> {
        let own = (self.alone.server.host.clone(), self.alone.server.port.unwrap_or_default());
        let (host, port) = self.verb.alone.connect_to.as_ref().unwrap_or(&own);
        trial::reach(host, *port, self.alone.server.socket.as_deref(), &|| self.interrupt.seen())
    }

    fn conditions(&self, reached: &Reached, typed: String) -> LoadConditions {
        let Self { verb, clock, .. } = self;
        LoadConditions {
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            url: verb.url.clone(),
            address: match &reached.address {
                Address::Tcp(address) => address.to_string(),
                Address::Unix(path) => format!("unix:{}", path.display()),
            },
            started: utc(clock.origin_unix_s()),
            machine: series::machine_now(*clock),
            load_cpus: self.cpus.clone(),
            threads: verb.alone.threads.unwrap_or(1),
            seed: self.alone.seed,
            command: typed,
            load: trial::describe_load(&self.alone.load),
        }
    }

    fn loading<'a>(&'a self, reached: &'a Reached) -> Loading<'a> {
        let verb = self.verb;
        Loading {
            reached,
            host: self.alone.server.authority(),
            tls: self.alone.server.tls.clone(),
            load: &self.alone.load,
            seed: self.alone.seed,
            clock: self.clock,
            threads: verb.alone.threads.unwrap_or(1),
            cpus: self.cpus.clone(),
            rows_max: self.rows_max,
            require: &verb.alone.require,
            interrupt: self.interrupt.flag(),
        }
    }
}

fn plan_text(path: &Path) -> Result<String> {
    bounded::text_named(path, scenario::YAML_BYTES_MAX).map_err(|cause| {
        Error::request(format!("cannot read the plan {}: {}", path.display(), crate::error::plain(&cause)))
            .hint("specify a file with the key `load:`, such as a scenario")
    })
}

fn rows_max(verb: &Verb) -> Result<usize> {
    match (verb.files.rows_max, &verb.files.paths.rows) {
        (None, None) => Ok(0),
        (Some(_), None) => Err(Error::request("`--rows-max` has no effect without `--rows`")),
        (Some(most), _) if !(1..=ROWS_MAX_MOST).contains(&most) => {
            Err(Error::request(format!("`--rows-max` is {most}; it must be between 1 and {}", grouped(ROWS_MAX_MOST))))
        }
        (most, Some(_)) => Ok(most.unwrap_or(ROWS_MAX) as usize),
    }
}

/// The files as a sink. Reports only the first failed write; the load continues, and the result is printed.
struct Files {
    files: LoadFiles,
    /// Whether a write failed.
    trouble: bool,
    keeps_rows: bool,
}

impl Files {
    fn take(&mut self, event: &LoadEvent<'_>, clock: Clock, progress: &mut Progress) {
        let files = &mut self.files;
        let done = match event {
            LoadEvent::PhaseStarted { .. } => {
                files.begin(clock.now_ns());
                Ok(())
            }
            LoadEvent::Second { second, times } => files.second(second, times),
            LoadEvent::PhaseEnded { phase, outcome } if is_measured(phase) => {
                files.phase(&PhaseRows { name: &phase.name, open: outcome.response.is_some(), rows: &outcome.rows })
            }
            LoadEvent::PhaseEnded { .. } => Ok(()),
        };
        self.note(done, progress);
        if let (LoadEvent::PhaseEnded { outcome, .. }, true) = (event, self.keeps_rows)
            && (1..outcome.requests).contains(&(outcome.rows.len() as u64))
        {
            let (kept, all) = (grouped(outcome.rows.len() as u64), grouped(outcome.requests));
            progress.step(&format!("rows: a random sample, {kept} of {all} requests (`--rows-max` keeps more)"));
        }
    }

    fn note(&mut self, done: Result<()>, progress: &mut Progress) {
        if let Err(error) = done
            && !std::mem::replace(&mut self.trouble, true)
        {
            progress.warn(&format!("warning: {}; the file is incomplete", error.what));
        }
    }
}

#[derive(Default)]
struct TerminalProgress {
    /// The planned length of the running phase, if it is limited by time, and its start relative to the first phase.
    planned: Option<Span>,
    began_s: Option<f64>,
}

impl TerminalProgress {
    fn show(&mut self, event: &LoadEvent<'_>, progress: &mut Progress) {
        match event {
            LoadEvent::PhaseStarted { phase, description } => {
                progress.step(&format!("{}: {description}", phase.name));
                self.planned = match phase.kind.work().and_then(|work| work.schedule.until()) {
                    Some(Until::Elapsed(span)) => Some(span),
                    Some(Until::Requests(_)) | None => None,
                };
                self.began_s = None;
            }
            LoadEvent::Second { second, .. } => {
                let began_s = *self.began_s.get_or_insert(second.at_s);
                let elapsed_s = second.at_s + second.seconds - began_s;
                progress.live_text(&report::load_line(second, elapsed_s, self.planned));
            }
            LoadEvent::PhaseEnded { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_port() {
        assert_eq!(endpoint("[::1]:80"), Ok(("::1".to_owned(), 80)));
        assert!(endpoint("host").is_err() && endpoint("host:0").is_err() && endpoint(":80").is_err());
    }
}
