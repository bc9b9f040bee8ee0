//! Writes an archive line by line, accessible only to this user.

use super::histograms::HistogramLog;
use super::read::INDEX_BYTES_MAX;
use super::requests::{self, Common, RequestFile};
use super::{Closed, Header, INDEX, IndexLine, SCHEMA_NAME, SCHEMA_VERSION};
use crate::bounded;
use crate::error::{Error, Result};
use crate::kernel::private_file;
use crate::locked::Locked;
use crate::record::{Conditions, IntervalTimes, Outcome, PhaseRecord, Row, Sample, Trial};
use crate::scenario::Scenario;
use crate::units::several;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A placeholder that is deleted when the disk is full, so that timelines and logs cannot use up the space for a
/// trial's own line.
const RESERVE: &str = ".reserve";
/// Enough for a trial with native memory and an account at every mark (about 100 KiB), and the closing line.
const RESERVE_BYTES: usize = 256 << 10;

/// Writes an archive.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    /// Locked, because a second writer would overwrite lines.
    index: Locked,
    /// The length of all complete lines.
    index_bytes: u64,
    trials: u32,
    trial_folders: Vec<PathBuf>,
}

impl Writer {
    /// Creates the directory and the first line. Errors: `Request` if the directory already contains an archive;
    /// `Machine` if it cannot be written.
    pub fn create(folder: &Path, conditions: &Conditions, scenario: &Scenario) -> Result<Self> {
        private_file::create_folders(folder).map_err(|cause| Error::io("create", folder, &cause))?;
        let path = folder.join(INDEX);
        let index = private_file::options().create_new(true).open(&path).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::AlreadyExists => {
                let is_empty = super::read(folder)
                    .is_ok_and(|of| of.trials.iter().all(|trial| trial.outcome != Outcome::Completed));
                let hint = match is_empty {
                    true => "it has no completed trial: delete it, or choose another directory with `--out DIR`",
                    false => "choose another directory with `--out DIR`; archives are never overwritten",
                };
                Error::request(format!("{} already contains an archive", folder.display())).hint(hint)
            }
            _ => Error::io("create", &path, &cause),
        })?;
        let index = lock(index, folder)?;
        let mut writer =
            Self { folder: folder.to_owned(), index, index_bytes: 0, trials: 0, trial_folders: Vec::new() };
        writer.begin(conditions, scenario)?;
        // A disk too full for the reserve is too full for the run, which will report it.
        let reserved = private_file::create(&folder.join(RESERVE));
        if reserved.and_then(|mut file| file.write_all(&vec![b' '; RESERVE_BYTES])).is_err() {
            let _ = std::fs::remove_file(folder.join(RESERVE));
        }
        Ok(writer)
    }

    /// Writes the conditions of all subsequent trials.
    pub fn begin(&mut self, conditions: &Conditions, scenario: &Scenario) -> Result<()> {
        self.append(&IndexLine::Header(Box::new(Header {
            schema: format!("{SCHEMA_NAME}{SCHEMA_VERSION}"),
            conditions: conditions.clone(),
            scenario: scenario.clone(),
        })))
    }

    /// Opens an archive to continue after `trials` trials; drops an incomplete line. Errors: `Request` if another
    /// Loadline is writing to it, or has done so since `trials` was counted; `Machine` if it cannot be written.
    pub fn reopen(folder: &Path, trials: u32) -> Result<Self> {
        let path = folder.join(INDEX);
        let fails = |cause: std::io::Error| Error::io("write", &path, &cause);
        let index = private_file::options().open(&path).map_err(fails)?;
        // Locked before reading, so that no lines are added in between.
        let mut index = lock(index, folder)?;
        let text = bounded::bytes(&path, INDEX_BYTES_MAX).map_err(|cause| Error::io("read", &path, &cause))?;
        let there = text.split_inclusive(|byte| *byte == b'\n').filter(|line| is_whole_trial(line)).count();
        if there > trials as usize {
            return Err(Error::request(format!(
                "{} has {}, but had {trials} when it was read: another Loadline process added to it",
                folder.display(),
                several(there as u64, "trial")
            ))
            .hint("rerun the command to continue from there"));
        }
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
        index.set_len(whole).map_err(fails)?;
        index.seek(SeekFrom::Start(whole)).map_err(fails)?;
        Ok(Self { folder: folder.to_owned(), index, index_bytes: whole, trials, trial_folders: Vec::new() })
    }

    /// The directory of the archive.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the directory of a trial.
    pub fn trial(&mut self, index: u32, configuration: &str) -> Result<TrialFiles> {
        let name = format!("trial-{:03}-{configuration}", index + 1);
        self.trial_folders.push(self.folder.join(&name));
        TrialFiles::create(self.folder.join(&name), name)
    }

    /// Appends a finished trial.
    pub fn finished(&mut self, trial: &Trial) -> Result<()> {
        self.trials += 1;
        self.append(&IndexLine::Trial(Box::new(trial.clone())))
    }

    /// Removes everything written, and the directory if that leaves it empty.
    pub fn discard(self) {
        // Leftover files do not justify another error.
        for folder in &self.trial_folders {
            let _ = std::fs::remove_dir_all(folder);
        }
        let _ = std::fs::remove_file(self.folder.join(RESERVE));
        let _ = std::fs::remove_file(self.folder.join(INDEX));
        let _ = std::fs::remove_dir(&self.folder);
    }

    /// Writes the closing line and syncs to disk.
    pub fn close(mut self, interrupted: bool) -> Result<()> {
        self.append(&IndexLine::Closed(Closed { trials: self.trials, interrupted }))?;
        // The reserve may already have been used.
        let _ = std::fs::remove_file(self.folder.join(RESERVE));
        self.index.sync_all().map_err(|cause| Error::io("write", self.folder.join(INDEX), &cause))
    }

    /// Uses one write for the line, so that it is complete or recognizably truncated.
    fn append(&mut self, line: &IndexLine) -> Result<()> {
        let mut text =
            serde_json::to_vec(line).map_err(|cause| Error::bug(format!("cannot encode a line: {cause}")))?;
        text.push(b'\n');
        let written = match self.index.write_all(&text) {
            Err(full) if full.kind() == ErrorKind::StorageFull => self.append_with_reserve(&text, full),
            done => done,
        };
        written
            .map(|()| self.index_bytes += text.len() as u64)
            .map_err(|cause| Error::io("write", self.folder.join(INDEX), &cause))
    }

    /// Deletes the reserve, and rewrites a line that did not fit.
    fn append_with_reserve(&mut self, text: &[u8], full: std::io::Error) -> std::io::Result<()> {
        self.index.set_len(self.index_bytes)?;
        self.index.seek(SeekFrom::Start(self.index_bytes))?;
        match std::fs::remove_file(self.folder.join(RESERVE)) {
            Ok(()) => self.index.write_all(text),
            Err(_) => Err(full),
        }
    }
}

