//! A simulated tuning for page tests, which is confirmed and has a remedy for each fate, and every other ending. The
//! numbers are invented, but as consistent as measured ones.

use crate::documents;
use crate::find;
use loadline_base::order::Order as _;
use loadline_base::units::{Bytes, MIB};
use loadline_model::record::{
    ComparisonRecord, Conditions, ConfirmationRecord, DifferenceVerdict, Document, Fate, FindRecord, Jvm, LeastRecord,
    LineRecord, LinesRecord, Missed, NoiseRecord, Outcome, OwnerBytes, OwnerGain, PhaseRate, PriceClass, ProbeVerdict,
    RemedyRecord, SettingRecord, Trial, TuneOutcome, TuneRecord, TuneStage, TuneTrialRecord, Unit,
};
use loadline_model::scenario::{Change, Objective};

/// Owners and their memory, unchanged and with the winner, in MiB.
const OWNERS: [(&str, f64, f64); 9] = [
    ("java_heap.used", 180.4, 118.0),
    ("java_heap.free", 61.0, 6.2),
    ("cds", 13.1, 13.1),
    ("metaspace", 38.8, 38.8),
    ("code_cache", 31.5, 31.2),
    ("gc", 22.7, 16.4),
    ("malloc.live", 96.3, 95.8),
    ("malloc.direct", 611.0, 548.2),
    ("malloc.retained", 358.2, 133.0),
];
/// The IDs of the answer's remedies.
pub const WINNER: [&str; 3] = ["malloc.arenas", "malloc.trim", "heap.max"];
const ARENAS: &str = "MALLOC_ARENA_MAX=1";
const TRIM: &str = "-XX:TrimNativeHeapInterval=2000";
const HEAP: &str = "-Xmx128m";
const C1: &str = "-XX:TieredStopAtLevel=1";
const THRESHOLDS: &str = "MALLOC_TRIM_THRESHOLD_=131072";

