//! Plot data compared with what was written: complete, thinned, and with every kind of damage.

use super::*;
use crate::archive::requests as read_again;
use crate::archive::whole_file::WholeFile;
use crate::archive::write::TrialFiles;
use crate::record::{Failures, IntervalTimes, Model, Row};
use hdrhistogram::Histogram;
use loadline_test_support::cuts;
use proptest::prelude::*;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const FILES: [&str; 3] = [TIMELINE, "phases.hlog", requests::FILE];
/// The clock and the Unix time at the start of the command.
const ORIGIN_NS: u64 = 5 * SECOND;
const EPOCH_S: f64 = 1_700_000_000.0;

struct MadeFolder {
    samples: u64,
    /// Name, model, seconds.
    phases: Vec<(&'static str, Model, u64)>,
    per_second: u64,
}

fn row(started_ns: u64, number: u64) -> Row {
    let ended_ns = started_ns + (1 + number % 50) * MS;
    Row {
        intended_ns: started_ns - 2 * MS,
        started_ns,
        connected_ns: started_ns,
        first_byte_ns: ended_ns,
        ended_ns,
        body_bytes: 12,
        request: Some(0),
        connection: Some(1),
        status: 200,
        failure: (number % 10 == 9).then_some("reset"),
    }
}

/// Writes a trial like `cli::store`; returns the archive's directory and the trial's record.
fn made(made: &MadeFolder) -> (TempDir, Trial) {
    let place = tempfile::tempdir().unwrap();
    let mut trial = Trial::new("c0", 0, 0);
    trial.folder = Some("trial-001-c0".to_owned());
    let mut files = TrialFiles::create(place.path().join("trial-001-c0"), "trial-001-c0".to_owned()).unwrap();
    for n in 0..made.samples {
        let rss_bytes = 1000 + if n == made.samples / 3 { 1_000_000 } else { n };
        files.sample(&Sample { at_s: n as f64 / 10.0, rss_bytes, ok: n, ..Sample::default() }).unwrap();
    }
    let mut begin_ns = ORIGIN_NS + SECOND;
    for (name, model, seconds) in &made.phases {
        let mut phase = PhaseRecord { name: (*name).to_owned(), model: *model, ..PhaseRecord::default() };
        phase.at_s = (begin_ns - ORIGIN_NS) as f64 / 1e9;
        let mut rows = Vec::new();
        for second in 0..*seconds {
            let mut service = Histogram::<u64>::new(3).unwrap();
            let mut response = service.clone();
            for n in 0..made.per_second {
                let row = row(begin_ns + second * SECOND + n * SECOND / made.per_second, n);
                if row.failure.is_none() {
                    service.record(row.ended_ns - row.started_ns).unwrap();
                    response.record(row.ended_ns - row.intended_ns).unwrap();
                }
                rows.push(row);
            }
            phase.ok += service.len();
            let start = Duration::from_secs_f64(EPOCH_S) + Duration::from_nanos(begin_ns - ORIGIN_NS + second * SECOND);
            let response = (*model == Model::Open).then_some(&response);
            let times = IntervalTimes { service: &service, response, start, length: Duration::from_secs(1) };
            files.interval(name, &times).unwrap();
        }
        phase.requests = rows.len() as u64;
        phase.failed = Failures { reset: phase.requests - phase.ok, ..Failures::default() };
        files.requests(&phase, &rows, ORIGIN_NS).unwrap();
        trial.phases.push(phase);
        begin_ns += seconds * SECOND;
    }
    files.close().unwrap();
    (place, trial)
}

fn small() -> MadeFolder {
    MadeFolder { samples: 6, phases: vec![("warm, up", Model::Closed, 2), ("steady", Model::Open, 3)], per_second: 10 }
}

fn only(place: &TempDir, trial: &Trial) -> Evidence {
    let mut evidence = evidence(place.path(), std::slice::from_ref(trial));
    assert_eq!(evidence.len(), 1);
    evidence.remove(0)
}

fn path(place: &TempDir, file: &str) -> PathBuf {
    place.path().join("trial-001-c0").join(file)
}

#[test]
fn written_evidence_reads_back() {
    let (place, trial) = made(&small());
    let found = only(&place, &trial);
    assert_eq!(found.missing, [] as [&str; 0]);
    assert_eq!(found.timeline.iter().map(|sample| sample.ok).collect::<Vec<_>>(), (0..6).collect::<Vec<_>>());

    let placed: Vec<_> = found.intervals.iter().map(|i| (i.phase.as_str(), i.at_s, i.seconds, i.ok)).collect();
    let interval = |phase, at_s| (phase, at_s, 1.0, 9);
    let (warm, steady) = ("warm, up", "steady");
    let expect = [(warm, 1.0), (warm, 2.0), (steady, 3.0), (steady, 4.0), (steady, 5.0)].map(|(p, at)| interval(p, at));
    assert_eq!(placed, expect);
    // 1 to 9 ms from the actual start, 3 to 11 ms from the intended one.
    let bounds = |n: usize| (found.intervals[n].classes[0].0, found.intervals[n].classes.last().unwrap().0);
    assert!(bounds(0).0 > 1.0 && bounds(0).1 > 9.0 && bounds(0).1 < 11.3, "{:?}", bounds(0));
    assert!(bounds(4).0 > 3.0 && bounds(4).1 > 11.0 && bounds(4).1 < 13.8, "{:?}", bounds(4));

    let spectra: Vec<_> = found.spectra.iter().map(|s| (s.phase.as_str(), s.time.name(), s.count)).collect();
    assert_eq!(spectra, [(warm, "service", 18), (steady, "response", 27), (steady, "service", 27)]);
    let longest = found.spectra.iter().map(|spectrum| spectrum.points.last().unwrap().1.round()).collect::<Vec<_>>();
    assert_eq!(longest, [9.0, 11.0, 9.0]);

    assert_eq!(found.requests.len(), 50);
    assert_eq!(found.requests[0], RequestDot { at_s: 1.0, ms: 1.0, failed: false });
    assert_eq!(found.requests[49], RequestDot { at_s: 5.9, ms: 12.0, failed: true });
    assert_eq!(found.requests.iter().filter(|dot| dot.failed).count(), 5);

    let again = read_again(place.path(), &trial).unwrap();
    assert_eq!((again.rows.len(), again.missing.len()), (50, 0));
    assert!((again.started_unix_s.unwrap() - EPOCH_S).abs() < 0.001, "{:?}", again.started_unix_s);
    assert_eq!(again.ab().lines().count(), 46);
    // The index file works like its directory.
    assert_eq!(evidence(&place.path().join("archive.jsonl"), &[trial]), [found]);
}

#[test]
fn thinning_a_long_trial_keeps_peaks_and_responses() {
    let phases = vec![("warmup", Model::Closed, 150), ("steady", Model::Open, 450)];
    let (place, trial) = made(&MadeFolder { samples: 6001, phases, per_second: 40 });
    let found = only(&place, &trial);
    assert_eq!(found.missing, [] as [&str; 0]);
    assert!((600..=SAMPLES_MAX).contains(&found.timeline.len()), "{}", found.timeline.len());
    assert_eq!(found.timeline.iter().map(|sample| sample.rss_bytes).max(), Some(1_001_000));
    assert_eq!(found.timeline.last().map(|sample| (sample.at_s, sample.ok)), Some((600.0, 6000)));
    assert!(found.timeline.is_sorted_by(|a, b| a.at_s < b.at_s && a.ok < b.ok));
    assert!((150..=300).contains(&found.intervals.len()), "{}", found.intervals.len());
    assert!(found.intervals.is_sorted_by(|a, b| a.at_s + a.seconds <= b.at_s + 1e-6));
    for phase in &trial.phases {
        let its = found.intervals.iter().filter(|interval| interval.phase == phase.name);
        assert_eq!(its.clone().map(|interval| interval.ok).sum::<u64>(), phase.ok, "{}", phase.name);
        assert_eq!(its.flat_map(|i| &i.classes).map(|(_, count)| count).sum::<u64>(), phase.ok, "{}", phase.name);
        assert!(found.spectra.iter().any(|spectrum| spectrum.phase == phase.name && spectrum.count == phase.ok));
    }
    // 21,600 responses and 2,400 failures were written.
    let failed = found.requests.iter().filter(|dot| dot.failed).count();
    assert!((1000..=DOTS_FAILED_MAX).contains(&failed), "{failed}");
    assert!((3000..=DOTS_MAX).contains(&found.requests.len()), "{}", found.requests.len());
    assert!(found.requests.is_sorted_by(|a, b| a.at_s <= b.at_s));
    let late = found.requests.iter().filter(|dot| dot.at_s > 301.0).count() as f64 / found.requests.len() as f64;
    assert!((0.45..0.55).contains(&late), "{late}");
}

/// Everything except this file's data.
fn others(evidence: &Evidence, file: &str) -> Evidence {
    let mut rest = evidence.clone();
    rest.missing.clear();
    match file {
        TIMELINE => rest.timeline.clear(),
        requests::FILE => rest.requests.clear(),
        _ => (rest.intervals, rest.spectra) = (Vec::new(), Vec::new()),
    }
    rest
}

/// Checks invariants of a damaged archive's data.
fn check_sane(damaged: &Evidence, whole: &Evidence, file: &str, what: &str) {
    assert_eq!(others(damaged, file), others(whole, file), "{what}");
    assert!(damaged.missing.iter().all(|words| words.starts_with(file)), "{what}: {:?}", damaged.missing);
    assert!(damaged.timeline.is_sorted_by(|a, b| a.at_s <= b.at_s), "{what}");
    assert!(damaged.requests.is_sorted_by(|a, b| a.at_s <= b.at_s), "{what}");
    assert!(damaged.intervals.is_sorted_by(|a, b| a.at_s <= b.at_s), "{what}");
}

#[test]
fn a_truncated_file_keeps_what_precedes_the_cut() {
    let (place, trial) = made(&small());
    let whole = only(&place, &trial);
    for file in FILES {
        let bytes = std::fs::read(path(&place, file)).unwrap();
        for cut in cuts(bytes.len() - 1) {
            std::fs::write(path(&place, file), &bytes[..cut]).unwrap();
            let found = only(&place, &trial);
            let what = format!("{file} cut at {cut}");
            check_sane(&found, &whole, file, &what);
            // Complete lines remain.
            let lines = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            match file {
                TIMELINE => assert_eq!(found.timeline, whole.timeline[..lines], "{what}"),
                requests::FILE => assert_eq!(found.requests.len(), lines.saturating_sub(1), "{what}"),
                _ => {
                    let in_log = found.spectra.iter().map(|spectrum| spectrum.count).sum::<u64>();
                    assert_eq!(in_log, lines.saturating_sub(3) as u64 * 9, "{what}");
                }
            }
            let after_a_line = cut == 0 || bytes[cut - 1] == b'\n';
            // The numbers of responses are recorded, but not those of samples and rows. Each phase has rows.
            let unseen = match file {
                TIMELINE => !after_a_line,
                requests::FILE => !after_a_line || found.requests.iter().all(|dot| dot.at_s < 3.0),
                _ => true,
            };
            assert_eq!(!found.missing.is_empty(), unseen, "{what}: {:?}", found.missing);
        }
        std::fs::write(path(&place, file), &bytes).unwrap();
    }
    assert_eq!(only(&place, &trial), whole);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_damaged_file_does_not_affect_the_others(file in 0usize..3, at in any::<u32>(), byte in any::<u8>()) {
        let (place, trial) = made(&small());
        let whole = only(&place, &trial);
        let file = FILES[file];
        let mut bytes = std::fs::read(path(&place, file)).unwrap();
        let at = at as usize % bytes.len();
        bytes[at] = byte;
        std::fs::write(path(&place, file), &bytes).unwrap();
        check_sane(&only(&place, &trial), &whole, file, &format!("{file}: {byte} at {at}"));
    }
}

#[test]
fn missing_files_are_reported_only_if_expected() {
    let (place, mut trial) = made(&small());
    FILES.iter().for_each(|file| std::fs::remove_file(path(&place, file)).unwrap());
    let found = only(&place, &trial);
    let words = |file: &str| format!("{file}: it could not be opened: no such file or directory");
    let lower: Vec<String> = found.missing.iter().map(|words| words.to_lowercase()).collect();
    assert_eq!(lower.iter().map(|l| l.split(" (os").next().unwrap().to_owned()).collect::<Vec<_>>(), FILES.map(words));
    assert_eq!(others(&found, TIMELINE), Evidence { trial: 0, ..Evidence::default() });
    assert!(read_again(place.path(), &trial).unwrap_err().what.starts_with("no record of individual requests at "));

    // An external program drove the load, so the log needs no data.
    trial.phases.iter_mut().for_each(|phase| phase.driver = Some(Default::default()));
    let missing = only(&place, &trial).missing;
    assert!(missing.len() == 1 && missing[0].starts_with(TIMELINE), "{missing:?}");
}

#[test]
fn a_directory_outside_the_archive_is_not_read() {
    let (place, mut trial) = made(&small());
    let inside = place.path().join("trial-001-c0");
    for folder in ["../trial-001-c0", "..", "/etc", "", "a/b", &inside.display().to_string()] {
        trial.folder = Some(folder.to_owned());
        let found = only(&place, &trial);
        let expect =
            Evidence { missing: vec!["the trial has no directory in the archive".to_owned()], ..Evidence::default() };
        assert_eq!(found, expect, "{folder}");
    }
}

#[test]
fn trial_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let phases = vec![("steady", Model::Closed, 2)];
    let (place, _) = made(&MadeFolder { samples: 3, phases, per_second: 2 });
    let folder = place.path().join("trial-001-c0");
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let paths: Vec<PathBuf> = files.chain([folder.clone()]).collect();
    assert_eq!(paths.len(), FILES.len() + 1, "{paths:?}");
    for path in paths {
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o} {}", path.display());
    }
}

#[test]
fn a_full_disk_drops_all_request_rows_of_the_phase() {
    // /dev/full fails every write like a full disk.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut file = requests::RequestFile::begin(WholeFile::begin("/dev/full".into(), full));
    let common = requests::Common { phase: "x", open: false, origin_ns: 0 };
    let error = file.append(&common, &[row(SECOND, 1)]).unwrap_err();
    assert!(error.what.contains("write"), "{error}");
}
