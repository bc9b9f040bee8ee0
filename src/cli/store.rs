//! Who is told what happens in a run: the archive and the terminal. A write that fails is told once; measuring goes on
//! and loses nothing.

use super::live::Live;
use crate::archive::{IntervalTimes, TrialFiles, Writer};
use crate::error::{Error, Result};
use crate::record::Conditions;
use crate::report::Progress;
use crate::scenario::{Scenario, TrialPlan};
use crate::trial::{Event, Sink};
use std::path::{Path, PathBuf};

/// The archive of a run, and what is shown of it meanwhile.
pub(super) struct Store {
    writer: Writer,
    files: Option<TrialFiles>,
    /// The first write that failed.
    trouble: Option<Error>,
    /// Whether it was told.
    told: bool,
    progress: Progress,
    live: Live,
}

impl Store {
    /// Creates the archive, before anything is measured.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub(super) fn create(
        folder: &Path,
        conditions: &Conditions,
        scenario: &Scenario,
        progress: Progress,
    ) -> Result<Self> {
        Ok(Self::with(Writer::create(folder, conditions, scenario)?, progress))
    }

    /// Opens an archive to go on with.
    ///
    /// # Errors
    /// As [`Writer::reopen`].
    pub(super) fn reopen(folder: &Path, trials: u32, progress: Progress) -> Result<Self> {
        Ok(Self::with(Writer::reopen(folder, trials)?, progress))
    }

    fn with(writer: Writer, progress: Progress) -> Self {
        Self { writer, files: None, trouble: None, told: false, progress, live: Live::default() }
    }

    /// Where the archive lies.
    pub(super) fn folder(&self) -> &Path {
        self.writer.folder()
    }

    /// Opens the files of a trial.
    fn begin(&mut self, plan: &TrialPlan) -> Result<()> {
        self.files = Some(self.writer.trial(plan.index, &plan.configuration.name)?);
        Ok(())
    }

    fn write(&mut self, event: &Event<'_>) -> Result<()> {
        match (event, &mut self.files) {
            (Event::TrialStarted(plan), _) => self.begin(plan),
            (Event::Sample { sample, .. }, Some(files)) => files.sample(sample),
            (Event::Interval { phase, service, response, start, length }, Some(files)) => {
                let times = IntervalTimes { service, response: *response, start: *start, length: *length };
                files.interval(phase, &times)
            }
            (Event::Requests { phase, rows, origin_ns }, Some(files)) => files.requests(phase, rows, *origin_ns),
            (Event::TrialFinished(trial), files) => {
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

    /// Closes the archive. The first write that failed in the whole run, if one did.
    pub(super) fn close(self, interrupted: bool) -> (Result<()>, Progress) {
        let closed = self.writer.close(interrupted);
        let kept = match self.trouble {
            Some(error) => Err(error.at("the archive is incomplete; the result above is whole")),
            None => closed,
        };
        (kept, self.progress)
    }
}

impl Sink for Store {
    fn take(&mut self, event: &Event<'_>) {
        self.live.show(event, &mut self.progress);
        if let Err(error) = self.write(event) {
            self.trouble.get_or_insert(error);
        }
        if let Some(trouble) = self.trouble.as_ref().filter(|_| !self.told) {
            self.progress.warn(&format!("the archive is incomplete from here on: {}", trouble.what));
            self.told = true;
        }
    }

    fn log(&self) -> Option<PathBuf> {
        self.files.as_ref().map(TrialFiles::subject_log)
    }

    fn folder(&self) -> Option<String> {
        self.files.as_ref().map(|files| files.name().to_owned())
    }
}
