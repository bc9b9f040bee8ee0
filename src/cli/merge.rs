//! `loadline merge`: combines the results of a plan's nodes.

use super::console::glyphs;
use super::exit::Code;
use super::exports::{Exports, Shown, is_stdout, write};
use super::session::Call;
use crate::archive;
use crate::error::{Error, Result};
use crate::fleet::{self, Plan, ResultCopies, Standing};
use crate::record::{Document, FleetDocument, LineVerdict, PlanEntry, Task};
use crate::report::export::{self, Format};
use crate::report::{self, Depth, Progress};
use crate::result::{self, AllBlocks, Judgement, JudgementSettings, NodeBlocks};
use clap::Parser;
use std::path::{Component, Path, PathBuf};

/// `loadline merge`
///
/// Reads the plan and every result below the directories; for a comparison, also the archives of its blocks. To include
/// results that arrive later, merge again. The files have a row for each service; `--junit`, `--jmh`, and `--github`
/// are for comparisons.
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES, after_long_help = CODES)]
pub(super) struct Verb {
    /// Directories written by `loadline work --out`, in any order
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Plan file [default: plan.jsonl in or next to one of the directories]
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Write JSON to FILE, or print it instead of the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    depth: Depth,
    #[command(flatten)]
    exports: Exports,
}

const EXAMPLES: &str = "\
Examples:
  loadline merge results
  loadline merge results --json fleet.json --html fleet.html
  loadline merge monday/ tuesday/ --plan plan.jsonl --markdown -";

const CODES: &str = "\
Exit codes:
    0  every entry has a result, and every target is met
    1  a target is missed, a production limit is too low, or a budget is exceeded
    2  invalid request: no plan, an edited plan, or results from a different plan
    4  an entry failed or has no result, or a file cannot be written
  With 0, 1, and 4, the output is printed and the files are written first.";

pub(super) fn run(verb: Verb, Call { typed, clock }: Call) -> Result<Code> {
    verb.exports.check(verb.json.as_deref().is_some_and(is_stdout))?;
    let plan = plan(&verb)?;
    refuse_without_comparison(&verb, &plan)?;
    let mut standing = Standing::of(&plan);
    for found in archive::entry_results(&verb.folders)? {
        match found.result {
            Ok(result) => standing.add(found.path, result)?,
            Err(why) => standing.leave_out(found.path, why),
        }
    }
    let compared = compared(&plan, &mut standing, &typed.to_string())?;
    let passes = compared.as_ref().is_none_or(|compared| compared.passes);
    let (all, document) = compared.map(|compared| (compared.all, compared.document)).unzip();
    let document = fleet::document(&plan, &standing, document, clock.unix_s() as i64);
    show(&verb, &document, all.as_ref())?;
    Ok(code(&document, passes))
}

/// The given plan, or the one next to the results.
fn plan(verb: &Verb) -> Result<Plan> {
    let path = verb.plan.clone().or_else(|| archive::plan_beside(&verb.folders)).ok_or_else(|| {
        Error::request("there is no plan.jsonl in the directories or next to them")
            .hint("specify the plan of these results with `--plan FILE`")
    })?;
    Plan::parse(&archive::plan_text(&path)?).map_err(|error| error.at(path.display().to_string()))
}

/// Formats with a row per service; the others contain comparisons.
const OF_SERVICES: [Format; 4] = [Format::Html, Format::Markdown, Format::Csv, Format::Openmetrics];

/// Rejects files that only a comparison fills.
fn refuse_without_comparison(verb: &Verb, plan: &Plan) -> Result<()> {
    let of_services = plan.entries.iter().all(|entry| !matches!(entry.task, Task::Block { .. }));
    let mut asked = verb.exports.files().filter(|(_, format)| !OF_SERVICES.contains(format));
    let word = asked.next().map(|(_, format)| format.word()).or(verb.exports.github.then_some("github"));
    match word.filter(|_| of_services) {
        Some(word) => {
            Err(Error::request(format!("`--{word}` is only for comparisons, but this is a plan of services"))
                .hint("`--markdown`, `--csv`, and `--openmetrics` have a row for each service"))
        }
        None => Ok(()),
    }
}

/// The combined result of a plan's blocks.
struct Compared {
    all: AllBlocks,
    document: Document,
    passes: bool,
}

