//! The page of a search for the load line: its picture, its lines to copy, at any width.

use super::browser::Browser;
use super::fixtures;
use super::page::fits;
use loadline::record::{
    CgroupRecord, ClassesRecord, Document, FailureCause, KneeRecord, Model, Outcome, Pages, PhaseRecord, ProbeVerdict,
    Quantiles, SubjectWork, Trial, Unknowns,
};
use loadline::report;
use loadline::scenario::{Find, RamShare};
use loadline::series::search::{Attempt, Ruling, SearchSpec, conclude, next, rules};

const MIB: u64 = 1 << 20;
const COURSE: SearchSpec = SearchSpec {
    unknowns: Unknowns::HeapAndLimit,
    step: 0.02,
    proofs: 5,
    limit_min: None,
    limit_max: 1024 * MIB,
    rate_per_s: None,
    prove: None,
    headroom: 0.1,
    soak_s: Some(60.0),
    seconds_max: None,
    trials_max: 60,
    warm: true,
    starts_alone: false,
    direct_given: false,
    ram_share: RamShare { small: 0.5, large: 0.25 },
};

/// A search on a made-up server: 7 MiB of heap, 60 of its own, 50 of files of which it needs half.
pub(crate) fn searched() -> Document {
    let mut trials: Vec<Trial> = Vec::new();
    let mut noise = fixtures::Noise::new(7);
    while let Some(attempt) = next(&COURSE, &trials) {
        trials.push(trial(&attempt, trials.len() as u32, &mut noise));
    }
    let target = ["p99<50ms", "rate>=98%"].map(|text| text.parse().unwrap()).to_vec();
    let mut find = conclude(&COURSE, &Find { target, ..Find::default() }, &trials);
    let line = find.line.clone().unwrap();
    let heap = line.heap_bytes.unwrap();
    find.options = vec![format!("-Xmx{}m", heap / MIB), "-XX:+UseSerialGC".to_owned()];
    find.knee =
        Some(KneeRecord { heap_bytes: heap + 12 * MIB, limit_bytes: line.limit_bytes + 12 * MIB, cpu_ratio: 0.8 });
    find.others = rules(heap, line.limit_bytes, Some(ClassesRecord { jdk: 27_000, application: 3_000 }));
    Document { find: Some(find), ..fixtures::document(trials) }
}

fn trial(attempt: &Attempt, index: u32, noise: &mut fixtures::Noise) -> Trial {
    let (heap, files) = (attempt.heap.unwrap_or(40 * MIB), if attempt.pages == Pages::Cold { 50 * MIB } else { 0 });
    let anon = 60 * MIB + heap;
    let (cause, outcome) = match () {
        () if heap < 7 * MIB => (Some(FailureCause::OutOfMemoryError), Outcome::SubjectFailed),
        () if attempt.limit < anon => (Some(FailureCause::OomKill), Outcome::Killed),
        () if attempt.limit < anon + files / 2 => (Some(FailureCause::FilePages), Outcome::Completed),
        () => (None, Outcome::Completed),
    };
    let (rate, p99) =
        if cause.is_none() { (200.0, 12.0 + 2.0 * noise.next()) } else { (31.0, 800.0 + 900.0 * noise.next()) };
    let cpu_us = 400.0 * (1.0 + 0.05 * noise.next() + 3.0 * MIB as f64 / heap as f64);
    let phase = PhaseRecord {
        name: "steady".to_owned(),
        model: Model::Open,
        seconds: 10.0,
        requests: 2000,
        ok: 2000,
        offered_per_s: Some(200.0),
        achieved_per_s: rate,
        response_ms: Some(Quantiles { p50: p99 / 9.0, p99, ..Quantiles::default() }),
        subject: SubjectWork { cpu_s: Some(cpu_us * 2000.0 / 1e6), ..SubjectWork::default() },
        ..PhaseRecord::default()
    };
    let cgroup = CgroupRecord {
        limit_bytes: attempt.limit,
        peak_bytes: Some((anon + files).min(attempt.limit)),
        anon_peak_bytes: Some(anon.min(attempt.limit)),
        file_bytes: Some(files.min(attempt.limit.saturating_sub(anon))),
        ..CgroupRecord::default()
    };
    let verdict = if cause.is_none() { ProbeVerdict::Holds } else { ProbeVerdict::Fails };
    let why = cause.map(|_| format!("p99.steady was {p99:.0} ms; the target is p99<50ms")).into_iter().collect();
    let probe = attempt.ruled(Ruling { verdict, why, missed: Vec::new(), cause });
    let mut trial = Trial::new("serial", 0, index);
    (trial.outcome, trial.limit_bytes, trial.ready_s) = (outcome, Some(attempt.limit), Some(0.4));
    trial.phases = if outcome == Outcome::Completed { vec![phase] } else { Vec::new() };
    (trial.cgroup, trial.probe) = (Some(cgroup), Some(probe));
    trial
}

#[test]
fn the_picture_of_a_search_is_drawn_and_nothing_is_wider_than_the_page() {
    let Some(browser) = Browser::find() else { return };
    let page = report::html(&searched(), &[], &[]);
    browser.write(&page);
    for width in [400, 1280] {
        let picture = browser.screenshot(width, 4000);
        assert!(picture.count([0x00, 0x72, 0xb2]) > 300, "filled dots at {width} pixels");
        assert!(picture.count([0xc4, 0x4e, 0x00]) > 50, "hollow dots at {width} pixels");
    }
    fits(&browser, &page);
}

#[test]
fn the_picture_of_a_search_is_a_file_of_its_own() {
    let Some(browser) = Browser::find() else { return };
    let plots = report::plots(&searched(), &[]);
    assert_eq!(plots[0].name, "load-line");
    assert!(!plots[0].svg.contains("var(") && !plots[0].svg.contains("NaN") && !plots[0].svg.contains("inf"));
    let picture = browser.draw(&plots[0]);
    assert!(picture.count([0x00, 0x72, 0xb2]) > 300 && picture.count([0xc4, 0x4e, 0x00]) > 100);
}
