//! Each load tool's output goes through its parser; truncated anywhere, it yields less data, but no wrong data.

use super::{folder, text};
use loadline::load::Failures;
pub(super) use loadline::load::external::read;
use loadline::load::external::{Reported, Times, Timing, Tool};

/// All samples of load tools.
pub(super) fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder().join("drivers")).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() > 30, "{names:?}");
    names
}

/// Parses a sample as the output of the tool in its name.
fn of(name: &str) -> Reported {
    let tool = name.split(['-', '.']).next().unwrap();
    read(tool, &text(&format!("drivers/{name}"))).unwrap_or_else(|| panic!("{name} was not parsed"))
}

fn near(found: Option<f64>, expect: f64, what: &str) {
    let found = found.unwrap_or_else(|| panic!("no {what}"));
    assert!((found - expect).abs() <= 1e-9 * expect.abs().max(1.0), "{what}: {found}, expected {expect}");
}

/// p50, p90, p99, p99.9, maximum, and mean in milliseconds.
#[track_caller]
fn times(found: &Times, expect: [Option<f64>; 6]) {
    let found = [found.p50, found.p90, found.p99, found.p999, found.max, found.mean];
    let near = |pair: (&Option<f64>, &Option<f64>)| match pair {
        (Some(found), Some(expect)) => (found - expect).abs() < 1e-9 * expect.max(1.0),
        (found, expect) => found == expect,
    };
    assert!(found.iter().zip(&expect).all(near), "{found:?}, expected {expect:?}");
}

#[track_caller]
fn counts(reported: &Reported, requests: u64, failures: Failures) {
    assert_eq!((reported.requests, reported.failed), (requests, Some(failures)));
    assert_eq!(reported.ok(), requests - failures.total());
}

#[test]
fn wrk_reports_with_and_without_latency_are_read() {
    let plain = of("wrk.txt");
    assert_eq!((plain.tool, plain.timing), (Tool::Wrk, Timing::Service));
    counts(&plain, 115_487, Failures::default());
    near(plain.seconds, 2.11, "time");
    near(plain.requests_per_s, 54_807.28, "rate");
    assert_eq!(plain.received_bytes, Some((11.34 * 1_048_576.0) as u64));
    times(&plain.times_ms, [None, None, None, None, Some(3.99), Some(0.10851)]);
    let with = of("wrk-latency.txt");
    counts(&with, 640, Failures::default());
    times(&with.times_ms, [Some(30.62), Some(33.28), Some(34.59), None, Some(34.69), Some(31.06)]);
    times(&of("wrk-seconds.txt").times_ms, [None, None, None, None, Some(1200.0), Some(1200.0)]);
}

#[test]
fn wrk_reports_with_failures_are_read() {
    // 4009 failed reads in addition to 8018 responses.
    counts(&of("wrk-errors.txt"), 12_027, Failures { reset: 4009, ..Failures::default() });
    counts(&of("wrk-non2xx.txt"), 26_737, Failures { status: 26_737, ..Failures::default() });
    // All eight responses were too late; the table's zeros are not times.
    let late = of("wrk-timeouts.txt");
    counts(&late, 8, Failures { timeout: 8, ..Failures::default() });
    times(&late.times_ms, [None; 6]);
}

#[test]
fn wrk2_times_begin_at_the_intended_start() {
    let reported = of("wrk2.txt");
    assert_eq!((reported.tool, reported.timing), (Tool::Wrk2, Timing::Response));
    counts(&reported, 60_021, Failures { timeout: 3, ..Failures::default() });
    // Not from the uncorrected distribution below it.
    times(&reported.times_ms, [Some(6.67), Some(9.14), Some(11.18), Some(12.30), Some(12.5), Some(6.6)]);
}

