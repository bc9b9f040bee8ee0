//! A sink that writes a series to an archive. It reports only the first failed write; trials continue unaffected.

use crate::archive::{TrialFiles, Writer};
use crate::error::{Error, Result};
use crate::record::Conditions;
use crate::scenario::{Scenario, TrialPlan};
use crate::trial::{Event, Sink};
use std::path::{Path, PathBuf};

/// Writes events into an archive, and passes them on to another sink.
pub struct Archived<S> {
    writer: Writer,
    files: Option<TrialFiles>,
    /// The first write that failed.
    trouble: Option<Error>,
    next: S,
}

impl<S: Sink> Archived<S> {
    /// Creates the archive before the first trial.
    pub fn create(folder: &Path, conditions: &Conditions, scenario: &Scenario, next: S) -> Result<Self> {
        Ok(Self::with(Writer::create(folder, conditions, scenario)?, next))
    }

    /// Opens an archive to continue it.
    pub fn reopen(folder: &Path, trials: u32, next: S) -> Result<Self> {
        Ok(Self::with(Writer::reopen(folder, trials)?, next))
    }

    /// Writes the conditions of all subsequent trials.
    pub fn begin_again(&mut self, conditions: &Conditions, scenario: &Scenario) -> Result<()> {
        self.writer.begin(conditions, scenario)
    }

    fn with(writer: Writer, next: S) -> Self {
        Self { writer, files: None, trouble: None, next }
    }

    /// The archive's directory.
    pub fn folder(&self) -> &Path {
        self.writer.folder()
    }

    fn begin(&mut self, plan: &TrialPlan) -> Result<()> {
        self.files = Some(self.writer.trial(plan.index, &plan.configuration.name)?);
        Ok(())
    }

    fn write(&mut self, event: &Event<'_>) -> Result<()> {
        match (event, &mut self.files) {
            (Event::TrialStarted(plan), _) => self.begin(plan),
            (Event::Sample { sample, .. }, Some(files)) => files.sample(sample),
            (Event::Interval { phase, times }, Some(files)) => files.interval(phase, times),
            (Event::Requests { phase, rows, origin_ns }, Some(files)) => files.requests(phase, rows, *origin_ns),
            (Event::TrialFinished(trial), files) => {
                let closed = files.take().map_or(Ok(()), TrialFiles::close);
                // The trial's record matters more than its last samples, so write it even if they were lost.
                self.writer.finished(trial).and(closed)
            }
            _ => Ok(()),
        }
    }

    /// Removes an archive that contains nothing worth keeping.
    pub fn discard(self) {
        self.writer.discard();
    }

    /// Closes the archive and returns the other sink, with the first write error of the run.
    pub fn close(self, interrupted: bool) -> (Result<()>, S) {
        let closed = self.writer.close(interrupted);
        let kept = match self.trouble {
            Some(error) => Err(error.at("the archive is incomplete; the result above is complete")),
            None => closed,
        };
        (kept, self.next)
    }
}

impl<S: Sink> Sink for Archived<S> {
    fn receive(&mut self, event: &Event<'_>) {
        self.next.receive(event);
        let Err(error) = self.write(event) else { return };
        if self.trouble.is_none() {
            let what = format!("the archive is incomplete from this point on: {}", error.what);
            self.next.receive(&Event::Warning(&what));
            self.trouble = Some(error);
        }
    }

    fn log(&self) -> Option<PathBuf> {
        self.files.as_ref().map(TrialFiles::subject_log)
    }

    fn folder(&self) -> Option<String> {
        self.files.as_ref().map(|files| files.name().to_owned())
    }
}
