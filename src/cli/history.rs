//! `loadline history`: how metrics changed over many archives.

use super::exit::Code;
use super::exports::{Exports, is_stdout, write};
use super::session::Call;
use crate::archive::run_files;
use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::record::HistoryDocument;
use crate::report::export::{self, Format};
use crate::report::{self, Progress};
use crate::result::{Commits, History, HistoryAsked};
use clap::Parser;
use std::fs::File;
use std::path::{Path, PathBuf};

/// `loadline history`
///
/// Reads archives and files that `--json` printed, and tracks each configuration of each scenario separately. Shows the
/// center and interval of each metric at each point, changes confirmed by trials on both sides, gradual growth, and the
/// owners that changed. If the JDK, the machine, or the load changed at the same point, reports that and blames no
/// commit.
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {
    /// Archives, directories of archives, or result documents
    #[arg(value_name = "DIR", required = true)]
    places: Vec<PathBuf>,
    #[command(flatten)]
    asked: HistoryAsked,
    /// File of commits, oldest first, as printed by `git log --reverse --format='%H %s'`; `-` reads stdin [default:
    /// order archives by date]
    #[arg(long, value_name = "FILE")]
    commits: Option<PathBuf>,
    /// Show every point, not just the latest and those with a change
    #[arg(long, help_heading = "Output")]
    each: bool,
    /// Write JSON to FILE, or print it instead of the summary
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Write a self-contained HTML report with charts
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    html: Option<PathBuf>,
    /// Write the history as Markdown
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    markdown: Option<PathBuf>,
    /// Write a CSV row for each metric at each point
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    csv: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  loadline history loadline-archive
  loadline history nightly/ --metric rss.loaded,p99 --html history.html
  git log --reverse --format='%H %s' | loadline history nightly/ --commits -";

/// A million commits with their subject lines.
const COMMITS_BYTES_MAX: u64 = 128 << 20;

pub(super) fn run(verb: Verb, _: Call) -> Result<Code> {
    let Verb { html, markdown, csv, .. } = &verb;
    let files = [(html, Format::Html), (markdown, Format::Markdown), (csv, Format::Csv)];
    let exports = Exports::of(files.map(|(path, format)| (path.clone(), format)));
    let printed = verb.json.as_deref().is_some_and(is_stdout);
    exports.check(printed)?;
    let commits = verb.commits.as_deref().map_or(Ok(Commits::default()), commits)?;
    let mut history = History::of(HistoryAsked { commits, ..verb.asked.clone() });
    let files = run_files(&verb.places)?;
    if files.is_empty() {
        let places: Vec<String> = verb.places.iter().map(|place| place.display().to_string()).collect();
        return Err(Error::request(format!("there is no archive in {}", places.join(", ")))
            .hint("an archive is a directory with `archive.jsonl`; `loadline weigh --out DIR` creates one"));
    }
    for file in files {
        let name = file.path.display().to_string();
        match file.read() {
            Err(error) => history.leave_out(format!("{name} cannot be read: {}", error.what)),
            Ok(run) => {
                run.missing.iter().for_each(|what| history.leave_out(format!("of {name}: {what}")));
                let figures = run.scenario.map(|scenario| scenario.figures).unwrap_or_default();
                history.add(&name, &run.conditions, run.trials, &figures);
            }
        }
    }
    show(&verb, &history.document()?, &exports)?;
    Ok(Code::Yes)
}

fn show(verb: &Verb, document: &HistoryDocument, exports: &Exports) -> Result<()> {
    let mut progress = Progress::new(false);
    if verb.json.as_deref().is_some_and(is_stdout) || exports.on_stdout() {
        document.left_out.iter().for_each(|what| progress.warn(&format!("warning: skipped: {what}")));
    } else {
        let text = report::render(&report::summarize_history(document, verb.each));
        report::print(&text)?;
    }
    let first = verb.json.as_ref().map_or(Ok(()), |path| write(path, &report::document(document)));
    let text = |format| match format {
        Format::Html => report::history_page(document),
        Format::Markdown => export::history_markdown(document),
        Format::Csv => export::history_csv(document),
        // `history` has no options for other formats.
        _ => String::new(),
    };
    first.and(exports.write_texts(text, &mut progress))
}

fn commits(path: &Path) -> Result<Commits> {
    let refuse = |what: String| {
        Error::request(format!("the list of commits {} {what}", path.display()))
            .hint("create one with `git log --reverse --format='%H %s'`")
    };
    let read = match is_stdout(path) {
        true => bounded::bytes_of(std::io::stdin().lock(), COMMITS_BYTES_MAX),
        false => File::open(path).and_then(|file| bounded::bytes_of(file, COMMITS_BYTES_MAX)),
    };
    let bytes = read.map_err(|cause| refuse(format!("cannot be read: {}", plain(&cause))))?;
    let commits = Commits::parse(&String::from_utf8_lossy(&bytes));
    if commits.is_empty() { Err(refuse("is empty".to_owned())) } else { Ok(commits) }
}
