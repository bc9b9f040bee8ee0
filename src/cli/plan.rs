//! `loadline plan`: writes a plan that assigns work to nodes, and an engine's script or manifest for it.

use super::exit::Code;
use super::live::Live;
use super::run;
use super::session::{Call, Output, Session};
use crate::archive::PLAN_BYTES_MAX;
use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::fleet::{self, Estimate, JobSettings, KnownServices, Night, Plan, Searched, Spread, blocks};
use crate::record::PlanEntry;
use crate::report;
use crate::result::{Judgement, JudgementSettings};
use crate::scenario::{FindSettings, Fleet, SEARCH_EVERY, Scenario, Service, parse_fleet};
use crate::series::{BLOCKS, Extent, KnownFiles, search};
use crate::subject::names;
use crate::units::{Span, several, utc};
use clap::Parser;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `loadline plan`
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// Fleet file, one scenario per service, one scenario whose configurations are compared, or a plan
    #[arg(value_name = "FLEET | SCENARIO | PLAN", required = true)]
    what: Vec<PathBuf>,
    /// File to write the plan to; paths in it are relative to its directory [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Time limit per entry, in minutes [default: from the fleet file, or 15; for a comparison, 3x its load time]
    #[arg(long, value_name = "N", value_parser = minutes)]
    minutes: Option<f64>,
    /// Number of nodes: concurrent entries, and entries per comparison
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    /// Total number of blocks in a comparison [default: `trials` of the scenario, or 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    blocks: Option<u32>,
    /// Reuse earlier results: output of `loadline merge --json`, or an earlier plan
    #[arg(long, value_name = "FILE", conflicts_with = "blocks", help_heading = "Earlier results")]
    last: Option<PathBuf>,
    /// Search this service again, even if its limit is known (repeatable)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["blocks", "search_all"], help_heading = "Earlier results")]
    search: Vec<String>,
    /// Search all services again
    #[arg(long, conflicts_with = "blocks", help_heading = "Earlier results")]
    search_all: bool,
    /// Print a Slurm job array script
    #[arg(long, conflicts_with = "kubernetes", help_heading = "Job scripts")]
    slurm: bool,
    /// Print a Kubernetes Indexed Job manifest
    #[arg(long, help_heading = "Job scripts")]
    kubernetes: bool,
    /// Run build steps even if their inputs are unchanged
    #[arg(long)]
    rebuild: bool,
    /// Print no progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  loadline plan fleet.yaml --out plan.jsonl
  loadline plan fleet.yaml --out plan.jsonl --last fleet.json --slurm --nodes 10 > fleet.sbatch
  loadline plan orders.loadline.yaml cart.loadline.yaml --out plan.jsonl
  loadline plan collectors.loadline.yaml --blocks 20 --nodes 10 --out plan.jsonl
  loadline plan plan.jsonl --kubernetes > job.yaml";

fn minutes(text: &str) -> Result<f64, String> {
    let sound = text.parse().ok().filter(|minutes: &f64| *minutes > 0.0 && *minutes <= 525_600.0);
    sound.ok_or_else(|| format!("`{text}` is not a number of minutes; write it as `15`"))
}

/// Digits of a hash in the name of a results directory.
const HASH_SHOWN: usize = 12;
/// Time for a comparison's blocks as a multiple of its load: covers startup, shutdown, and work defined by request
/// counts, whose duration is unknown.
const PATIENCE: f64 = 3.0;

pub(super) fn run(verb: Verb, call: Call) -> Result<Code> {
    let output = Output { quiet: verb.quiet, ..Output::default() };
    let session = Session::new(output, call)?.rebuilding(verb.rebuild);
    let mut live = session.live();
    if (verb.slurm || verb.kubernetes) && verb.out.is_none() && !is_plan(&verb.what) {
        return Err(Error::request("the script is printed to stdout, so the plan needs a file")
            .hint("write the plan to a file that every node can read: `--out plan.jsonl`"));
    }
    let place = Target::of(verb.out.as_deref())?;
    let (plan, file) = match asked(&verb, &session)? {
        PlanInput::Plan(plan, file) => {
            refuse_options(&verb)?;
            (plan, Some(file))
        }
        PlanInput::Fleet(fleet) => (of_fleet(fleet, &verb, &session, &place, &mut live)?, place.file.clone()),
        PlanInput::Comparison(scenario) => {
            (of_blocks(*scenario, &verb, &session, &place, &mut live)?, place.file.clone())
        }
    };
    match &place.file {
        Some(file) => {
            write(file, &plan.text()?)?;
            live.progress.step(&format!("plan: {}", verb.out.as_deref().unwrap_or(file).display()));
        }
        None if !(verb.slurm || verb.kubernetes) => report::print(&plan.text()?)?,
        None => {}
    }
    if let Some(file) = file.filter(|_| verb.slurm || verb.kubernetes) {
        report::print(&of_engine(&verb, &plan, &file)?)?;
    }
    Ok(Code::Yes)
}

enum PlanInput {
    /// An existing plan, with its absolute path.
    Plan(Plan, PathBuf),
    Fleet(Fleet),
    Comparison(Box<Scenario>),
}

