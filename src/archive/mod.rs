//! Trials on disk: a folder with `archive.jsonl` (a line for the run, a line for each finished trial, a closing line)
//! and a folder for each trial with its timeline, histograms, requests and the subject's log. Versioned, append-only,
//! written as things happen: a crash or a full disk costs the running trial and nothing else. The output files of
//! `loadline load` are here too, and the readers of accounts and of a fleet's answers in files.

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

/// Schema of `archive.jsonl`, without its version.
const SCHEMA_NAME: &str = "loadline.archive/";
/// Version written, and the only one that is read: version 1 is from before 0.1.0 and had other words.
const SCHEMA_VERSION: u32 = 2;
/// Name of the file that makes a folder an archive.
pub const INDEX: &str = "archive.jsonl";

/// The folder of a trial. Only a plain name is believed: an archive may come from anywhere.
fn trial_folder(archive: &Path, trial: &Trial) -> Option<PathBuf> {
    let folder = if archive.is_dir() { archive } else { archive.parent()? };
    let name = Path::new(trial.folder.as_ref()?);
    let mut parts = name.components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)).then(|| folder.join(name))
}

/// One line of `archive.jsonl`. `read` reads a line in two steps.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum IndexLine {
    /// First line.
    Header(Box<Header>),
    /// A finished trial, in the order they finished.
    Trial(Box<Trial>),
    /// Last line; absent when Loadline itself was killed.
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
