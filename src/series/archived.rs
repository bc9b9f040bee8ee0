//! A sink that keeps a series in an archive. A write that fails is told once; measuring goes on and loses nothing.

use crate::archive::{IntervalTimes, TrialFiles, Writer};
use crate::error::{Error, Result};
use crate::record::Conditions;
use crate::scenario::{Scenario, TrialPlan};
use crate::trial::{Event, Sink};
use std::path::{Path, PathBuf};

/// Writes what happens into an archive, and hands it on to another sink.
pub struct Archived<S> {
    writer: Writer,
    files: Option<TrialFiles>,
    /// The first write that failed.
    trouble: Option<Error>,
    next: S,
}

impl<S: Sink> Archived<S> {
    /// Creates the archive, before anything is measured.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn create(folder: &Path, conditions: &Conditions, scenario: &Scenario, next: S) -> Result<Self> {
        Ok(Self::with(Writer::create(folder, conditions, scenario)?, next))
    }

    /// Opens an archive to go on with.
    ///
    /// # Errors
    /// As [`Writer::reopen`].
    pub fn reopen(folder: &Path, trials: u32, next: S) -> Result<Self> {
        Ok(Self::with(Writer::reopen(folder, trials)?, next))
    }

    fn with(writer: Writer, next: S) -> Self {
        Self { writer, files: None, trouble: None, next }
    }

    /// Where the archive lies.
    pub fn folder(&self) -> &Path {
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
    pub fn discard(self) {
        self.writer.discard();
    }

    /// Closes the archive, and hands back the other sink. The first write that failed in the whole run, if one did.
    pub fn close(self, interrupted: bool) -> (Result<()>, S) {
        let closed = self.writer.close(interrupted);
        let kept = match self.trouble {
            Some(error) => Err(error.at("the archive is incomplete; the result above is whole")),
            None => closed,
        };
        (kept, self.next)
    }
}

impl<S: Sink> Sink for Archived<S> {
    fn take(&mut self, event: &Event<'_>) {
        self.next.take(event);
        let Err(error) = self.write(event) else { return };
        if self.trouble.is_none() {
            let what = format!("the archive is incomplete from here on: {}", error.what);
            self.next.take(&Event::Warning(&what));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive;
    use crate::record::{Sample, Trial};
    use crate::series::made_up::conditions;
    use crate::series::tests::scenario;

    /// Keeps the warnings it is told.
    #[derive(Default)]
    struct Warnings(Vec<String>);

    impl Sink for Warnings {
        fn take(&mut self, event: &Event<'_>) {
            if let Event::Warning(text) = event {
                self.0.push((*text).to_owned());
            }
        }
    }

    fn archived(folder: &Path) -> (Archived<Warnings>, TrialPlan) {
        let scenario = scenario("configurations: {a: {}}");
        let plan = TrialPlan::of(&scenario, &scenario.configurations[0]);
        (Archived::create(folder, &conditions(&scenario), &scenario, Warnings::default()).unwrap(), plan)
    }

    #[test]
    fn a_trial_is_kept_with_its_files() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("archive");
        let (mut sink, plan) = archived(&folder);
        assert_eq!((sink.folder(), Sink::folder(&sink), sink.log()), (folder.as_path(), None, None));
        sink.take(&Event::TrialStarted(&plan));
        let name = Sink::folder(&sink).unwrap();
        assert!(name.starts_with("trial-001-a") && sink.log().unwrap().starts_with(folder.join(&name)), "{name}");
        sink.take(&Event::Sample { phase: None, sample: &Sample { rss_bytes: 7, ..Sample::default() } });
        sink.take(&Event::TrialFinished(&Trial::new("a", 0, 0)));
        assert_eq!(Sink::folder(&sink), None, "the trial is over");
        let (closed, warnings) = sink.close(false);
        closed.unwrap();
        assert_eq!(warnings.0, [""; 0]);
        let read = archive::read(&folder).unwrap();
        assert_eq!((read.trials.len(), read.missing.len()), (1, 0));
        assert!(std::fs::read_dir(folder.join(&name)).unwrap().count() > 0);
    }

    /// A folder that cannot be made, and all that would have lain in it.
    #[test]
    fn a_write_that_fails_is_told_once_and_loses_no_record() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("archive");
        let (mut sink, plan) = archived(&folder);
        std::fs::write(folder.join("trial-001-a"), "in the way").unwrap();
        for _ in 0..2 {
            sink.take(&Event::TrialStarted(&plan));
            sink.take(&Event::Sample { phase: None, sample: &Sample::default() });
        }
        sink.take(&Event::TrialFinished(&Trial::new("a", 0, 0)));
        let (closed, warnings) = sink.close(false);
        assert!(closed.unwrap_err().to_string().contains("the archive is incomplete; the result above is whole"));
        let [warning] = warnings.0.as_slice() else { panic!("{:?}", warnings.0) };
        assert!(warning.starts_with("the archive is incomplete from here on: "), "{warning}");
        assert_eq!(archive::read(&folder).unwrap().trials.len(), 1);
    }

    fn finish(sink: &mut Archived<Warnings>, plan: &TrialPlan, index: u32) {
        sink.take(&Event::TrialStarted(plan));
        sink.take(&Event::TrialFinished(&Trial::new("a", 0, index)));
    }

    #[test]
    fn one_archive_has_one_writer_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("archive");
        let refused = |trials| {
            let Err(error) = Archived::reopen(&folder, trials, Warnings::default()) else { panic!("{trials}") };
            assert_eq!(error.kind, crate::error::ErrorKind::Request);
            error.to_string()
        };
        let (mut first, plan) = archived(&folder);
        finish(&mut first, &plan, 0);
        let why = refused(1);
        assert!(why.contains("another Loadline is writing to the archive") && why.contains("/archive"), "{why}");
        finish(&mut first, &plan, 1);
        first.close(true).0.unwrap();
        // The first one added a trial after the second one had read the archive.
        let why = refused(1);
        assert!(why.contains("has 2 trials, and had 1 when it was read"), "{why}");
        let mut again = Archived::reopen(&folder, 2, Warnings::default()).unwrap();
        finish(&mut again, &plan, 2);
        let why = refused(3);
        assert!(why.contains("another Loadline is writing"), "{why}");
        again.close(false).0.unwrap();
        let read = archive::read(&folder).unwrap();
        assert_eq!((read.trials.len(), read.missing.len()), (3, 0));
    }

    #[test]
    fn only_an_archive_without_its_first_line_is_begun_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("archive");
        assert!(archive::remove_unbegun(&folder).unwrap(), "there is none");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(archive::INDEX), "{\"record\":\"header\",").unwrap();
        assert!(archive::remove_unbegun(&folder).unwrap());
        let (mut sink, plan) = archived(&folder);
        assert!(archive::remove_unbegun(&folder).is_err(), "it is being written");
        finish(&mut sink, &plan, 0);
        sink.close(true).0.unwrap();
        assert!(!archive::remove_unbegun(&folder).unwrap());
        assert_eq!(archive::read(&folder).unwrap().trials.len(), 1);
    }

    #[test]
    fn nothing_is_left_of_what_is_discarded() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("archive");
        archived(&folder).0.discard();
        assert!(!folder.exists());
    }
}
