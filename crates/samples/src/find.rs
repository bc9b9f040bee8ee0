//! Searches on a simulated server, for page tests. Their conclusions are drawn as in real searches.

use crate::documents;
use loadline_base::units::MIB;
use loadline_model::record::{
    CgroupRecord, ClassesRecord, Conditions, Document, FailureCause, FindOutcome, Heap, KneeRecord, Mark, Model,
    Outcome, Pages, PhaseRecord, ProbeStage, ProbeVerdict, Quantiles, SubjectWork, Trial, Unknowns,
};
use loadline_model::scenario::{Find, RamShare};
use loadline_search::{Attempt, Ruling, SearchSpec, conclude, next, rules};

/// Everything except heap and files.
const NATIVE: u64 = 60 * MIB;
/// Files used by the server, of which it needs at least the share [`HOT`] in memory.
const FILE: u64 = 50 * MIB;
const HOT: f64 = 0.55;
/// The smallest heap, and the size of an unbounded one.
const HEAP_MIN: u64 = 7 * MIB;
const HEAP: u64 = 64 * MIB;
/// The server's maximum rate, per second.
const RATE_MAX: f64 = 1234.0;

/// The default search.
pub const COURSE: SearchSpec = SearchSpec {
    unknowns: Unknowns::HeapAndLimit,
    step: 0.02,
    proofs: 5,
    limit_min: None,
    limit_max: 2048 * MIB,
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

/// A search with a line, a knee, and the limits of other sizing rules.
pub fn found() -> Document {
    let mut document = searched(&COURSE);
    let Some(find) = &mut document.find else { return document };
    let line = find.line.clone().unwrap();
    let heap = line.heap_bytes.unwrap();
    let set = find.heap_bytes.unwrap();
    find.options = vec![format!("-Xmx{}m", set / MIB), "-XX:+UseSerialGC".to_owned()];
    find.share_options = find.limit_bytes.map_or_else(Vec::new, |limit| RamShare::options(set, limit));
    find.knee =
        Some(KneeRecord { heap_bytes: heap + 16 * MIB, limit_bytes: line.limit_bytes + 16 * MIB, cpu_ratio: 0.82 });
    find.others = rules(heap, line.limit_bytes, Some(ClassesRecord { jdk: 27_000, application: 3_000 }));
    document
}

/// The highest rate with this limit.
pub fn highest_rate(limit: u64) -> Document {
    searched(&SearchSpec { unknowns: Unknowns::Rate, rate_per_s: Some(200.0), limit_max: limit, ..COURSE })
}

/// One limit, confirmed or refuted.
pub fn proved(limit: u64) -> Document {
    searched(&SearchSpec { unknowns: Unknowns::Limit, prove: Some(limit), ..COURSE })
}

/// Every possible end of a search, with its document.
pub fn endings() -> Vec<(FindOutcome, Document)> {
    let mut not_held = searched(&SearchSpec { trials_max: 1, ..COURSE });
    let reference = &mut not_held.trials[0];
    if let Some(probe) = &mut reference.probe {
        probe.verdict = ProbeVerdict::Fails;
        probe.why = vec!["p99.steady was 812 ms, but the target is p99<50ms".to_owned()];
        probe.cause = Some(FailureCause::Times);
    }
    not_held.find = Some(conclude(&COURSE, &find(), &not_held.trials));
    let mut never = searched(&COURSE);
    for probe in never.trials.iter_mut().skip(1).filter_map(|trial| trial.probe.as_mut()) {
        (probe.verdict, probe.cause) = (ProbeVerdict::Fails, Some(FailureCause::OomKill));
    }
    never.find = never.find.map(|find| loadline_model::record::FindRecord {
        outcome: FindOutcome::Never,
        text: "the target was met with ample memory, but not at any limit tried".to_owned(),
        line: None,
        warm: None,
        knee: None,
        limit_bytes: None,
        ..find
    });
    vec![
        (FindOutcome::Found, found()),
        (FindOutcome::Grows, grows()),
        (FindOutcome::AtLowerBound, searched(&SearchSpec { limit_min: Some(512 * MIB), ..COURSE })),
        (FindOutcome::NotHeld, not_held),
        (FindOutcome::Never, never),
        (FindOutcome::GivenUp, searched(&SearchSpec { trials_max: 9, ..COURSE })),
    ]
}

/// A search whose line passes, but whose soak fails at every limit.
fn grows() -> Document {
    searched_with(&COURSE, |trial| {
        if let Some(probe) = trial.probe.as_mut().filter(|probe| probe.stage == ProbeStage::Soak) {
            (probe.verdict, probe.cause) = (ProbeVerdict::Fails, Some(FailureCause::OomKill));
            probe.why = vec!["the kernel killed it because it ran out of memory".to_owned()];
        }
    })
}

/// A search in which every text is `text`.
pub fn hostile(text: &str) -> Document {
    documents::with_every_text(&found(), text, &[])
}

fn find() -> Find {
    let target = ["p99<50ms", "rate>=98%", "failed==0"].map(|text| text.parse().unwrap()).to_vec();
    Find { target, ..Find::default() }
}

/// The document of a complete search.
pub fn searched(spec: &SearchSpec) -> Document {
    searched_with(spec, |_| {})
}

/// The same, with `change` applied to each trial.
fn searched_with(spec: &SearchSpec, change: impl Fn(&mut Trial)) -> Document {
    let mut trials: Vec<Trial> = Vec::new();
    while let Some(attempt) = next(spec, &trials) {
        let mut made = trial(&attempt, trials.len() as u32);
        change(&mut made);
        trials.push(made);
    }
    let find = conclude(spec, &find(), &trials);
    Document { trials, find: Some(find), ..empty() }
}

fn empty() -> Document {
    let empty = documents::empty();
    let conditions = Conditions {
        started: "2026-11-22T04:36:17Z".to_owned(),
        command: "loadline find tiny-http.loadline.yaml --seed 1".to_owned(),
        load: vec!["steady: GET /hello, open, 200/s, 10s".to_owned()],
        ..empty.conditions.clone()
    };
    Document { conditions, ..empty }
}

fn trial(attempt: &Attempt, index: u32) -> Trial {
    let heap = attempt.heap.unwrap_or(HEAP);
    let anon = NATIVE + heap.min(HEAP);
    let file = if attempt.pages == Pages::Cold { FILE } else { 0 };
    let (cause, outcome) = match () {
        () if attempt.rate_per_s.is_some_and(|rate| rate > RATE_MAX) => (Some(FailureCause::Rate), Outcome::Completed),
        () if heap < HEAP_MIN => (Some(FailureCause::OutOfMemoryError), Outcome::SubjectFailed),
        () if attempt.limit < anon => (Some(FailureCause::OomKill), Outcome::Killed),
        () if attempt.limit < anon + (file as f64 * HOT) as u64 => (Some(FailureCause::FilePages), Outcome::Completed),
        () => (None, Outcome::Completed),
    };
    let why = match (cause, outcome) {
        (None, _) => Vec::new(),
        (_, Outcome::Completed) => vec!["p99.steady was 812 ms, but the target is p99<50ms".to_owned()],
        _ => vec!["the server was killed in phase warmup".to_owned()],
    };
    let verdict = if cause.is_none() { ProbeVerdict::Holds } else { ProbeVerdict::Fails };
    let cgroup = CgroupRecord {
        limit_bytes: attempt.limit,
        peak_bytes: Some((anon + file).min(attempt.limit)),
        anon_peak_bytes: Some(anon.min(attempt.limit)),
        file_bytes: Some(file.min(attempt.limit.saturating_sub(anon))),
        oom_kills: u64::from(outcome == Outcome::Killed),
        ..CgroupRecord::default()
    };
    let asked = attempt.heap.is_none() && index == 0;
    Trial {
        outcome,
        why: (outcome != Outcome::Completed).then(|| "the server was killed in phase warmup".to_owned()),
        command: ["java", "-jar", "tiny-http.jar", "8080"].map(str::to_owned).to_vec(),
        limit_bytes: Some(attempt.limit),
        ready_s: Some(0.4),
        marks: if asked { vec![loaded(heap)] } else { Vec::new() },
        phases: phases(outcome, cause, heap, attempt.rate_per_s.unwrap_or(200.0)),
        cgroup: Some(cgroup),
        probe: Some(attempt.ruled(Ruling { verdict, why, missed: Vec::new(), cause })),
        ..Trial::new("serial", 0, index)
    }
}

/// A smaller heap costs more CPU time; a killed trial did not get past its warm-up.
fn phases(outcome: Outcome, cause: Option<FailureCause>, heap: u64, asked: f64) -> Vec<PhaseRecord> {
    let (rate, p99) = match cause {
        None => (asked, 12.1),
        Some(FailureCause::Rate) => (RATE_MAX, 812.0),
        Some(_) => (31.5, 812.0),
    };
    let cpu_us = 400.0 * (1.0 + HEAP_MIN as f64 / heap as f64);
    let phase = |name: &str, at_s: f64| {
        let ok = (rate * 10.0) as u64;
        let times = Quantiles { p50: p99 / 10.0, p99, max: p99 * 2.0, ..Quantiles::default() };
        PhaseRecord {
            name: name.to_owned(),
            model: Model::Open,
            at_s,
            seconds: 10.0,
            requests: ok,
            ok,
            offered_per_s: Some(asked),
            achieved_per_s: rate,
            response_ms: Some(times),
            subject: SubjectWork { cpu_s: Some(cpu_us * ok as f64 / 1e6), ..SubjectWork::default() },
            ..PhaseRecord::default()
        }
    };
    let mut phases = vec![phase("warmup", 0.5)];
    phases.extend((outcome == Outcome::Completed).then(|| phase("steady", 10.5)));
    phases
}

fn loaded(heap: u64) -> Mark {
    let owners = [("java_heap.used", heap), ("cds", 12 * MIB), ("malloc.live", 30 * MIB), ("libjvm", 20 * MIB)];
    let account = documents::account(&owners);
    Mark {
        name: "loaded".to_owned(),
        at_s: 20.0,
        rss_bytes: account.total_bytes,
        heap: Heap { live_bytes: Some(5 * MIB), ..Heap::default() },
        account: Some(account),
        ..Mark::default()
    }
}
