//! Reads an archive, also one that was cut short; refuses one from a newer version.

use super::{INDEX, Line, SCHEMA_NAME, SCHEMA_VERSION};
use crate::error::{Error, Result};
use crate::record::{Conditions, Trial};
use crate::scenario::Scenario;
use std::path::{Path, PathBuf};

/// An archive in memory.
#[derive(Debug, Clone)]
pub struct Archive {
    /// What held for every trial.
    pub conditions: Conditions,
    /// What was asked.
    pub scenario: Scenario,
    /// Finished trials in the order they ran.
    pub trials: Vec<Trial>,
    /// What is missing and why, in words; empty for a whole archive.
    pub missing: Vec<String>,
}

/// Reads the archive in a folder (or the `archive.jsonl` itself).
///
/// # Errors
/// `Request` where there is no archive, its header is unreadable or its version newer than this program's.
pub fn read(path: &Path) -> Result<Archive> {
    let index = index_of(path);
    let text = std::fs::read(&index).map_err(|cause| {
        Error::request(format!("no archive at {}: {}", path.display(), crate::error::plain(&cause)))
            .hint("give the folder that `loadline weigh` or `loadline run` named in its last line")
    })?;
    parse(&String::from_utf8_lossy(&text)).map_err(|error| error.at(index.display().to_string()))
}

fn index_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(INDEX) } else { path.to_owned() }
}

/// Parses the text of `archive.jsonl`.
fn parse(text: &str) -> Result<Archive> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or("");
    check_version(first)?;
    let Ok(Line::Header { conditions, scenario, .. }) = serde_json::from_str(first) else {
        return Err(Error::request("the first line of the archive is damaged").hint("nothing can be read without it"));
    };
    let mut archive = Archive { conditions: *conditions, scenario: *scenario, trials: Vec::new(), missing: Vec::new() };
    let mut closed = false;
    for (number, line) in lines.enumerate() {
        closed |= take(&mut archive, number + 2, line);
    }
    if !closed {
        let trials = archive.trials.len();
        archive.missing.push(format!("the archive has no closing line: the run was cut off after {trials} trials"));
    }
    Ok(archive)
}

/// Takes one line in; true for the closing one.
fn take(archive: &mut Archive, number: usize, line: &str) -> bool {
    match serde_json::from_str(line) {
        Ok(Line::Trial(trial)) => archive.trials.push(*trial),
        Ok(Line::Closed { interrupted, .. }) => {
            if interrupted {
                archive.missing.push("the run was interrupted".to_owned());
            }
            return true;
        }
        Ok(Line::Header { .. }) => archive.missing.push(format!("line {number} is a second header and was left out")),
        Err(_) if !line.ends_with('\n') => {
            archive.missing.push(format!("line {number} is cut short: its trial is lost"))
        }
        Err(cause) => archive.missing.push(format!("line {number} is damaged and was left out: {cause}")),
    }
    false
}

/// A newer version may mean things this one does not know; better to refuse than to misread.
fn check_version(first: &str) -> Result<()> {
    let header: serde_json::Value = serde_json::from_str(first)
        .map_err(|_| Error::request("this is not an archive of Loadline: its first line is not a header"))?;
    let schema = header.get("schema").and_then(|schema| schema.as_str()).unwrap_or("");
    let version = schema.strip_prefix(SCHEMA_NAME).and_then(|version| version.parse::<u32>().ok());
    match version {
        Some(version) if version <= SCHEMA_VERSION => Ok(()),
        Some(version) => Err(Error::request(format!(
            "the archive has version {version}; this Loadline reads up to version {SCHEMA_VERSION}"
        ))
        .hint("read it with a newer Loadline")),
        None => Err(Error::request(format!("this is not an archive of Loadline: its schema is `{schema}`"))),
    }
}