struct Target {
    /// The absolute path of the output; `None` means stdout.
    file: Option<PathBuf>,
    /// The absolute directory that the plan's paths are relative to.
    folder: PathBuf,
}

impl Target {
    fn of(out: Option<&Path>) -> Result<Self> {
        let Some(out) = out else { return Ok(Self { file: None, folder: here()? }) };
        let file = absolute(out)?;
        let folder = file.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { file: Some(file), folder })
    }
}

fn here() -> Result<PathBuf> {
    std::env::current_dir().map_err(|cause| Error::machine(format!("no working directory: {}", plain(&cause))))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|cause| Error::request(format!("`{}`: {}", path.display(), plain(&cause))))
}

fn read(path: &Path) -> Result<String> {
    let cannot = |cause| Error::request(format!("cannot read {}: {}", path.display(), plain(&cause)));
    bounded::text_named(path, PLAN_BYTES_MAX).map_err(cannot)
}

fn is_plan(what: &[PathBuf]) -> bool {
    matches!(what, [file] if !is_scenario_name(file) && read(file).is_ok_and(|text| text.starts_with('{')))
}

fn is_scenario_name(file: &Path) -> bool {
    file.is_dir() || file.to_string_lossy().ends_with(run::SUFFIX)
}

/// Only scenarios have a subject; fleets do not.
fn is_scenario(file: &Path) -> Result<bool> {
    Ok(is_scenario_name(file) || read(file)?.lines().any(|line| line.starts_with("subject:")))
}

fn asked(verb: &Verb, session: &Session) -> Result<PlanInput> {
    let at = |file: &Path| format!("file: {}", file.display());
    let releases = session.releases();
    if let [file] = verb.what.as_slice() {
        if is_plan(&verb.what) {
            let plan = Plan::parse(&read(file)?).map_err(|error| error.at(at(file)))?;
            return Ok(PlanInput::Plan(plan, absolute(file)?));
        }
        if !is_scenario(file)? {
            let base = file.parent().unwrap_or(Path::new(""));
            let scenario = &mut |named: &Path| run::load(named, &releases);
            let fleet = parse_fleet(&read(file)?, base, scenario).map_err(|error| error.at(at(file)))?;
            return of_services(verb, fleet);
        }
        let scenario = run::load(file, &releases)?;
        if scenario.configurations.len() > 1 || verb.blocks.is_some() {
            return Ok(PlanInput::Comparison(Box::new(scenario)));
        }
    }
    let service = |file: &PathBuf| match is_scenario(file)? {
        true => run::load(file, &releases).map(|scenario| Service::new(&scenario.name.clone(), scenario)),
        false => {
            Err(Error::request(format!("{} is not a scenario, and only scenarios can be combined", file.display()))
                .hint("specify either one fleet file or scenarios"))
        }
    };
    let services = verb.what.iter().map(service).collect::<Result<Vec<_>>>()?;
    let name = match services.as_slice() {
        [one] => one.name.clone(),
        _ => "fleet".to_owned(),
    };
    of_services(verb, Fleet { name, services, search_every: SEARCH_EVERY })
}

fn of_services(verb: &Verb, fleet: Fleet) -> Result<PlanInput> {
    if verb.blocks.is_some() {
        return Err(Error::request("`--blocks` would have no effect: these are services, not a comparison")
            .hint("specify one scenario with several configurations"));
    }
    fleet.validate()?;
    Ok(PlanInput::Fleet(fleet))
}

/// Rejects options that do not apply: an existing plan can only be turned into a script.
fn refuse_options(verb: &Verb) -> Result<()> {
    let idle = [
        ("--out", verb.out.is_some()),
        ("--minutes", verb.minutes.is_some()),
        ("--blocks", verb.blocks.is_some()),
        ("--last", verb.last.is_some()),
        ("--search", !verb.search.is_empty()),
        ("--search-all", verb.search_all),
        ("--rebuild", verb.rebuild),
    ];
    if let Some((option, _)) = idle.into_iter().find(|(_, typed)| *typed) {
        return Err(Error::request(format!("`{option}` would have no effect: an existing plan is not changed"))
            .hint("make a new plan from the fleet file or the scenarios"));
    }
    match verb.slurm || verb.kubernetes {
        true => Ok(()),
        false => {
            Err(Error::request("this is already a plan").hint("add `--slurm` or `--kubernetes` to print a script"))
        }
    }
}

