//! Writes an archive, a line at a time. Only this user may read it.

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

/// A file that only takes room, given up when the disk is full: timelines and logs must not cost the trial's own line.
const RESERVE: &str = ".reserve";
/// Room for a trial with native memory and an account at every mark (about 100 KiB), and the closing line.
const RESERVE_BYTES: usize = 256 << 10;

/// An archive being written.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    /// A second writer would write over the lines of the first.
    index: Locked,
    /// Length of what was written whole.
    index_bytes: u64,
    trials: u32,
    trial_folders: Vec<PathBuf>,
}

impl Writer {
    /// Creates the folder and the first line.
    ///
    /// # Errors
    /// `Request` where the folder already holds an archive; `Machine` where it cannot be written.
    pub fn create(folder: &Path, conditions: &Conditions, scenario: &Scenario) -> Result<Self> {
        private_file::create_folders(folder).map_err(|cause| Error::io("create", folder, &cause))?;
        let path = folder.join(INDEX);
        let index = private_file::options().create_new(true).open(&path).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::AlreadyExists => {
                let is_empty = super::read(folder)
                    .is_ok_and(|of| of.trials.iter().all(|trial| trial.outcome != Outcome::Completed));
                let hint = match is_empty {
                    true => "no trial in it was completed: delete it, or choose another folder with `--out DIR`",
                    false => "choose another folder with `--out DIR`; archives are never overwritten",
                };
                Error::request(format!("{} already holds an archive", folder.display())).hint(hint)
            }
            _ => Error::io("create", &path, &cause),
        })?;
        let index = lock(index, folder)?;
        let mut writer =
            Self { folder: folder.to_owned(), index, index_bytes: 0, trials: 0, trial_folders: Vec::new() };
        writer.begin(conditions, scenario)?;
        // A disk without room for the reserve has none for the run either, which the run will say.
        let reserved = private_file::create(&folder.join(RESERVE));
        if reserved.and_then(|mut file| file.write_all(&vec![b' '; RESERVE_BYTES])).is_err() {
            let _ = std::fs::remove_file(folder.join(RESERVE));
        }
        Ok(writer)
    }

    /// Writes how the trials from here on are made.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn begin(&mut self, conditions: &Conditions, scenario: &Scenario) -> Result<()> {
        self.append(&IndexLine::Header(Box::new(Header {
            schema: format!("{SCHEMA_NAME}{SCHEMA_VERSION}"),
            conditions: conditions.clone(),
            scenario: scenario.clone(),
        })))
    }

    /// Opens an archive to go on writing after `trials` trials; a line that was cut short is dropped.
    ///
    /// # Errors
    /// `Request` where another Loadline writes to it, or has written to it since `trials` was counted; `Machine` where
    /// it cannot be written.
    pub fn reopen(folder: &Path, trials: u32) -> Result<Self> {
        let path = folder.join(INDEX);
        let fails = |cause: std::io::Error| Error::io("write", &path, &cause);
        let index = private_file::options().open(&path).map_err(fails)?;
        // Before it is read: from here on nothing is added by others.
        let mut index = lock(index, folder)?;
        let text = bounded::bytes(&path, INDEX_BYTES_MAX).map_err(|cause| Error::io("read", &path, &cause))?;
        let there = text.split_inclusive(|byte| *byte == b'\n').filter(|line| is_whole_trial(line)).count();
        if there > trials as usize {
            return Err(Error::request(format!(
                "{} has {}, and had {trials} when it was read: another Loadline added to it",
                folder.display(),
                several(there as u64, "trial")
            ))
            .hint("give the same command again: it goes on after all of them"));
        }
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
        index.set_len(whole).map_err(fails)?;
        index.seek(SeekFrom::Start(whole)).map_err(fails)?;
        Ok(Self { folder: folder.to_owned(), index, index_bytes: whole, trials, trial_folders: Vec::new() })
    }

    /// Returns the folder of the archive.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder of a trial.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn trial(&mut self, index: u32, configuration: &str) -> Result<TrialFiles> {
        let name = format!("trial-{:03}-{configuration}", index + 1);
        self.trial_folders.push(self.folder.join(&name));
        TrialFiles::create(self.folder.join(&name), name)
    }

    /// Appends a finished trial.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn finished(&mut self, trial: &Trial) -> Result<()> {
        self.trials += 1;
        self.append(&IndexLine::Trial(Box::new(trial.clone())))
    }

    /// Removes what was written, and the folder if nothing else is in it.
    pub fn discard(self) {
        // Failing to remove leaves litter, which is no reason for another error.
        for folder in &self.trial_folders {
            let _ = std::fs::remove_dir_all(folder);
        }
        let _ = std::fs::remove_file(self.folder.join(RESERVE));
        let _ = std::fs::remove_file(self.folder.join(INDEX));
        let _ = std::fs::remove_dir(&self.folder);
    }

    /// Writes the closing line and makes sure that all is on disk.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn close(mut self, interrupted: bool) -> Result<()> {
        self.append(&IndexLine::Closed(Closed { trials: self.trials, interrupted }))?;
        // The reserve is gone already where it was needed.
        let _ = std::fs::remove_file(self.folder.join(RESERVE));
        self.index.sync_all().map_err(|cause| Error::io("write", self.folder.join(INDEX), &cause))
    }

    /// One write for the whole line, so that a line is there or is recognisably cut.
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

    /// Gives the reserve up for this line, in place of the part of it that did find room.
    fn append_with_reserve(&mut self, text: &[u8], full: std::io::Error) -> std::io::Result<()> {
        self.index.set_len(self.index_bytes)?;
        self.index.seek(SeekFrom::Start(self.index_bytes))?;
        match std::fs::remove_file(self.folder.join(RESERVE)) {
            Ok(()) => self.index.write_all(text),
            Err(_) => Err(full),
        }
    }
}

