//! Arguments for merging: the verb `merge`.

use super::args_compare::{Exports, View};
use clap::Parser;
use std::path::PathBuf;

/// `loadline merge`
///
/// Reads the plan and every result below the folders, and nothing else of services; of a comparison, the archives of
/// its blocks. Merging again when more results came gives the document of all. The files have a row for each service;
/// `--junit`, `--jmh` and `--github` are for comparisons.
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES, after_long_help = CODES)]
pub(super) struct Merge {
    /// Folders that `loadline work --out` wrote into, in any order
    #[arg(value_name = "DIR", required = true)]
    pub(super) folders: Vec<PathBuf>,
    /// The plan [default: plan.jsonl in one of the folders, or beside it]
    #[arg(long, value_name = "FILE")]
    pub(super) plan: Option<PathBuf>,
    /// Write the document into FILE, or print it instead of the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(super) json: Option<PathBuf>,
    #[command(flatten)]
    pub(super) view: View,
    #[command(flatten)]
    pub(super) exports: Exports,
}

const EXAMPLES: &str = "\
Examples:
  loadline merge results
  loadline merge results --json fleet.json --html fleet.html
  loadline merge monday/ tuesday/ --plan plan.jsonl --markdown -";

const CODES: &str = "\
Exit codes:
    0  every entry has an answer, and every target holds
    1  a target does not hold, a limit of production is below its line, or a budget is broken
    2  the request is wrong: no plan, an edited one, or results of another
    4  an entry has no result, or one without an answer; or a file cannot be written
  The document is printed and the files are written before any of 0, 1 and these 4.";