#[test]
fn apache_bench_reports_are_read() {
    let slow = of("ab.txt");
    assert_eq!((slow.tool, slow.timing), (Tool::Ab, Timing::Service));
    counts(&slow, 200, Failures::default());
    assert!(slow.times_ms.p50.is_some_and(|p50| (30.0..33.0).contains(&p50)), "{:?}", slow.times_ms);
    let alive = of("ab-keepalive.txt");
    counts(&alive, 2000, Failures::default());
    near(alive.seconds, 0.038, "time");
    near(alive.requests_per_s, 52_957.69, "rate");
    assert_eq!(alive.received_bytes, Some(206_000));
    // A time that ab prints as 0 ms is below its resolution.
    times(&alive.times_ms, [None, None, None, None, Some(4.0), None]);
    counts(&of("ab-non2xx.txt"), 500, Failures { status: 500, ..Failures::default() });
    counts(&of("ab-failed.txt"), 500, Failures { other: 396, ..Failures::default() });
    counts(&of("ab-reset.txt"), 300, Failures { other: 200, ..Failures::default() });
    assert_eq!(read("ab", &text("drivers/ab-refused.txt")), None);
}

#[test]
fn oha_reports_as_text_and_json_are_read() {
    let reported = of("oha.txt");
    assert_eq!((reported.tool, reported.timing), (Tool::Oha, Timing::Service));
    counts(&reported, 2000, Failures::default());
    near(reported.seconds, 0.041_962_3, "time");
    times(&reported.times_ms, [Some(0.0944), Some(0.1165), Some(0.1806), Some(1.1038), Some(2.0413), Some(0.1002)]);
    // Five requests were in flight at the end.
    counts(&of("oha-slow.txt"), 320, Failures::default());
    times(
        &of("oha-slower.txt").times_ms,
        [Some(1202.9), Some(1202.9), Some(1202.9), Some(1202.9), Some(1202.9), Some(1202.5)],
    );
    counts(&of("oha-mixed.txt"), 500, Failures { status: 100, ..Failures::default() });
    counts(&of("oha-errors.txt"), 300, Failures { reset: 100, ..Failures::default() });
    let refused = of("oha-refused.txt");
    counts(&refused, 10, Failures { refused: 10, ..Failures::default() });
    times(&refused.times_ms, [None; 6]);
    let document = of("oha-errors.json");
    counts(&document, 300, Failures { reset: 100, ..Failures::default() });
    assert_eq!(document.received_bytes, Some(2800));
    let expect = [0.213, 0.519287, 1.381043, 1.475876, 1.475876, 0.286_451_875].map(Some);
    times(&document.times_ms, expect);
    assert!(of("oha.json").requests > 100);
    times(&of("oha-refused.json").times_ms, [None; 6]);
    let corrected = read("oha -q 100 --latency-correction", &text("drivers/oha-corrected.txt")).unwrap();
    assert_eq!(corrected.timing, Timing::Response);
}

#[test]
fn k6_text_reports_are_read() {
    let compact = of("k6-compact.txt");
    assert_eq!((compact.tool, compact.timing), (Tool::K6, Timing::Service));
    counts(&compact, 315, Failures::default());
    near(compact.requests_per_s, 155.836131, "rate");
    assert!(compact.seconds.is_some_and(|seconds| (2.0..2.1).contains(&seconds)));
    times(&compact.times_ms, [Some(31.39), Some(33.96), None, None, Some(41.36), Some(31.97)]);
    let full = of("k6-full.txt");
    counts(&full, 19_942, Failures { other: 3988, ..Failures::default() });
    // These times are of responses with an expected status.
    times(&full.times_ms, [Some(0.19018), Some(0.57124), Some(6.21), Some(9.76), Some(16.37), Some(0.4507)]);
    counts(&of("k6-threshold.txt"), 24_063, Failures::default());
    counts(&of("k6-legacy.txt"), 24_645, Failures::default());
    counts(&of("k6-052.txt"), 32_824, Failures { other: 6565, ..Failures::default() });
    let old = of("k6-052-stats.txt");
    counts(&old, 320, Failures::default());
    times(&old.times_ms, [Some(31.18), Some(31.64), Some(34.84), Some(35.35), Some(35.35), Some(31.28)]);
    let refused = of("k6-refused.txt");
    counts(&refused, 35_166, Failures { other: 35_166, ..Failures::default() });
    times(&refused.times_ms, [None; 6]);
}