/// A plan of services: decides which lines to confirm and which to search for.
fn of_fleet(mut fleet: Fleet, verb: &Verb, session: &Session, place: &Target, live: &mut Live) -> Result<Plan> {
    let searched = if verb.search_all { Searched::All } else { Searched::Named(verb.search.clone()) };
    searched.check(&fleet)?;
    let known = match &verb.last {
        None => KnownServices::default(),
        Some(file) => {
            KnownServices::parse(&read(file)?).map_err(|error| error.at(format!("file: {}", file.display())))?
        }
    };
    let gone: Vec<String> = known.tell(&mut fleet).into_iter().map(str::to_owned).collect();
    if let Some(first) = gone.first() {
        let others = if gone.len() > 1 { format!(" and {} more", gone.len() - 1) } else { String::new() };
        live.progress.step(&format!("in the earlier results, but not in this fleet: {first}{others}"));
    }
    let made = utc(session.clock.origin_unix_s());
    let night = Night { folder: &place.folder, made: &made, search_every: fleet.search_every, search: &searched };
    let (here, mut files, mut entries) = (here()?, KnownFiles::default(), Vec::with_capacity(fleet.services.len()));
    for mut service in fleet.services {
        let at = |error: Error| error.at(format!("service: {}", service.name));
        let mut scenario = service.scenario.put_into(&here);
        search::settle(&mut scenario, FindSettings::default()).map_err(at)?;
        service.scenario = session.seal(&scenario, &mut files, live).map_err(at)?;
        if let Some(minutes) = verb.minutes {
            service.within = Span(Duration::from_secs_f64(minutes * 60.0));
        }
        entries.push(night.entry(service)?);
    }
    let estimate = Estimate::of(&entries, &known);
    live.progress.step(&estimate.to_string());
    live.progress.step(&estimate.on(verb.nodes.unwrap_or(1)));
    say_outside(&entries, live);
    Plan::new(&fleet.name, made, entries)
}

/// A plan of a comparison, with blocks for each node.
fn of_blocks(scenario: Scenario, verb: &Verb, session: &Session, place: &Target, live: &mut Live) -> Result<Plan> {
    let idle = [("--last", verb.last.is_some()), ("--search", verb.search_all || !verb.search.is_empty())];
    if let Some((option, _)) = idle.into_iter().find(|(_, typed)| *typed) {
        return Err(Error::request(format!("`{option}` would have no effect: configurations are compared"))
            .hint("for a fleet, use a scenario with one configuration, or choose one: `only: NAME`"));
    }
    let mut scenario = scenario.put_into(&here()?);
    if scenario.configurations.len() < 2 {
        return Err(Error::request("there is only one configuration, and nothing to compare it with")
            .hint("add a second one to the scenario, or omit `--blocks` to search for its load line"));
    }
    let usual = if scenario.trials == 1 { BLOCKS } else { scenario.trials };
    scenario.trials = verb.blocks.unwrap_or(usual);
    scenario.validate()?;
    Judgement::of(&scenario, JudgementSettings::default())?.check_metrics(&scenario, &scenario.marks)?;
    Judgement::check_figures(&scenario)?;
    if scenario.compare.until_sure.is_some() || scenario.compare.repeats > 0 {
        live.progress.step("`until_sure` and `repeats` are ignored: a node cannot see the blocks of other nodes");
    }
    let scenario = session.seal(&scenario, &mut KnownFiles::default(), live)?;
    let (total, nodes) = (scenario.trials, verb.nodes.unwrap_or(scenario.trials).min(scenario.trials));
    let extent = Extent::of(&Scenario { trials: total.div_ceil(nodes), ..scenario.clone() });
    let usual = (extent.minutes() * PATIENCE).ceil().max(crate::scenario::WITHIN.as_s() / 60.0);
    let spread = Spread { blocks: total, nodes, minutes: verb.minutes.unwrap_or(usual) };
    let entries = blocks(&scenario, &place.folder, spread)?;
    live.progress.step(&format!("{} over {}", Extent::of(&scenario), several(nodes.into(), "node")));
    say_outside(&entries, live);
    Plan::new(&scenario.name, utc(session.clock.origin_unix_s()), entries)
}

/// Lists files that the plan references outside its directory.
fn say_outside(entries: &[PlanEntry], live: &mut Live) {
    if let Some(first) = entries.iter().find_map(|entry| entry.scenario.path_outside()) {
        live.progress.step(&format!(
            "every node needs the files outside the plan's directory at the same paths, such as {}",
            first.display()
        ));
    }
}

/// Writes a temporary file first, because nodes may read the existing one.
fn write(file: &Path, text: &str) -> Result<()> {
    // In a shared directory, another user could place a link at a predictable name.
    let new = file.with_extension(format!("{}.new", names::random()));
    let made = File::create_new(&new).and_then(|mut file| file.write_all(text.as_bytes()));
    let written = made.and_then(|()| std::fs::rename(&new, file));
    written.map_err(|cause| {
        // A partial file is useless.
        let _ = std::fs::remove_file(&new);
        Error::io("write", file, &cause)
    })
}

fn of_engine(verb: &Verb, plan: &Plan, file: &Path) -> Result<String> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| Error::request(format!("the path `{}` is not valid text", path.display())))
    };
    let short: String = plan.header.hash.chars().take(HASH_SHOWN).collect();
    let results = PathBuf::from(format!("results-{short}"));
    let (plan_file, results) = match verb.slurm {
        true => (text(file)?, text(&file.with_file_name(results))?),
        false => (text(Path::new(file.file_name().unwrap_or_default()))?, text(&results)?),
    };
    let job = JobSettings { plan: &plan_file, results: &results, nodes: verb.nodes };
    Ok(if verb.slurm { fleet::slurm(plan, &job) } else { fleet::kubernetes(plan, &job) })
}
