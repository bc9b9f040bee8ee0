//! Archives of real runs, read back: intact, truncated, damaged, from a later version.

use crate::invocation::{Call, Ran, newest};
use std::path::Path;

fn weighed(release: u32) -> Call {
    Call::weigh().with(&format!("--jdk {release}")).with("--nmt summary").with("-n 50").subject("DemoServer", "{port}")
}

fn report(archive: &Path) -> Ran {
    Call::verb("report").with_argument(archive).run()
}

#[test]
fn a_report_matches_the_summary_of_the_run() {
    for release in newest() {
        let ran = weighed(release).run().expect(0);
        assert!(
            ran.stdout.contains("memory at each mark, MiB") && ran.stdout.contains("native memory"),
            "{}",
            ran.stdout
        );
        // Only a word that is longer than a line, such as the path of a jar, may exceed the width.
        let breakable = |line: &&str| line.split_whitespace().count() > 1;
        let wide: Vec<&str> = ran.stdout.lines().filter(breakable).filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:?}");
        assert_eq!(report(&ran.archive).expect(0).stdout, ran.stdout);
        assert_eq!(report(&ran.archive.join("archive.jsonl")).expect(0).stdout, ran.stdout);
        assert!(ran.stderr.contains("archive: "), "{}", ran.stderr);
    }
}

#[test]
fn a_reported_document_matches_the_one_of_the_run() {
    for release in newest() {
        let ran = weighed(release).with("--json").run().expect(0);
        let again = Call::verb("report --json").with_argument(&ran.archive).run().expect(0);
        assert_eq!(again.stdout, ran.stdout);
        assert_eq!(again.document().conditions.command, ran.document().conditions.command);
    }
}

#[test]
fn quiet_prints_nothing_on_stderr() {
    for release in newest() {
        let ran = weighed(release).with("--quiet").run().expect(0);
        assert_eq!(ran.stderr, "");
        assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    }
}

#[test]
fn a_trial_leaves_the_evidence_for_plots() {
    for release in newest() {
        let ran = weighed(release).with("-n 2000").run().expect(0);
        let archived = ran.archived();
        let found = loadline::archive::evidence(&ran.archive, &archived.trials).remove(0);
        assert_eq!(found.missing, [] as [&str; 0]);
        let trial = &archived.trials[0];
        assert_eq!(found.timeline.len() as u64, trial.observer.samples);
        for phase in trial.phases.iter().filter(|phase| phase.works()) {
            let span = phase.at_s..phase.at_s + phase.seconds + 0.1;
            let its = found.intervals.iter().filter(|interval| interval.phase == phase.name);
            assert_eq!(its.clone().map(|interval| interval.ok).sum::<u64>(), phase.ok, "{its:?}");
            assert!(its.clone().all(|interval| span.contains(&interval.at_s)), "{span:?}: {its:?}");
            // The next phase may begin within the tolerance of this one.
            let dots = found.requests.iter().filter(|dot| span.contains(&dot.at_s)).count() as u64;
            assert!(dots >= phase.requests, "{}: {dots}", phase.name);
            let spectrum = found.spectra.iter().find(|spectrum| spectrum.phase == phase.name).unwrap();
            let (longest, max) = (spectrum.points.last().unwrap().1, phase.service_ms.unwrap().max);
            assert!((longest - max).abs() <= max / 500.0, "{longest} and {max}");
        }
        let sent: u64 = trial.phases.iter().filter(|phase| phase.works()).map(|phase| phase.requests).sum();
        assert_eq!(found.requests.len() as u64, sent);
        let requests = loadline::archive::requests(&ran.archive, trial).unwrap();
        assert_eq!(requests.rows.len(), found.requests.len());
        let started: jiff::Timestamp = archived.conditions.started.parse().unwrap();
        let after_s = requests.started_unix_s.unwrap() - started.as_second() as f64;
        assert!((-1.0..60.0).contains(&after_s), "{after_s}");
    }
}

#[test]
fn a_damaged_archive_is_read_partially_or_rejected() {
    for release in newest() {
        let ran = weighed(release).run().expect(0);
        let index = ran.archive.join("archive.jsonl");
        let whole = std::fs::read_to_string(&index).unwrap();
        let lines: Vec<&str> = whole.split_inclusive('\n').collect();
        assert_eq!(lines.len(), 3, "the archive has a header, a trial, and a closing line");
        let now = |text: &str| {
            std::fs::write(&index, text).unwrap();
            report(&ran.archive)
        };

        let closing_cut = now(&whole[..whole.len() - 5]).expect(0);
        assert!(closing_cut.stdout.contains("memory at each mark, MiB") && closing_cut.stdout.contains("missing"));
        let trial_cut = now(&whole[..lines[0].len() + 99]).expect(0);
        assert!(trial_cut.stdout.contains("line 2 is truncated, so its trial is lost"), "{}", trial_cut.stdout);
        assert!(!trial_cut.stdout.contains("memory at each mark, MiB"), "{}", trial_cut.stdout);

        let newer = whole.replacen("loadline.archive/2", "loadline.archive/99", 1);
        now(&newer).expect(2).says(&["the archive has version 99", "hint: update Loadline"]);
        now(&whole[9..]).expect(2).says(&["this is not a Loadline archive"]);
        now(&whole.replacen("conditions", "conditons", 1)).expect(2).says(&["first line", "damaged"]);
        now("").expect(2).says(&["this is not a Loadline archive"]);
        report(&ran.archive.join("nowhere")).expect(2).says(&["no archive at ", "hint: "]);
    }
}
