//! The archive as a sink of events. A write that fails is told once; measuring goes on and loses nothing.

use crate::archive::{IntervalTimes, TrialFiles, Writer};
use crate::error::{Error, Result};
use crate::record::Conditions;
use crate::scenario::Scenario;
use crate::trial::Event;
use std::path::{Path, PathBuf};

/// The archive of a run.
pub(super) struct Store {
    writer: Writer,
    files: Option<TrialFiles>,
    /// The first write that failed.
    trouble: Option<Error>,
    /// Whether it was told.
    told: bool,
}

impl Store {
    /// Creates the archive, before anything is measured.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub(super) fn create(folder: &Path, conditions: &Conditions, scenario: &Scenario) -> Result<Self> {
        Ok(Self { writer: Writer::create(folder, conditions, scenario)?, files: None, trouble: None, told: false })
    }

    /// Opens an archive to go on with.
    ///
    /// # Errors
    /// As [`Writer::reopen`].
    pub(super) fn reopen(folder: &Path, trials: u32) -> Result<Self> {
        Ok(Self { writer: Writer::reopen(folder, trials)?, files: None, trouble: None, told: false })
    }

    /// Where the archive lies.
    pub(super) fn folder(&self) -> &Path {
        self.writer.folder()
    }

    /// Opens the files of a trial: where the subject's log goes, and the folder's name.
    pub(super) fn begin(&mut self, index: u32, configuration: &str) -> (Option<PathBuf>, Option<String>) {
        match self.writer.trial(index, configuration) {
            Ok(files) => {
                let opened = (Some(files.subject_log()), Some(files.name().to_owned()));
                self.files = Some(files);
                opened
            }
            Err(error) => {
                self.trouble.get_or_insert(error);
                (None, None)
            }
        }
    }

    /// Takes an event in. The first trouble, once.
    pub(super) fn take(&mut self, event: &Event<'_>) -> Option<&Error> {
        if let Err(error) = self.write(event) {
            self.trouble.get_or_insert(error);
        }
        let trouble = self.trouble.as_ref().filter(|_| !self.told);
        self.told |= trouble.is_some();
        trouble
    }

    fn write(&mut self, event: &Event<'_>) -> Result<()> {
        match (event, &mut self.files) {
            (Event::Sample { sample, .. }, Some(files)) => files.sample(sample),
            (Event::Interval { phase, service, response, start, length }, Some(files)) => {
                let times = IntervalTimes { service, response: *response, start: *start, length: *length };
                files.interval(phase, &times)
            }
            (Event::Requests { phase, rows, origin_ns }, Some(files)) => files.requests(phase, rows, *origin_ns),
            (Event::Ended(trial), files) => {
                let closed = files.take().map_or(Ok(()), TrialFiles::close);
                // The record of the trial is worth more than the last samples: try it even if they were lost.
                self.writer.finished(trial).and(closed)
            }
            _ => Ok(()),
        }
    }

    /// Removes the archive, of which nothing is worth keeping.
    pub(super) fn discard(self) {
        self.writer.discard();
    }

    /// Closes the archive.
    ///
    /// # Errors
    /// The first write that failed in the whole run.
    pub(super) fn close(self, interrupted: bool) -> Result<()> {
        let closed = self.writer.close(interrupted);
        match self.trouble {
            Some(error) => Err(error.at("the archive is incomplete; the result above is whole")),
            None => closed,
        }
    }
}
