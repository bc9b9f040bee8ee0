//! Archives of series: what is kept, and how failed writes are handled.

use crate::made_up::conditions;
use crate::whole::scenario;
use loadline::archive;
use loadline::error::ErrorKind;
use loadline::record::{Sample, Trial};
use loadline::scenario::TrialPlan;
use loadline::series::Archived;
use loadline::trial::{Event, Sink};
use std::path::Path;

/// Records warnings.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Sink for Warnings {
    fn receive(&mut self, event: &Event<'_>) {
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
fn a_trial_is_archived_with_its_files() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("archive");
    let (mut sink, plan) = archived(&folder);
    assert_eq!((sink.folder(), Sink::folder(&sink), sink.log()), (folder.as_path(), None, None));
    sink.receive(&Event::TrialStarted(&plan));
    let name = Sink::folder(&sink).unwrap();
    assert!(name.starts_with("trial-001-a") && sink.log().unwrap().starts_with(folder.join(&name)), "{name}");
    sink.receive(&Event::Sample { phase: None, sample: &Sample { rss_bytes: 7, ..Sample::default() } });
    sink.receive(&Event::TrialFinished(&Trial::new("a", 0, 0)));
    assert_eq!(Sink::folder(&sink), None, "a finished trial has no directory");
    let (closed, warnings) = sink.close(false);
    closed.unwrap();
    assert_eq!(warnings.0, [""; 0]);
    let read = archive::read(&folder).unwrap();
    assert_eq!((read.trials.len(), read.missing.len()), (1, 0));
    assert!(std::fs::read_dir(folder.join(&name)).unwrap().count() > 0);
}

/// A directory that cannot be created, so everything in it fails.
#[test]
fn a_failed_write_is_reported_once_and_keeps_the_records() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("archive");
    let (mut sink, plan) = archived(&folder);
    std::fs::write(folder.join("trial-001-a"), "in the way").unwrap();
    for _ in 0..2 {
        sink.receive(&Event::TrialStarted(&plan));
        sink.receive(&Event::Sample { phase: None, sample: &Sample::default() });
    }
    sink.receive(&Event::TrialFinished(&Trial::new("a", 0, 0)));
    let (closed, warnings) = sink.close(false);
    assert!(closed.unwrap_err().to_string().contains("the archive is incomplete; the result above is complete"));
    let [warning] = warnings.0.as_slice() else { panic!("{:?}", warnings.0) };
    assert!(warning.starts_with("the archive is incomplete from this point on: "), "{warning}");
    assert_eq!(archive::read(&folder).unwrap().trials.len(), 1);
}

fn finish(sink: &mut Archived<Warnings>, plan: &TrialPlan, index: u32) {
    sink.receive(&Event::TrialStarted(plan));
    sink.receive(&Event::TrialFinished(&Trial::new("a", 0, index)));
}

#[test]
fn one_archive_has_one_writer_at_a_time() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("archive");
    let refused = |trials| {
        let Err(error) = Archived::reopen(&folder, trials, Warnings::default()) else { panic!("{trials}") };
        assert_eq!(error.kind, ErrorKind::Request);
        error.to_string()
    };
    let (mut first, plan) = archived(&folder);
    finish(&mut first, &plan, 0);
    let why = refused(1);
    assert!(why.contains("another Loadline process is writing to the archive") && why.contains("/archive"), "{why}");
    finish(&mut first, &plan, 1);
    first.close(true).0.unwrap();
    // The first one added a trial after the second one had read the archive.
    let why = refused(1);
    assert!(why.contains("has 2 trials, but had 1 when it was read"), "{why}");
    let mut again = Archived::reopen(&folder, 2, Warnings::default()).unwrap();
    finish(&mut again, &plan, 2);
    let why = refused(3);
    assert!(why.contains("another Loadline process is writing"), "{why}");
    again.close(false).0.unwrap();
    let read = archive::read(&folder).unwrap();
    assert_eq!((read.trials.len(), read.missing.len()), (3, 0));
}

#[test]
fn only_an_archive_without_a_header_is_restarted() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("archive");
    assert!(archive::remove_unbegun(&folder).unwrap(), "a missing archive is not an error");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(archive::INDEX), "{\"record\":\"header\",").unwrap();
    assert!(archive::remove_unbegun(&folder).unwrap());
    let (mut sink, plan) = archived(&folder);
    assert!(archive::remove_unbegun(&folder).is_err(), "an archive with a writer is not removed");
    finish(&mut sink, &plan, 0);
    sink.close(true).0.unwrap();
    assert!(!archive::remove_unbegun(&folder).unwrap());
    assert_eq!(archive::read(&folder).unwrap().trials.len(), 1);
}

#[test]
fn a_discarded_archive_is_removed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("archive");
    archived(&folder).0.discard();
    assert!(!folder.exists());
}
