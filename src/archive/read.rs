//! Reads an archive, even if it was cut short; rejects other versions.

use super::{Header, INDEX, IndexLine, SCHEMA_NAME, SCHEMA_VERSION};
use crate::bounded;
use crate::error::{Error, Result};
use crate::record::{Conditions, Trial};
use crate::scenario::Scenario;
use crate::units::several;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// More than 10,000 trials of 100 KB.
pub(super) const INDEX_BYTES_MAX: u64 = 1 << 30;

/// An archive in memory.
#[derive(Debug, Clone)]
pub struct Archive {
    /// The conditions of all trials.
    pub conditions: Conditions,
    /// The requested scenario.
    pub scenario: Scenario,
    /// Finished trials in execution order.
    pub trials: Vec<Trial>,
    /// Missing parts with reasons; empty for a complete archive.
    pub missing: Vec<String>,
}

/// Reads the archive in a directory (or the `archive.jsonl` itself). Errors: `Request` if there is no archive, its
/// header is unreadable, or it has a different version.
pub fn read(path: &Path) -> Result<Archive> {
    let index = index_of(path);
    let text = bounded::bytes(&index, INDEX_BYTES_MAX).map_err(|cause| {
        Error::request(format!("no archive at {}: {}", path.display(), crate::error::plain(&cause))).hint(IS_ARCHIVE)
    })?;
    parse(&String::from_utf8_lossy(&text)).map_err(|error| error.at(index.display().to_string()))
}

/// Whether a directory is an archive.
pub fn is_one(folder: &Path) -> bool {
    folder.join(INDEX).is_file()
}

fn index_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(INDEX) } else { path.to_owned() }
}

/// Parses the text of `archive.jsonl`.
fn parse(text: &str) -> Result<Archive> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or("");
    check_version(first)?;
    let Ok(IndexLine::Header(header)) = read_line(first) else {
        return Err(Error::request("the first line of the archive is damaged")
            .hint("measure again; the archive cannot be read without this line"));
    };
    let Header { conditions, scenario, .. } = *header;
    let mut archive = Archive { conditions, scenario, trials: Vec::new(), missing: Vec::new() };
    // A continued archive has several closing lines; the last one counts.
    let mut closed = None;
    for (number, line) in (2..).zip(lines) {
        let missing = match read_line(line) {
            Ok(IndexLine::Trial(trial)) => {
                archive.trials.push(*trial);
                closed = None;
                continue;
            }
            Ok(IndexLine::Closed(last)) => {
                closed = Some(last);
                continue;
            }
            // A search that was given more time.
            Ok(IndexLine::Header(again)) => {
                archive.scenario = again.scenario;
                continue;
            }
            Err(_) if !line.ends_with('\n') => format!("line {number} is truncated, so its trial is lost"),
            Err(cause) => format!("line {number} is damaged and was skipped: {cause}"),
        };
        archive.missing.push(missing);
    }
    match (closed, archive.trials.len()) {
        (Some(closed), _) if closed.interrupted => archive.missing.push("the run was interrupted".to_owned()),
        (Some(_), _) => {}
        (None, count) => {
            let trials = several(count as u64, "trial");
            archive.missing.push(format!("the archive has no closing line, so the run was cut off after {trials}"));
        }
    }
    Ok(archive)
}

/// Reads the tag, then the rest, because serde cannot read numeric keys (`wrong_statuses`) inside an internally tagged
/// enum.
fn read_line(text: &str) -> serde_json::Result<IndexLine> {
    // Records are always parsed from bytes: each additional source type would compile all deserializers again.
    let text = text.as_bytes();
    #[derive(Deserialize)]
    struct Tag {
        record: RecordKind,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum RecordKind {
        Header,
        Trial,
        Closed,
    }
    Ok(match serde_json::from_slice::<Tag>(text)?.record {
        RecordKind::Header => IndexLine::Header(serde_json::from_slice(text)?),
        RecordKind::Trial => IndexLine::Trial(serde_json::from_slice(text)?),
        RecordKind::Closed => IndexLine::Closed(serde_json::from_slice(text)?),
    })
}

/// The hint if a path is not an archive.
const IS_ARCHIVE: &str =
    "specify the archive directory, which `loadline weigh` and `loadline run` print on their last line";

/// An older or newer version may use the same words with different meanings; rejecting it is better than misreading it.
fn check_version(first: &str) -> Result<()> {
    let header: serde_json::Value = serde_json::from_str(first).map_err(|_| {
        Error::request("this is not a Loadline archive: its first line is not a header").hint(IS_ARCHIVE)
    })?;
    let schema = header.get("schema").and_then(|schema| schema.as_str()).unwrap_or("");
    let version = schema.strip_prefix(SCHEMA_NAME).and_then(|version| version.parse::<u32>().ok());
    match version {
        Some(SCHEMA_VERSION) => Ok(()),
        Some(older) if older < SCHEMA_VERSION => Err(Error::request(format!(
            "the archive has version {older}, from before Loadline 0.1.0; this release reads version {SCHEMA_VERSION}"
        ))
        .hint("measure again, or use the Loadline version that wrote it")),
        Some(version) => Err(Error::request(format!(
            "the archive has version {version}; this release reads version {SCHEMA_VERSION}"
        ))
        .hint("update Loadline")),
        None => {
            Err(Error::request(format!("this is not a Loadline archive: its schema is `{schema}`")).hint(IS_ARCHIVE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PhaseRecord;

    #[test]
    fn a_trial_with_wrong_statuses_reads_back() {
        let wrong_statuses = [(404, 3), (503, 1)].into();
        let mut trial = Trial::new("g1", 0, 0);
        trial.phases.push(PhaseRecord { wrong_statuses, ..PhaseRecord::default() });
        let text = serde_json::to_string(&IndexLine::Trial(Box::new(trial.clone()))).unwrap();
        let IndexLine::Trial(back) = read_line(&text).unwrap() else { panic!("{text}") };
        assert_eq!(*back, trial);
    }
}
