//! Trials on disk: a folder with `archive.jsonl` (a line for the run, a line for each finished trial, a closing line)
//! and a folder for each trial with its timeline, histograms and the subject's log. Versioned, append-only, written
//! as things happen: a crash or a full disk costs the running trial and nothing else. The files of `loadline load` too.

mod histograms;
mod load_files;
mod percentiles;
mod read;
mod write;

pub use histograms::IntervalTimes;
pub use load_files::{LoadFiles, LoadPaths, MeasuredPhase, PhaseTimes};
pub use read::{Archive, read};
pub use write::{TrialFiles, Writer};

use crate::record::{Conditions, Trial};
use crate::scenario::Scenario;
use serde::Serialize;

/// Schema of `archive.jsonl`, without its version.
const SCHEMA_NAME: &str = "loadline.archive/";
/// Version written; every version up to it can be read.
const SCHEMA_VERSION: u32 = 1;
/// Name of the file that makes a folder an archive.
pub const INDEX: &str = "archive.jsonl";

/// One line of `archive.jsonl`, as it is written. `read` reads it in two steps.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line {
    /// First line.
    Header { schema: String, conditions: Box<Conditions>, scenario: Box<Scenario> },
    /// A finished trial, in the order they finished.
    Trial(Box<Trial>),
    /// Last line; absent when Loadline itself was killed.
    Closed { trials: u32, interrupted: bool },
}
