//! An archive of the largest size that must be read fast: 10 trials of 10 minutes at 10 Hz, a million requests.
//! Generated with the program's own writer; `benches/report.rs` uses it.

use loadline::archive::{self, Writer};
use loadline::record::{Evidence, IntervalTimes, Model, PhaseRecord, Quantiles, Row, Sample, Trial};
use std::path::Path;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// As in `trial::phase`.
const ROWS_MAX: usize = 5000;

/// The archive's size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) trials: u32,
    pub(crate) seconds: u64,
    pub(crate) per_second: u64,
}

/// Reproducible pseudorandom numbers (Knuth's MMIX).
struct Numbers(u64);

impl Numbers {
    /// 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A service time: usually about a millisecond, rarely much longer.
    fn time_ns(&mut self) -> u64 {
        let tail = if self.next() > 0.99 { 30.0 * self.next() } else { 0.0 };
        ((0.2 - 0.8 * (1.0 - self.next()).ln() + tail) * 1e6) as u64
    }
}

/// Writes the archive to a directory.
pub(crate) fn make(place: &Path, size: Size) {
    let like = archive::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/archives/two"))).unwrap();
    let mut writer = Writer::create(place, &like.conditions, &like.scenario).unwrap();
    for index in 0..size.trials {
        let template = &like.trials[index as usize % like.trials.len()];
        let mut trial = Trial { index, block: index / 2, phases: Vec::new(), ..template.clone() };
        let mut files = writer.trial(index, &trial.configuration).unwrap();
        trial.folder = Some(files.name().to_owned());
        let mut numbers = Numbers(u64::from(index));
        let warm_s = size.seconds / 10;
        for (name, model, at_s, seconds) in
            [("warmup", Model::Closed, 0, warm_s), ("steady", Model::Open, warm_s, size.seconds - warm_s)]
        {
            let mut phase = PhaseRecord { name: name.into(), model, ..PhaseRecord::default() };
            (phase.at_s, phase.seconds) = (at_s as f64, seconds as f64);
            write_phase(&mut files, &mut phase, size.per_second, &mut numbers);
            trial.phases.push(phase);
        }
        for n in 0..size.seconds * 10 {
            files.sample(&sample(n, size.per_second / 10, &mut numbers)).unwrap();
        }
        files.close().unwrap();
        writer.finished(&trial).unwrap();
    }
    writer.close(false).unwrap();
}

fn write_phase(files: &mut archive::TrialFiles, phase: &mut PhaseRecord, per_second: u64, numbers: &mut Numbers) {
    let mut rows = Vec::new();
    let mut total = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    let open = phase.model == Model::Open;
    let all = phase.seconds as u64 * per_second;
    let every = (all as usize).div_ceil(ROWS_MAX) as u64;
    for second in 0..phase.seconds as u64 {
        let begin_ns = (phase.at_s as u64 + second) * SECOND_NS;
        let mut service = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        let mut response = service.clone();
        for n in 0..per_second {
            let (started_ns, time_ns) = (begin_ns + n * SECOND_NS / per_second, numbers.time_ns());
            let failed = numbers.next() > 0.9999;
            let waited_ns = time_ns / 10;
            if failed {
                phase.failed.reset += 1;
            } else {
                service.record(time_ns).unwrap();
                response.record(time_ns + waited_ns).unwrap();
                phase.ok += 1;
            }
            if failed || phase.ok.is_multiple_of(every) {
                rows.push(Row {
                    intended_ns: started_ns.saturating_sub(if open { waited_ns } else { 0 }),
                    started_ns,
                    connected_ns: started_ns,
                    first_byte_ns: started_ns + time_ns,
                    ended_ns: started_ns + time_ns,
                    body_bytes: 12,
                    request: Some(0),
                    connection: Some((n % 25) as u32),
                    status: if failed { 0 } else { 200 },
                    failure: failed.then_some("reset"),
                });
            }
        }
        let start = Duration::from_secs(1_700_000_000) + Duration::from_nanos(begin_ns);
        let response = open.then_some(&response);
        let times = IntervalTimes { service: &service, response, start, length: Duration::from_secs(1) };
        files.interval(&phase.name, &times).unwrap();
        total.add(&service).unwrap();
    }
    phase.requests = phase.ok + phase.failed.total();
    phase.achieved_per_s = phase.ok as f64 / phase.seconds;
    phase.service_ms = Quantiles::of(&total);
    phase.response_ms = phase.service_ms.filter(|_| open);
    files.requests(phase, &rows, 0).unwrap();
}

fn sample(n: u64, per_sample: u64, numbers: &mut Numbers) -> Sample {
    let mib = |mib: f64| (mib * 1_048_576.0) as u64;
    let rss = 60.0 + (n as f64 / 2000.0).min(2.0) * 20.0 + numbers.next();
    Sample {
        at_s: n as f64 / 10.0 + numbers.next() / 1000.0,
        rss_bytes: mib(rss),
        pss_bytes: None,
        anon_bytes: Some(mib(rss - 20.0)),
        charge_bytes: Some(mib(rss + 3.0)),
        threads: Some(25),
        heap_used_bytes: Some(mib(4.0 + (n % 70) as f64 / 10.0)),
        heap_committed_bytes: Some(mib(16.0)),
        metaspace_used_bytes: Some(mib(12.3)),
        direct_bytes: n.is_multiple_of(10).then(|| mib(8.0)),
        gc_count: Some(n / 70),
        allocated_bytes: Some(n << 20),
        gc_ms: Some(n as f64 / 70.0 * 1.234_567),
        ok: n * per_sample,
        failed: n / 1000,
    }
}

pub(crate) fn read(place: &Path) -> Vec<Evidence> {
    let archive = archive::read(place).unwrap();
    archive::evidence(place, &archive.trials)
}

/// Checks what a report relies on.
pub(crate) fn check(found: &[Evidence], size: Size) {
    assert_eq!(found.len(), size.trials as usize);
    for trial in found {
        assert_eq!(trial.missing, [] as [&str; 0]);
        assert!((1..=1200).contains(&trial.timeline.len()), "{}", trial.timeline.len());
        assert!((1..=300).contains(&trial.intervals.len()), "{}", trial.intervals.len());
        assert!((1..=5000).contains(&trial.requests.len()), "{}", trial.requests.len());
        assert_eq!(trial.spectra.len(), 3);
        let answers: u64 = trial.intervals.iter().map(|interval| interval.ok).sum();
        assert!(answers > size.seconds * size.per_second * 99 / 100, "{answers}");
    }
}

#[test]
fn a_synthetic_archive_is_read_completely() {
    let place = tempfile::tempdir().unwrap();
    let size = Size { trials: 2, seconds: 40, per_second: 50 };
    make(&place.path().join("x"), size);
    check(&read(&place.path().join("x")), size);
}