/// Locks the index of an archive for this writer alone.
fn lock(index: File, folder: &Path) -> Result<Locked> {
    Locked::unless_taken(index).ok_or_else(|| {
        Error::request(format!("another Loadline is writing to the archive {}", folder.display()))
            .hint("wait until it has ended, or choose another folder with `--out DIR`")
    })
}

/// Whether a line of an index is that of a finished trial, and not cut short.
fn is_whole_trial(line: &[u8]) -> bool {
    line.starts_with(br#"{"record":"trial""#) && line.ends_with(b"\n")
}

/// Whether the archive in this folder has a finished trial; false where it cannot be read.
pub fn holds_trials(folder: &Path) -> bool {
    let text = bounded::bytes(&folder.join(INDEX), INDEX_BYTES_MAX).unwrap_or_default();
    text.split_inclusive(|byte| *byte == b'\n').any(is_whole_trial)
}

/// Removes the index of an archive that was cut off before its first line was whole, so that the folder may get a new
/// one. Whether it was so; an archive that has more stays as it is.
///
/// # Errors
/// `Request` where another Loadline is writing it; `Machine` where it cannot be read or removed.
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
    /// Created with the first phase that has any.
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

    /// Name of the folder, relative to the archive.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file that the subject's output goes to.
    pub fn subject_log(&self) -> PathBuf {
        self.folder.join("subject.log")
    }

    /// Appends a sample to the timeline.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn sample(&mut self, sample: &Sample) -> Result<()> {
        let mut line =
            serde_json::to_vec(sample).map_err(|cause| Error::bug(format!("cannot encode a sample: {cause}")))?;
        line.push(b'\n');
        // In one piece: the line is in the buffer as a whole or not at all, so that it can be tried again.
        self.make_room(|files| {
            files.timeline.write_all(&line).map_err(|cause| files.cannot_write("timeline.jsonl", &cause))
        })
    }

    /// Appends the times of an interval of a phase.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn interval(&mut self, phase: &str, times: &IntervalTimes<'_>) -> Result<()> {
        self.make_room(|files| files.histograms.append_times(phase, times))
    }

    /// Appends the single requests of a phase: those of them that were kept. `origin_ns` is the start of the command on
    /// the clock of the rows. If they find no room, none of them is left behind.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn requests(&mut self, phase: &PhaseRecord, rows: &[Row], origin_ns: u64) -> Result<()> {
        let mut file = match self.requests.take() {
            Some(file) => file,
            None => RequestFile::create(self.folder.join(requests::FILE))?,
        };
        let written = file.append(&Common { phase: &phase.name, open: phase.is_open(), origin_ns }, rows);
        self.requests = Some(file);
        written
    }

    /// Writes what is still in memory.
    ///
    /// # Errors
    /// `Machine` where it cannot be written.
    pub fn close(mut self) -> Result<()> {
        self.make_room(|files| files.timeline.flush().map_err(|cause| files.cannot_write("timeline.jsonl", &cause)))
    }

    /// Writes; where that fails, the requests of this trial give their room to it, and it is tried again.
    fn make_room(&mut self, mut write: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Err(failed) = write(self) else { return Ok(()) };
        match self.requests.as_mut().map_or(Ok(()), RequestFile::give_up) {
            // Nothing to give.
            Ok(()) => Err(failed),
            Err(given_up) => write(self).and(Err(given_up)),
        }
    }

    fn cannot_write(&self, file: &str, cause: &std::io::Error) -> Error {
        Error::io("write", self.folder.join(file), cause)
    }
}
