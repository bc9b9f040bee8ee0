//! Trials on disk: a directory with `archive.jsonl` (one line for the run, one per finished trial, a closing line) and,
//! per trial, a directory with its timeline, histograms, requests, and log. Versioned, append-only, and written as
//! events happen: a crash or a full disk costs only the running trial. Also contains the output files of `loadline
//! load`, and the readers of account files and fleet results.

mod account_file;
mod entry_results;
mod evidence;
mod evidence_times;
mod histogram_counts;
mod histograms;
mod lines;
mod load_files;
mod read;
mod requests;
mod runs;
mod thinned;
mod whole_file;
mod write;

pub use account_file::{read_accounts, write_account};
pub(crate) use entry_results::{ENTRY_BYTES_MAX, ENTRY_RESULT};
pub use entry_results::{EntryFolder, PLAN_BYTES_MAX, entry_results, plan_beside, plan_text};
pub use evidence::evidence;
pub use load_files::{LoadFiles, LoadPaths, PhaseRows};
pub use read::{Archive, is_one, read};
pub use requests::{Requests, requests};
pub use runs::{RunFile, RunKind, RunRead, run_files};
pub use write::{TrialFiles, Writer, holds_trials, remove_unbegun};

use crate::record::{Conditions, Trial};
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// The schema of `archive.jsonl`, without the version.
const SCHEMA_NAME: &str = "loadline.archive/";
/// The only version written and read: version 1 is from before 0.1.0 and has other names.
const SCHEMA_VERSION: u32 = 2;
/// The file that makes a directory an archive.
pub const INDEX: &str = "archive.jsonl";

/// The directory of a trial. Accepts only a plain name, because an archive may come from anywhere.
fn trial_folder(archive: &Path, trial: &Trial) -> Option<PathBuf> {
    let folder = if archive.is_dir() { archive } else { archive.parent()? };
    let name = Path::new(trial.folder.as_ref()?);
    let mut parts = name.components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)).then(|| folder.join(name))
}

/// A line of `archive.jsonl`. `read` parses it in two steps.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum IndexLine {
    /// First line.
    Header(Box<Header>),
    /// A finished trial, in the order of completion.
    Trial(Box<Trial>),
    /// Last line; missing if Loadline was killed.
    Closed(Closed),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Header {
    schema: String,
    conditions: Conditions,
    scenario: Scenario,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Closed {
    #[serde(default)]
    trials: u32,
    interrupted: bool,
}