#[test]
fn k6_json_reports_are_read() {
    let handled = of("k6-handle.json");
    counts(&handled, 315, Failures::default());
    assert_eq!(handled.received_bytes, Some(32_445));
    let expect = [31.632441, 33.7974482, 39.35296086, 39.958942806, 40.008687, 32.05008073968254].map(Some);
    times(&handled.times_ms, expect);
    let exported = of("k6-export.json");
    counts(&exported, 22_298, Failures { other: 4460, ..Failures::default() });
    near(exported.times_ms.p50, 0.16509, "median");
    let new = of("k6-new.json");
    counts(&new, 315, Failures::default());
    near(new.seconds, 2.002600565, "time");
    times(&new.times_ms, [Some(31.247011), Some(33.1779948), None, None, Some(35.775484), Some(31.57075182539685)]);
}

#[test]
fn h2load() {
    let reported = of("h2load.txt");
    assert_eq!((reported.tool, reported.timing), (Tool::H2load, Timing::Service));
    counts(&reported, 2000, Failures::default());
    near(reported.seconds, 0.07161, "time");
    near(reported.requests_per_s, 27_928.67, "rate");
    assert_eq!(reported.received_bytes, Some(206_000));
    times(&reported.times_ms, [None, None, None, None, Some(5.53), Some(0.177)]);
    counts(&of("h2load-duration.txt"), 320, Failures::default());
    counts(&of("h2load-non2xx.txt"), 200, Failures { status: 200, ..Failures::default() });
    counts(&of("h2load-errors.txt"), 300, Failures { other: 292, ..Failures::default() });
    times(&of("h2load-seconds.txt").times_ms, [None, None, None, None, Some(1210.0), Some(1200.0)]);
    let refused = of("h2load-refused.txt");
    counts(&refused, 10, Failures { other: 10, ..Failures::default() });
    times(&refused.times_ms, [None; 6]);
}

#[test]
fn hyperfoil() {
    let reported = of("hyperfoil-wrk.txt");
    assert_eq!((reported.tool, reported.timing), (Tool::Hyperfoil, Timing::Service));
    counts(&reported, 79_931, Failures { status: 12, reset: 1, timeout: 7, ..Failures::default() });
    near(reported.seconds, 10.001, "time");
    let expect = [Some(1.18), Some(1.52), Some(2.74), Some(6.03), Some(12.58), Some(1.24)];
    times(&reported.times_ms, expect);
    let document = of("hyperfoil-stats.json");
    counts(&document, 79_931, Failures { status: 12, reset: 1, timeout: 7, ..Failures::default() });
    times(&document.times_ms, [Some(1.18), Some(1.52), Some(2.74), Some(6.03), Some(12.583), Some(1.24)]);
}

/// Whether all values in the truncated one are also in the complete one.
fn is_part_of(cut: &Reported, whole: &Reported) -> bool {
    let part = |cut: Option<f64>, whole: Option<f64>| cut.is_none() || cut == whole;
    let (ms, all) = (&cut.times_ms, &whole.times_ms);
    (cut.tool, cut.requests, cut.timing) == (whole.tool, whole.requests, whole.timing)
        && (cut.failed.is_none() || cut.failed == whole.failed)
        && (cut.received_bytes.is_none() || cut.received_bytes == whole.received_bytes)
        && part(cut.seconds, whole.seconds)
        && part(cut.requests_per_s, whole.requests_per_s)
        && [(ms.p50, all.p50), (ms.p90, all.p90), (ms.p99, all.p99), (ms.p999, all.p999)]
            .into_iter()
            .chain([(ms.max, all.max), (ms.mean, all.mean)])
            .all(|(cut, whole)| part(cut, whole))
}

#[test]
fn a_truncated_report_never_has_wrong_values() {
    for name in names() {
        let text = text(&format!("drivers/{name}"));
        let Some(whole) = read("./load.sh", &text) else {
            assert_eq!(name, "ab-refused.txt");
            continue;
        };
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let Some(mut cut) = read("./load.sh", &text[..end]) else { continue };
            // Hyperfoil's last line has more failures than the previous one; only its exit shows that it is the last.
            if name == "hyperfoil-wrk.txt" && cut.failed.is_some_and(|failures| failures.status == 0) {
                cut.failed = None;
            }
            assert!(is_part_of(&cut, &whole), "{name}, {end} bytes: {cut:?} is not part of {whole:?}");
        }
    }
}