fn bytes(mib: f64) -> f64 {
    mib * MIB as f64
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A tuning that kept some remedies, and has a remedy of every other fate.
pub fn proved() -> Document {
    let tune = TuneRecord {
        outcome: TuneOutcome::Proved,
        text: "three of 14 remedies help and were confirmed together".to_owned(),
        objective: Objective::Rss,
        price: 0.02,
        price_cpus: Some(0.012),
        target: owned(&["p99<50ms", "rate>=98%", "failed==0"]),
        rates: vec![PhaseRate { phase: "steady".to_owned(), rate_per_s: 200.0 }],
        as_is: path().into_iter().next(),
        answer: owned(&[ARENAS, TRIM, HEAP]),
        changes: vec![
            Change::Env(vec![("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())]),
            Change::Jvm(owned(&[TRIM])),
            Change::HeapMax(Bytes::mib(128)),
        ],
        gains: gains(),
        owners: owner_gains(),
        confirmations: vec![
            ConfirmationRecord {
                remedies: owned(&["malloc.arenas", "malloc.trim", "heap.max", "heap.ratios"]),
                confirmed: false,
                blocks: 5,
                price: 0.02,
                why: "p99.steady was 61.0 ms in block 3, but the target is p99<50ms".to_owned(),
            },
            ConfirmationRecord {
                remedies: owned(&WINNER),
                confirmed: true,
                blocks: 5,
                price: 0.02,
                why: String::new(),
            },
        ],
        remedies: remedies(),
        path: path(),
        // The unchanged setting, the winner, and one that costs too much.
        front: [0, 3, 6].map(|at| path()[at].clone()).to_vec(),
        lines: Some(LinesRecord { as_is: Some(line(1212)), tuned: Some(line(873)) }),
        noise: Some(NoiseRecord { bytes: bytes(2.3), cpu: Some(0.007) }),
        doubts: vec!["the load was closed; the first trial set the constant rate of steady to 200/s".to_owned()],
        trials: 31,
        seconds: 1104.0,
    };
    document(tune)
}

/// A tuning's document with its trials.
pub fn document(tune: TuneRecord) -> Document {
    let base = find::found();
    let conditions = Conditions {
        scenario: "tiny-db".to_owned(),
        command: "loadline tune tiny-db.loadline.yaml --seed 1".to_owned(),
        load: vec!["steady: GET /query, open, 200/s, 30s".to_owned(), "rest: idle for 10s".to_owned()],
        ..base.conditions.clone()
    };
    let trials = trials(tune.outcome);
    Document { conditions, trials, find: None, tune: Some(tune), ..base }
}

/// Every possible end of a tuning, with its document.
pub fn endings() -> Vec<(TuneOutcome, Document)> {
    let other = |outcome: TuneOutcome, change: &dyn Fn(&mut TuneRecord)| {
        let mut tune = proved().tune.unwrap();
        tune.outcome = outcome;
        (tune.answer, tune.changes, tune.gains, tune.owners) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        tune.lines = None;
        change(&mut tune);
        (outcome, document(tune))
    };
    let mut unpriced = proved();
    if let Some(tune) = &mut unpriced.tune {
        tune.outcome = TuneOutcome::Unpriced;
        tune.text = "do not set it yet: its cost is not confirmed".to_owned();
        let kept = tune.remedies.iter().filter(|of| of.fate == Fate::Kept).map(|of| of.id.clone()).collect();
        let why = "CPU time per request +1.4% (up to +9.1% is possible), but the price limit is 2.0%; confirming it \
            would take about 60 blocks of two trials";
        let attempt =
            ConfirmationRecord { remedies: kept, confirmed: false, blocks: 5, price: 0.02, why: why.to_owned() };
        (tune.confirmations, tune.lines) = (vec![attempt], None);
    }
    vec![
        (TuneOutcome::Proved, proved()),
        other(TuneOutcome::NothingProved, &|tune| {
            tune.text = "no savings confirmed: no remedy saved enough to measure".to_owned();
            tune.confirmations.truncate(1);
            tune.remedies.retain(|of| !matches!(of.fate, Fate::Kept));
            tune.front.truncate(1);
        }),
        other(TuneOutcome::NotHeld, &|tune| {
            let why = "the unchanged server misses the target: p99.steady was 812 ms, but the target is p99<50ms";
            tune.text = why.to_owned();
            if let Some(as_is) = &mut tune.as_is {
                as_is.holds = false;
                as_is.why = owned(&[
                    "p99.steady was 812 ms, but the target is p99<50ms",
                    "rate.steady was 91.2% of the offered rate, but the target is 98%",
                ]);
            }
            (tune.path, tune.front, tune.confirmations) = (Vec::new(), Vec::new(), Vec::new());
            let untried = |of: &mut RemedyRecord| {
                (of.fate, of.saved_bytes, of.cpu_ratio) = (Fate::NotTried, None, None);
                of.why = "the unchanged server misses the target".to_owned();
            };
            tune.remedies.iter_mut().for_each(untried);
            (tune.trials, tune.seconds) = (3, 95.0);
        }),
        other(TuneOutcome::Planned, &|tune| {
            tune.text = "nothing has been tried yet".to_owned();
            (tune.path, tune.front, tune.confirmations) = (Vec::new(), Vec::new(), Vec::new());
            for of in tune.remedies.iter_mut().filter(|of| of.fate != Fate::NotTried) {
                (of.fate, of.saved_bytes, of.cpu_ratio, of.why) = (Fate::Planned, None, None, String::new());
            }
            (tune.trials, tune.seconds) = (3, 95.0);
        }),
        other(TuneOutcome::GivenUp, &|tune| {
            tune.text = "no result after 12 trials".to_owned();
            tune.confirmations.clear();
            for of in tune.remedies.iter_mut().filter(|of| of.fate == Fate::Kept) {
                (of.fate, of.saved_bytes, of.cpu_ratio) = (Fate::Planned, None, None);
            }
        }),
        (TuneOutcome::Unpriced, unpriced),
    ]
}

/// A tuning in which every text is `text`.
pub fn hostile(text: &str) -> Document {
    let mut document = documents::with_every_text(&proved(), text, &["changes"]);
    let own = || text.to_owned();
    let tune = document.tune.as_mut().unwrap();
    tune.changes = vec![
        Change::Env(vec![(own(), own())]),
        Change::Jvm(vec![own()]),
        Change::Preload(Some(own())),
        Change::Args(vec![own()]),
        Change::Code(text.into()),
    ];
    document
}

/// Owners at `share` of the way from unchanged memory to the winner's.
fn setting(ids: &[&str], options: &[&str], stage: TuneStage, [mib, cpu, share]: [f64; 3]) -> SettingRecord {
    let held = |(owner, before, after): (&str, f64, f64)| OwnerBytes {
        owner: owner.to_owned(),
        bytes: bytes(before + (after - before) * share),
    };
    SettingRecord {
        remedies: owned(ids),
        options: owned(options),
        stage,
        trials: if stage == TuneStage::Baseline { 3 } else { 2 },
        holds: true,
        bytes: Some(bytes(mib)),
        cpu_ratio: Some(cpu),
        owners: OWNERS.map(held).to_vec(),
        why: Vec::new(),
    }
}

fn path() -> Vec<SettingRecord> {
    let all = ["malloc.arenas", "malloc.trim", "malloc.thresholds", "heap.max", "cds.archive"];
    let all_options = [ARENAS, TRIM, THRESHOLDS, HEAP, "-XX:SharedArchiveFile=app.jsa"];
    // One more remedy than the winner uses.
    let race = |id: &str, option: &str, numbers: [f64; 3]| {
        setting(&[&WINNER[..], &[id]].concat(), &[ARENAS, TRIM, HEAP, option], TuneStage::Race, numbers)
    };
    let broken = SettingRecord {
        holds: false,
        why: owned(&["p99.steady was 118 ms, but the target is p99<50ms"]),
        ..race("gc.parallel", "-XX:+UseParallelGC", [1064.9, 0.981, 0.85])
    };
    vec![
        setting(&[], &[], TuneStage::Baseline, [1413.0, 1.0, 0.0]),
        setting(&all, &all_options, TuneStage::Bundle, [1000.6, 1.011, 1.0]),
        setting(&all[1..], &all_options[1..], TuneStage::LeaveOut, [1096.0, 1.012, 0.77]),
        setting(&WINNER, &[ARENAS, TRIM, HEAP], TuneStage::LeaveOut, [1000.2, 1.004, 1.0]),
        setting(&[WINNER[0], WINNER[2]], &[ARENAS, HEAP], TuneStage::LeaveOut, [1208.7, 1.001, 0.5]),
        broken,
        race("jit.c1", C1, [962.3, 1.289, 1.1]),
    ]
}

/// Every remedy: ID, effect, setting, maximum saving in MiB, and fate.
const REMEDIES: [(&str, &str, &str, Option<u64>, Fate); 14] = [
    ("malloc.arenas", "makes all threads share one malloc arena", ARENAS, Some(286), Fate::Kept),
    ("malloc.trim", "makes the JVM trim malloc every 2 s", TRIM, Some(286), Fate::Kept),
    ("malloc.thresholds", "fixes malloc's thresholds", THRESHOLDS, Some(286), Fate::NoEffect),
    ("heap.max", "caps the heap", HEAP, Some(241), Fate::Kept),
    ("cds.archive", "loads classes from an archive", "-XX:SharedArchiveFile=app.jsa", None, Fate::NotMissed),
    ("heap.ratios", "makes the heap shrink sooner", "-XX:MaxHeapFreeRatio=20", Some(61), Fate::NotConfirmed),
    ("jit.c1", "uses only the C1 compiler", C1, Some(52), Fate::TooCostly),
    ("gc.parallel", "uses the Parallel collector", "-XX:+UseParallelGC", Some(16), Fate::Harmful),
    ("try.1", "as you specified it", "-XX:MaxHeapFre=10", None, Fate::Refused),
    ("try.2", "as you specified it", "MALLOC_CONF=narenas:1", None, Fate::NotInForce),
    ("gc.shenandoah", "uses the Shenandoah collector", "-XX:+UseShenandoahGC", None, Fate::NotTried),
    ("heap.soft_max", "sets a soft limit for the heap", "", None, Fate::NotTried),
    ("heap.headers", "shrinks object headers", "", None, Fate::NotTried),
    ("netty.arenas", "uses fewer Netty arenas", "", Some(0), Fate::NotTried),
];
/// Each measured remedy's saving in MiB, and its ratio of CPU time per request.
const WEIGHED: [(&str, f64, f64); 8] = [
    ("malloc.arenas", 95.4, 0.999),
    ("malloc.trim", 208.5, 1.003),
    ("malloc.thresholds", 0.3, 1.007),
    ("heap.max", 108.9, 1.002),
    ("cds.archive", 0.4, 1.0),
    ("heap.ratios", 14.0, 1.016),
    ("jit.c1", 37.9, 1.289),
    ("gc.parallel", -64.7, 0.981),
];
const WHY: [(&str, &str); 11] = [
    ("malloc.thresholds", "it saved 0.3 MiB; less than 4.6 MiB cannot be measured"),
    ("cds.archive", "without it, the others save as much"),
    ("heap.ratios", "p99.steady was 61.0 ms in block 3 of the confirmation, but the target is p99<50ms"),
    ("jit.c1", "it saves 37.9 MiB, but CPU time per request changes by +28.9%"),
    ("gc.parallel", "memory grew by 64.7 MiB, and p99.steady was 118 ms, but the target is p99<50ms"),
    ("try.1", "Unrecognized VM option 'MaxHeapFre=10'"),
    ("try.2", "the launcher gives the JVM its own environment"),
    ("gc.shenandoah", "this JVM has no such flag"),
    ("heap.soft_max", "this JVM has no such flag"),
    ("heap.headers", "JDK-8380060 corrupts byte arrays in this release"),
    ("netty.arenas", "it could save at most 0.0 MiB"),
];

fn remedies() -> Vec<RemedyRecord> {
    let of = |(id, what, option, bound, fate): (&str, &str, &str, Option<u64>, Fate)| {
        let weighed = WEIGHED.iter().find(|of| of.0 == id);
        RemedyRecord {
            id: id.to_owned(),
            what: what.to_owned(),
            options: if option.is_empty() { Vec::new() } else { owned(&[option]) },
            price: match id {
                "jit.c1" | "gc.parallel" => PriceClass::Cpu,
                "heap.headers" => PriceClass::Program,
                _ => PriceClass::Free,
            },
            gain_bytes_max: bound.map(|mib| mib * MIB),
            fate,
            why: WHY.iter().find(|of| of.0 == id).map_or("", |of| of.1).to_owned(),
            blames: None,
            saved_bytes: weighed.map(|of| bytes(of.1)),
            cpu_ratio: weighed.map(|of| of.2),
        }
    };
    REMEDIES.map(of).to_vec()
}

fn gains() -> Vec<ComparisonRecord> {
    use DifferenceVerdict::{Better as Improved, Equivalent};
    let row = |metric: &str, unit: Unit, [before, after]: [f64; 2], ends: [f64; 2], verdict: DifferenceVerdict| {
        let [ratio_low, ratio_high] = ends.map(|end| Some(1.0 + end / before));
        let [low, high] = ends.map(Some);
        ComparisonRecord {
            baseline: "as is".to_owned(),
            candidate: "tuned".to_owned(),
            confidence_each: 0.987,
            least: if unit == Unit::Bytes { LeastRecord::Absolute(bytes(1.0)) } else { LeastRecord::Relative(0.02) },
            blocks: 5,
            ratio_low,
            ratio_high,
            low,
            high,
            ..documents::comparison(metric, unit, [before, after], verdict)
        }
    };
    vec![
        row("rss", Unit::Bytes, [bytes(1413.0), bytes(1000.7)], [bytes(-427.1), bytes(-398.0)], Improved),
        row("cpu_per_1000.steady", Unit::Seconds, [1.25, 1.255], [-0.0075, 0.0175], Equivalent),
        row("p99.steady", Unit::Milliseconds, [8.12, 8.17], [-0.09, 0.14], Equivalent),
        row("rate.steady", Unit::PerSecond, [200.0, 200.0], [-0.1, 0.1], Equivalent),
    ]
}

fn owner_gains() -> Vec<OwnerGain> {
    let mut all = OWNERS.map(|(owner, before, after)| OwnerGain {
        owner: owner.to_owned(),
        before_bytes: bytes(before),
        after_bytes: bytes(after),
    });
    let moved = |gain: &OwnerGain| (gain.before_bytes - gain.after_bytes).abs();
    all.order_by(|left, right| moved(right).total_cmp(&moved(left)));
    all.to_vec()
}

fn line(mib: u64) -> FindRecord {
    let found = find::found().find.unwrap();
    let line = found.line.clone().map(|line| LineRecord { limit_bytes: mib * MIB, held: 5, heap_bytes: None, ..line });
    FindRecord { line, limit_bytes: Some((mib + mib / 10) * MIB), options: Vec::new(), ..found }
}

/// One closed trial, three unchanged ones, one per setting of the path, and the blocks of two confirmations.
fn trials(outcome: TuneOutcome) -> Vec<Trial> {
    let mut asked: Vec<(TuneStage, Vec<String>, bool)> = vec![(TuneStage::Reference, Vec::new(), true)];
    asked.extend((0..3).map(|_| (TuneStage::Baseline, Vec::new(), outcome != TuneOutcome::NotHeld)));
    if matches!(outcome, TuneOutcome::Proved | TuneOutcome::NothingProved | TuneOutcome::GivenUp) {
        asked.extend(path().into_iter().skip(1).map(|of| (of.stage, of.remedies, of.holds)));
        asked.push((TuneStage::Race, owned(&["try.1"]), false));
    }
    if outcome == TuneOutcome::Proved {
        let pair = |_| [(TuneStage::Confirmation, Vec::new(), true), (TuneStage::Confirmation, owned(&WINNER), true)];
        asked.extend((0..5).flat_map(pair));
    }
    asked.into_iter().enumerate().map(|(index, asked)| trial(index as u32, asked)).collect()
}

fn trial(index: u32, (stage, remedies, holds): (TuneStage, Vec<String>, bool)) -> Trial {
    let why = if holds { Vec::new() } else { owned(&["p99.steady was 118 ms, but the target is p99<50ms"]) };
    let missed = Missed {
        metric: "p99.steady".to_owned(),
        unit: Unit::Milliseconds,
        value: 118.0,
        bound: 50.0,
        text: "p99.steady was 118 ms, but the target is p99<50ms".to_owned(),
    };
    let refused = remedies == ["try.1"];
    Trial {
        outcome: if refused { Outcome::SubjectFailed } else { Outcome::Completed },
        why: refused.then(|| "the server ended with exit code 1 before it was ready".to_owned()),
        command: owned(&["java", "-Xmx6g", "-jar", "tiny-db.jar", "8080"]),
        jvm: Some(Jvm {
            pid: 4711 + index,
            version: Some("25.0.3+9-LTS".to_owned()),
            name: Some("OpenJDK 64-Bit Server VM".to_owned()),
            java: Some("/opt/jdk-25/bin/java".to_owned()),
            collector: Some("G1".to_owned()),
            options_through: "none_needed".to_owned(),
            flags: Some(owned(&["-XX:MaxHeapSize=6442450944", "-XX:+UseG1GC"])),
            allocator: Some("glibc 2.36".to_owned()),
            ..Jvm::default()
        }),
        ready_s: Some(1.4),
        tuned: Some(TuneTrialRecord {
            stage,
            remedies,
            rates: vec![PhaseRate { phase: "steady".to_owned(), rate_per_s: 200.0 }],
            verdict: if holds { ProbeVerdict::Holds } else { ProbeVerdict::Fails },
            why,
            missed: if holds { Vec::new() } else { vec![missed] },
            not_in_force: Vec::new(),
            seconds: 35.0,
        }),
        ..Trial::new("tiny-db", 0, index)
    }
}