/// Reads all blocks' archives and judges them as one comparison; `None` if there are no blocks. Records unreadable
/// archives.
fn compared(plan: &Plan, standing: &mut Standing, typed: &str) -> Result<Option<Compared>> {
    let blocks = |entry: &PlanEntry| match entry.task {
        Task::Block { first, count } => Some((first, count)),
        _ => None,
    };
    let entries: Vec<(&PlanEntry, u32, u32)> =
        plan.entries.iter().filter_map(|entry| blocks(entry).map(|(first, count)| (entry, first, count))).collect();
    let Some((begins, ..)) = entries.iter().min_by_key(|(entry, first, _)| (*first, entry.index)) else {
        return Ok(None);
    };
    if let Some((other, ..)) = entries.iter().find(|(entry, ..)| entry.name != begins.name) {
        return Err(Error::request("the plan has blocks from more than one comparison")
            .at(format!("{} and {}", begins.name, other.name))
            .hint("make a separate plan for each comparison"));
    }
    let planned = entries.iter().map(|(_, first, count)| first.saturating_add(*count)).max().unwrap_or(0);
    let mut nodes = Vec::new();
    for (entry, first, count) in &entries {
        let name = format!("index-{:06}", entry.index);
        while let Some(found) = standing.counts(entry.index) {
            match archives(found) {
                Ok(archives) => {
                    nodes.push(NodeBlocks { name, first: *first, count: *count, archives });
                    break;
                }
                Err(why) => standing.leave_out_of(entry.index, &why),
            }
        }
    }
    let Some(all) = AllBlocks::of(nodes, planned, typed) else { return Ok(None) };
    let judgement = Judgement::of(&begins.scenario, JudgementSettings::default())?;
    let document = judgement.of_blocks(&all);
    let passes = judgement.passes(&document)?;
    Ok(Some(Compared { all, document, passes }))
}

/// The archives of a result, from the first directory that has all of them. Rejects names that lead out of the
/// directory.
fn archives(found: &ResultCopies) -> Result<Vec<(PathBuf, archive::Archive)>, String> {
    let one = |folder: &Path, name: &String| {
        let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let path = folder.join(name);
        let read = if is_below { result::read(&path).ok() } else { None };
        read.map(|archive| (path, archive)).ok_or_else(|| format!("has no archive `{}` to read", name.escape_debug()))
    };
    let all = |folder: &PathBuf| found.result.archives.iter().map(|name| one(folder, name)).collect();
    let tried: Vec<Result<Vec<_>, String>> = found.folders.iter().map(all).collect();
    tried.into_iter().reduce(|first, next| first.or(next)).unwrap_or(Ok(Vec::new()))
}

fn show(verb: &Verb, document: &FleetDocument, all: Option<&AllBlocks>) -> Result<()> {
    let mut progress = Progress::new(false);
    let is_taken = verb.json.as_deref().is_some_and(is_stdout) || verb.exports.on_stdout();
    if !is_taken {
        let text = report::render(&report::summarize_fleet(document, glyphs(), verb.depth));
        report::print(&text)?;
    }
    let first = verb.json.as_ref().map_or(Ok(()), |path| write(path, &report::document(document)));
    let unanswered: Vec<String> =
        report::unanswered(document).into_iter().map(|(what, next)| format!("{what}: {next}")).collect();
    let lacking = all.map(|all| all.missing.clone()).unwrap_or_default();
    if is_taken {
        unanswered.iter().for_each(|what| progress.warn(&format!("warning: {what}")));
    }
    lacking.iter().for_each(|what| progress.warn(&format!("warning: {what}")));
    let comparison = document.comparison.as_deref().filter(|_| document.services.is_empty());
    let written = match comparison.zip(all) {
        None => verb.exports.write_texts(|format| text(document, format), &mut progress),
        Some((of, all)) => {
            let missing = [unanswered, lacking].concat();
            let shown = Shown { document: of, folders: &all.folders, missing: &missing, against: None };
            // These also list the entries' outcomes.
            let is_of_fleet = |format| matches!(format, Format::Markdown | Format::Openmetrics);
            let text = |format| if is_of_fleet(format) { text(document, format) } else { shown.text(format) };
            verb.exports.write_texts(text, &mut progress).and(verb.exports.write_beside(of, &mut progress))
        }
    };
    first.and(written)
}

fn text(document: &FleetDocument, format: Format) -> String {
    let blocks = document.comparison.as_deref();
    let of_blocks = blocks.map(|document| Shown { document, folders: &[], missing: &[], against: None });
    match format {
        Format::Html => report::fleet_page(document),
        Format::Markdown => export::fleet_markdown(document),
        Format::Csv => export::fleet_csv(document),
        Format::Openmetrics => export::fleet_openmetrics(document),
        format => of_blocks.map(|of| of.text(format)).unwrap_or_default(),
    }
}

/// The exit code. Known failures outrank missing results.
fn code(document: &FleetDocument, passes: bool) -> Code {
    let any = |verdict: LineVerdict| document.services.iter().any(|of| of.verdict == verdict);
    let too_small = document.services.iter().any(|of| of.is_below_line());
    let standing = &document.standing;
    match () {
        () if too_small || any(LineVerdict::NotHeld) || !passes => Code::No,
        () if any(LineVerdict::Unknown) || !standing.missing.is_empty() || !standing.failed.is_empty() => Code::Machine,
        () => Code::Yes,
    }
}