fn lock(index: File, folder: &Path) -> Result<Locked> {
    Locked::unless_taken(index).ok_or_else(|| {
        Error::request(format!("another Loadline process is writing to the archive {}", folder.display()))
            .hint("wait until it finishes, or choose another directory with `--out DIR`")
    })
}

/// Whether a line of an index is a complete trial.
fn is_whole_trial(line: &[u8]) -> bool {
    line.starts_with(br#"{"record":"trial""#) && line.ends_with(b"\n")
}

/// Whether this directory's archive has a finished trial; false if it cannot be read.
pub fn holds_trials(folder: &Path) -> bool {
    let text = bounded::bytes(&folder.join(INDEX), INDEX_BYTES_MAX).unwrap_or_default();
    text.split_inclusive(|byte| *byte == b'\n').any(is_whole_trial)
}

/// Removes the index of an archive whose first line is incomplete, so that the directory can be reused. Returns whether
/// it did; leaves any other archive unchanged. Errors: `Request` if another Loadline is writing to it; `Machine` if it
/// cannot be read or removed.
pub fn remove_unbegun(folder: &Path) -> Result<bool> {
    let path = folder.join(INDEX);
    let index = match bounded::open(&path) {
        Ok(index) => index,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(true),
        Err(cause) => return Err(Error::io("read", &path, &cause)),
    };
    let _lock = lock(index, folder)?;
    let text = bounded::bytes(&path, INDEX_BYTES_MAX).map_err(|cause| Error::io("read", &path, &cause))?;
    if text.contains(&b'\n') {
        return Ok(false);
    }
    std::fs::remove_file(&path).map_err(|cause| Error::io("remove", &path, &cause)).map(|()| true)
}

/// The files of one trial.
#[derive(Debug)]
pub struct TrialFiles {
    folder: PathBuf,
    name: String,
    timeline: BufWriter<File>,
    histograms: HistogramLog,
    /// Created with the first phase that has requests.
    requests: Option<RequestFile>,
}

impl TrialFiles {
    pub(super) fn create(folder: PathBuf, name: String) -> Result<Self> {
        private_file::create_folder(&folder).map_err(|cause| Error::io("create", &folder, &cause))?;
        let path = folder.join("timeline.jsonl");
        let timeline = private_file::create(&path).map_err(|cause| Error::io("create", &path, &cause))?;
        let histograms = HistogramLog::create(folder.join("phases.hlog"))?;
        Ok(Self { folder, name, timeline: BufWriter::new(timeline), histograms, requests: None })
    }

    /// The name of the directory, relative to the archive.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file for the subject's output.
    pub fn subject_log(&self) -> PathBuf {
        self.folder.join("subject.log")
    }

    /// Appends a sample to the timeline.
    pub fn sample(&mut self, sample: &Sample) -> Result<()> {
        let mut line =
            serde_json::to_vec(sample).map_err(|cause| Error::bug(format!("cannot encode a sample: {cause}")))?;
        line.push(b'\n');
        // The buffer receives the line completely or not at all, so the write can be retried.
        self.make_room(|files| {
            files.timeline.write_all(&line).map_err(|cause| files.cannot_write("timeline.jsonl", &cause))
        })
    }

    /// Appends the times of a phase's interval.
    pub fn interval(&mut self, phase: &str, times: &IntervalTimes<'_>) -> Result<()> {
        self.make_room(|files| files.histograms.append_times(phase, times))
    }

    /// Appends the individual requests kept for a phase, or none if the disk is full. `origin_ns` is the start of the
    /// command on the clock of the rows.
    pub fn requests(&mut self, phase: &PhaseRecord, rows: &[Row], origin_ns: u64) -> Result<()> {
        let mut file = match self.requests.take() {
            Some(file) => file,
            None => RequestFile::create(self.folder.join(requests::FILE))?,
        };
        let written = file.append(&Common { phase: &phase.name, open: phase.is_open(), origin_ns }, rows);
        self.requests = Some(file);
        written
    }

    /// Flushes buffered data.
    pub fn close(mut self) -> Result<()> {
        self.make_room(|files| files.timeline.flush().map_err(|cause| files.cannot_write("timeline.jsonl", &cause)))
    }

    /// Writes. On failure, deletes this trial's requests to make room, and retries.
    fn make_room(&mut self, mut write: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Err(failed) = write(self) else { return Ok(()) };
        match self.requests.as_mut().map_or(Ok(()), RequestFile::give_up) {
            // There was nothing to delete.
            Ok(()) => Err(failed),
            Err(given_up) => write(self).and(Err(given_up)),
        }
    }

    fn cannot_write(&self, file: &str, cause: &std::io::Error) -> Error {
        Error::io("write", self.folder.join(file), cause)
    }
}
