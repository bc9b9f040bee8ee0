//! Handwritten documents: two configurations with a known difference, a large one, a hostile one.

use loadline::doubt::Doubt;
use loadline::record::{
    AccountRecord, Better, BlockRecord, BudgetRecord, BudgetVerdict, ComparisonRecord, Conditions, DifferenceVerdict,
    Document, DoubtRecord, End, EndCause, Evidence, Heap, IntervalRecord, Jvm, LeastRecord, Machine, Mark,
    MetricRecord, Model, NmtCategory, NmtRecord, Outcome, OwnerRecord, ParetoPoint, ParetoRecord, PhaseRecord,
    Quantiles, RequestDot, Sample, SpectrumRecord, Timing, Trial, Unit, ValueRecord,
};

const MIB: f64 = 1_048_576.0;

/// Reproducible pseudorandom numbers (xorshift).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Between 0 and 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A time with a long tail, in ms.
    fn time(&mut self, median: f64) -> f64 {
        let slow = if self.next() < 0.01 { 8.0 + 30.0 * self.next() } else { 1.0 };
        median * slow * (0.6 * (self.next() + self.next() + self.next() - 1.5)).exp()
    }
}

/// The amount of data per trial.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) samples: usize,
    pub(crate) intervals: usize,
    pub(crate) dots: usize,
    pub(crate) answers: u64,
    pub(crate) seconds: f64,
}

pub(crate) const SMALL: Size = Size { samples: 600, intervals: 55, dots: 1500, answers: 500_000, seconds: 62.0 };
/// Few enough responses to draw a dot for each.
pub(crate) const FEW: Size = Size { samples: 300, intervals: 28, dots: 1500, answers: 1500, seconds: 31.0 };
/// Ten minutes at 10 Hz with a million requests, as thinned by the archive.
pub(crate) const LARGE: Size = Size { samples: 1200, intervals: 300, dots: 5000, answers: 1_000_000, seconds: 600.0 };

/// A comparison of configurations in blocks, with everything that a report can show.
pub(crate) fn comparison(names: &[&str], blocks: u32, size: Size) -> (Document, Vec<Evidence>) {
    let mut trials = Vec::new();
    let mut evidence = Vec::new();
    for block in 0..blocks {
        for (place, name) in names.iter().enumerate() {
            let index = trials.len() as u32;
            let mut noise = Noise::new(u64::from(index) + 7);
            trials.push(trial(name, place, block, index, size, &mut noise));
            evidence.push(seen(place, index, size, &mut noise));
        }
    }
    let mut document = document(trials);
    fill(&mut document, names, blocks);
    (document, evidence)
}

pub(crate) fn document(trials: Vec<Trial>) -> Document {
    let machine = Machine {
        cores: 4,
        memory_bytes: 16 << 30,
        kernel: "6.1.0-28-amd64".to_owned(),
        cgroup: "v2".to_owned(),
        load_average_1m: Some(0.31),
        transparent_huge_pages: Some("madvise".to_owned()),
        swap_used_bytes: Some(0),
        ..Machine::default()
    };
    Document {
        schema: loadline::record::RESULT_SCHEMA.to_owned(),
        conditions: Conditions {
            loadline: "0.1.0".to_owned(),
            scenario: "tiny-http".to_owned(),
            started: "2026-11-20T14:03:27Z".to_owned(),
            machine,
            seed: 1,
            command: "loadline compare scenarios/tiny-http/tiny-http.loadline.yaml --seed 1".to_owned(),
            load: vec![
                "warm-up: closed, 25 connections, 50,000 requests, GET /hello".to_owned(),
                "steady: closed, 25 connections, 50,000 requests, GET /hello".to_owned(),
                "rest: idle for 5s".to_owned(),
            ],
            ..Conditions::default()
        },
        trials,
        ..Document::default()
    }
}

fn trial(name: &str, place: usize, block: u32, index: u32, size: Size, noise: &mut Noise) -> Trial {
    let mut trial = Trial::new(name, block, index);
    trial.outcome = Outcome::Completed;
    trial.command =
        ["java", "-Xmx6m", "-XX:+UseSerialGC", "-jar", "target/tiny-http.jar", "8080"].map(str::to_owned).to_vec();
    trial.jvm = Some(Jvm {
        pid: 4711 + index,
        version: Some("17.0.15+6-Debian-1deb12u1".to_owned()),
        name: Some("OpenJDK 64-Bit Server VM".to_owned()),
        java: Some("/usr/lib/jvm/java-17-openjdk-amd64/bin/java".to_owned()),
        collector: Some(if place == 0 { "G1" } else { "Serial" }.to_owned()),
        options: vec!["-Xmx6m".to_owned(), "-XX:+UseSerialGC".to_owned()],
        options_through: "placeholder".to_owned(),
        flags: Some(vec!["-XX:MaxHeapSize=6291456".to_owned(), "-XX:+UseSerialGC".to_owned()]),
        allocator: Some("glibc 2.36".to_owned()),
        ..Jvm::default()
    });
    trial.limit_bytes = Some(128 << 20);
    trial.ready_s = Some(0.41 + 0.05 * noise.next());
    trial.rss_bytes_peak = Some(((66.0 - 6.0 * place as f64) * MIB) as u64);
    trial.marks = marks(place, size.seconds, noise);
    let phase = |name: &str, from: f64, to: f64, answers: u64| {
        let (from, seconds) = (from * size.seconds, (to - from) * size.seconds);
        let p50 = 0.9 + 0.2 * place as f64;
        PhaseRecord {
            name: name.to_owned(),
            model: if answers > 0 { Model::Closed } else { Model::Idle },
            at_s: from,
            seconds,
            requests: answers,
            ok: answers,
            achieved_per_s: answers as f64 / seconds,
            service_ms: (answers > 0).then(|| Quantiles {
                p50,
                p90: p50 * 1.6,
                p99: p50 * 4.0,
                p999: p50 * 22.0,
                max: p50 * 41.0,
                mean: p50 * 1.2,
                ..Quantiles::default()
            }),
            ..PhaseRecord::default()
        }
    };
    trial.phases = vec![
        phase("warm-up", 0.04, 0.44, size.answers / 2),
        phase("steady", 0.45, 0.9, size.answers / 2),
        phase("rest", 0.9, 0.98, 0),
    ];
    if index == 1 {
        trial.doubts.push(DoubtRecord::from(Doubt::SharedCpus));
        trial.doubts.push(DoubtRecord {
            doubt: Doubt::SharedCpus,
            text: "noisy machine: during steady, other programs used 0.40 cores".to_owned(),
            next: "repeat it on a quiet machine, and more than once".to_owned(),
        });
    }
    trial
}

/// Memory per owner in MiB for the first configuration; later ones have less heap and tables.
const OWNERS: [(&str, f64); 13] = [
    ("java_heap.used", 9.0),
    ("cds", 8.6),
    ("metaspace", 4.9),
    ("class_space", 0.7),
    ("code_cache", 6.1),
    ("thread_stacks", 1.9),
    ("gc", 6.0),
    ("libjvm", 12.4),
    ("libraries", 3.1),
    ("mapped_files", 2.2),
    ("malloc.live", 7.8),
    ("malloc.retained", 2.4),
    ("unexplained", 0.3),
];

fn marks(place: usize, seconds: f64, noise: &mut Noise) -> Vec<Mark> {
    let moments = [
        ("start", 0.03, 0.72),
        ("warm", 0.445, 0.95),
        ("loaded", 0.9, 1.0),
        ("rested", 0.98, 0.99),
        ("collected", 0.99, 0.9),
    ];
    let mut found = Vec::new();
    for (name, at, share) in moments {
        let mut account = AccountRecord::default();
        for (owner, mib) in OWNERS {
            let less = if matches!(owner, "gc" | "java_heap.used") { 1.0 / (1.0 + 1.5 * place as f64) } else { 1.0 };
            let owner = match (name, owner) {
                ("collected", "java_heap.used") => "java_heap.live",
                _ => owner,
            };
            let bytes = (mib * less * share * (0.99 + 0.02 * noise.next()) * MIB) as u64;
            account.owners.push(OwnerRecord {
                name: owner.to_owned(),
                rss_bytes: bytes,
                pss_bytes: bytes,
                ..OwnerRecord::default()
            });
            account.total_bytes += bytes;
        }
        account.unexplained_bytes = account.owners.last().map_or(0, |owner| owner.rss_bytes);
        let other =
            NmtCategory { name: "Other".to_owned(), committed_bytes: (2.0 * MIB) as u64, ..NmtCategory::default() };
        found.push(Mark {
            name: name.to_owned(),
            at_s: at * seconds,
            rss_bytes: account.total_bytes,
            pss_bytes: Some(account.total_bytes * 9 / 10),
            threads: Some(32),
            heap: Heap { used_bytes: Some((4.2 * MIB) as u64), committed_bytes: Some(6 << 20), ..Heap::default() },
            nmt: (place == 0).then(|| NmtRecord {
                total_committed_bytes: 55 << 20,
                total_reserved_bytes: 1 << 30,
                total_growth_bytes: None,
                categories: vec![other],
            }),
            account: Some(account),
            took_ms: 41.0,
            ..Mark::default()
        });
    }
    found
}

fn seen(place: usize, index: u32, size: Size, noise: &mut Noise) -> Evidence {
    Evidence {
        trial: index,
        timeline: timeline(place, size, noise),
        intervals: intervals(place, size, noise),
        spectra: spectra(place, size, noise),
        requests: requests(place, size, noise),
        missing: Vec::new(),
    }
}

/// Whether requests are answered at this fraction of the trial.
fn works(share: f64) -> bool {
    (0.04..0.44).contains(&share) || (0.45..0.9).contains(&share)
}

fn timeline(place: usize, size: Size, noise: &mut Noise) -> Vec<Sample> {
    let (mut gc_count, mut gc_ms, mut ok) = (2, 5.0, 0);
    let mut found = Vec::new();
    for at in 0..size.samples {
        let share = at as f64 / size.samples as f64;
        if works(share) {
            ok += size.answers / size.samples as u64;
            if noise.next() < 0.15 {
                gc_count += 1;
                gc_ms += 0.5 + 6.0 * noise.next() * noise.next();
            }
        }
        let rise = (share * 9.0).min(1.0);
        found.push(Sample {
            at_s: share * size.seconds,
            rss_bytes: ((40.0 + (22.0 - 7.0 * place as f64) * rise + 0.7 * noise.next()) * MIB) as u64,
            heap_used_bytes: Some(((2.0 + 3.5 * noise.next()) * MIB) as u64),
            heap_committed_bytes: Some(6 << 20),
            charge_bytes: Some(((36.0 + (22.0 - 7.0 * place as f64) * rise) * MIB) as u64),
            direct_bytes: (place == 0 && at % 10 == 0).then_some((2.0 * MIB) as u64),
            gc_count: Some(gc_count),
            gc_ms: Some(gc_ms),
            ok,
            ..Sample::default()
        });
    }
    found
}

fn intervals(place: usize, size: Size, noise: &mut Noise) -> Vec<IntervalRecord> {
    let seconds = size.seconds / size.intervals as f64;
    let mut found = Vec::new();
    for at in 0..size.intervals {
        let share = at as f64 / size.intervals as f64;
        if !works(share) {
            continue;
        }
        let answers = size.answers as f64 / size.intervals as f64 * (0.95 + 0.1 * noise.next());
        let mut classes: Vec<(f64, u64)> = Vec::new();
        for class in 0..45 {
            let edge = 0.3 * 10f64.powf(f64::from(class) / 18.0);
            let away = (edge / (0.9 + 0.2 * place as f64)).ln();
            let count =
                answers * 0.13 * (-away * away / 0.3).exp() + if edge > 3.0 && noise.next() < 0.2 { 1.0 } else { 0.0 };
            if count >= 1.0 {
                classes.push((edge, count as u64));
            }
        }
        let ok = classes.iter().map(|class| class.1).sum();
        let phase = if share < 0.44 { "warm-up" } else { "steady" };
        found.push(IntervalRecord { phase: phase.to_owned(), at_s: share * size.seconds, seconds, ok, classes });
    }
    found
}

fn spectra(place: usize, size: Size, noise: &mut Noise) -> Vec<SpectrumRecord> {
    let spectrum = |phase: &str, noise: &mut Noise| {
        let mut points = Vec::new();
        let mut ms = 0.35 + 0.1 * place as f64;
        for step in 0..120 {
            let quantile = 1.0 - 10f64.powf(-f64::from(step) / 22.0);
            ms *= 1.0 + 0.06 * noise.next() + if (44..60).contains(&step) { 0.08 } else { 0.0 };
            if (1.0 - quantile) * size.answers as f64 >= 2.0 {
                points.push((quantile, ms));
            }
        }
        SpectrumRecord { phase: phase.to_owned(), time: Timing::Service, points, count: size.answers / 2 }
    };
    vec![spectrum("warm-up", noise), spectrum("steady", noise)]
}

fn requests(place: usize, size: Size, noise: &mut Noise) -> Vec<RequestDot> {
    let mut found = Vec::new();
    for at in 0..size.dots {
        let share = at as f64 / size.dots as f64;
        if works(share) {
            let failed = place == 1 && (0.6..0.62).contains(&share);
            let ms = noise.time(0.9 + 0.2 * place as f64);
            found.push(RequestDot { at_s: share * size.seconds, ms, failed });
        }
    }
    found
}

/// Metrics, comparisons with each verdict, memory against speed, budgets, blocks, doubts.
fn fill(document: &mut Document, names: &[&str], blocks: u32) {
    metrics(document, names, blocks);
    details(document, names, blocks);
    document.pareto = vec![pareto(document, "rate.steady", names), pareto(document, "p99.steady", names)];
    let order = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    document.blocks = (0..blocks)
        .map(|block| BlockRecord {
            block,
            order: order.clone(),
            disturbed: (block == 2).then(|| "0.8 cores of others, 3% stolen".to_owned()),
            repeats: None,
            used: block != 2,
        })
        .collect();
    document.budgets = budgets(names);
    document.doubts = vec![DoubtRecord {
        doubt: Doubt::SharedCpus,
        text: "only 4 blocks count: intervals are wide".to_owned(),
        next: "run more blocks: `--blocks 10`".to_owned(),
    }];
}

/// One metric per verdict.
fn metrics(document: &mut Document, names: &[&str], blocks: u32) {
    let kinds = [
        (("rss.loaded", Unit::Bytes, Better::Lower), 65.0 * MIB, 0.81, DifferenceVerdict::Better),
        (("p99.steady", Unit::Milliseconds, Better::Lower), 3.6, 1.12, DifferenceVerdict::Worse),
        (("rate.steady", Unit::PerSecond, Better::Higher), 9300.0, 0.998, DifferenceVerdict::Equivalent),
        (("cpu_per_1000.steady", Unit::Seconds, Better::Lower), 0.082, 1.01, DifferenceVerdict::CannotTell),
    ];
    for (kind, (metric, base, factor, verdict)) in kinds.into_iter().enumerate() {
        for (place, name) in names.iter().enumerate() {
            let mut noise = Noise::new((kind * 31 + place * 7 + 3) as u64);
            let centre = base * (1.0 + (factor - 1.0) * place as f64);
            let value = |block: u32, noise: &mut Noise| ValueRecord {
                trial: block * names.len() as u32 + place as u32,
                block,
                value: centre * (0.975 + 0.05 * noise.next()),
                used: block != 2,
            };
            let values: Vec<ValueRecord> = (0..blocks).map(|block| value(block, &mut noise)).collect();
            document.metrics.push(MetricRecord {
                metric: metric.0.to_owned(),
                unit: metric.1,
                better: metric.2,
                configuration: (*name).to_owned(),
                values,
                median: centre,
                low: Some(centre * 0.985),
                high: Some(centre * 1.015),
            });
            if place > 0 {
                document.comparisons.push(compared(metric, (names[0], name), (base, centre), verdict, blocks));
            }
        }
    }
}

/// Metrics that were not requested.
fn details(document: &mut Document, names: &[&str], blocks: u32) {
    for index in 0..60 {
        let detail = format!("malloc.live.phase{index}");
        for name in &names[1..] {
            let metric = (detail.as_str(), Unit::Bytes, Better::Lower);
            let verdict = DifferenceVerdict::CannotTell;
            let compared = compared(metric, (names[0], name), (7e6, 7.1e6), verdict, blocks);
            document.comparisons.push(ComparisonRecord { primary: false, ..compared });
        }
    }
}

fn compared(
    (metric, unit, better): (&str, Unit, Better),
    (baseline, candidate): (&str, &str),
    (base, other): (f64, f64),
    verdict: DifferenceVerdict,
    blocks: u32,
) -> ComparisonRecord {
    let room = if verdict == DifferenceVerdict::CannotTell { 0.035 } else { 0.012 };
    let ratio = other / base;
    ComparisonRecord {
        metric: metric.to_owned(),
        unit,
        better,
        baseline: baseline.to_owned(),
        candidate: candidate.to_owned(),
        primary: true,
        baseline_median: base,
        candidate_median: other,
        ratio: Some(ratio),
        ratio_low: Some(ratio - room),
        ratio_high: Some(ratio + room),
        difference: other - base,
        low: Some(other - base - room * base),
        high: Some(other - base + room * base),
        confidence: 0.95,
        confidence_each: 0.9875,
        least: if unit == Unit::Bytes { LeastRecord::Absolute(MIB) } else { LeastRecord::Relative(0.02) },
        verdict,
        blocks,
        blocks_needed: (verdict == DifferenceVerdict::CannotTell).then_some(14),
    }
}

fn pareto(document: &Document, y: &str, names: &[&str]) -> ParetoRecord {
    let median = |metric: &str, name: &str| {
        let of = document.metrics.iter().find(|record| record.metric == metric && record.configuration == name);
        of.map_or(0.0, |record| record.median)
    };
    let point = |(place, name): (usize, &&str)| ParetoPoint {
        configuration: (*name).to_owned(),
        x: median("rss.loaded", name),
        y: median(y, name),
        dominated_by: (place == 2).then(|| names[1].to_owned()),
    };
    let points = names.iter().enumerate().map(point).collect();
    ParetoRecord { x: "rss.loaded".to_owned(), y: y.to_owned(), points }
}

fn budgets(names: &[&str]) -> Vec<BudgetRecord> {
    let budget = |expression: &str, configuration: &str, verdict, value: f64, side: &str| BudgetRecord {
        expression: expression.to_owned(),
        configuration: configuration.to_owned(),
        metric: Some("rss.loaded".to_owned()),
        unit: Some(Unit::Bytes),
        value: Some(value * MIB),
        low: Some((value - 0.9) * MIB),
        high: Some((value + 0.9) * MIB),
        bound: Some(60.0 * MIB),
        relative: false,
        of_change: false,
        measured: None,
        before: None,
        trials_needed: None,
        trials: 5,
        verdict,
        why: format!("{value:.1} MiB, and all of its interval, is {side} 60.0 MiB"),
    };
    vec![
        budget("rss.loaded<=60MiB", names[0], BudgetVerdict::Fail, 65.0, "above"),
        budget("rss.loaded<=60MiB", names[names.len() - 1], BudgetVerdict::Pass, 52.6, "below"),
        BudgetRecord {
            metric: None,
            unit: None,
            value: None,
            low: None,
            high: None,
            bound: None,
            trials: 0,
            why: "no trial measured direct.loaded".to_owned(),
            ..budget("direct.loaded<=8MiB", names[0], BudgetVerdict::Undecided, 0.0, "")
        },
    ]
}

/// Texts that must have no effect in a report.
pub(crate) fn hostile_texts() -> Vec<String> {
    vec![
        "<script>document.title='owned';alert(1)</script>".to_owned(),
        "\"><img src=x onerror=\"document.title='owned'\"><svg onload=alert(2)>".to_owned(),
        "</style></script></title><script>document.title='owned'</script>".to_owned(),
        "\u{202e}gnp.exe\u{2066}\u{0}\u{1b}[31m\u{7}\u{7f}\u{85}\u{feff}\u{ffff}".to_owned(),
        "'`${document.title='owned'}` {{script}} ]]> &lt;b&gt; &#x3c;".to_owned(),
        format!("<b>{}</b>", "long-".repeat(2000)),
    ]
}

/// A document in which all text is hostile.
pub(crate) fn hostile() -> (Document, Vec<Evidence>, Vec<String>) {
    let texts = hostile_texts();
    let names: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (mut document, mut evidence) = comparison(&names, 1, FEW);
    let mut any = texts.iter().cycle().cloned();
    let mut next = || any.next().unwrap_or_default();
    let conditions = &mut document.conditions;
    (conditions.scenario, conditions.command, conditions.started, conditions.loadline) =
        (next(), next(), next(), next());
    conditions.load = vec![next(), next(), next()];
    conditions.machine.kernel = next();
    for trial in &mut document.trials {
        (trial.why, trial.outcome) = (Some(next()), Outcome::SubjectFailed);
        trial.command = (0..6).map(|_| next()).collect();
        if let Some(jvm) = &mut trial.jvm {
            (jvm.version, jvm.name, jvm.java, jvm.collector) = (Some(next()), Some(next()), Some(next()), Some(next()));
            jvm.options = (0..6).map(|_| next()).collect();
            jvm.flags = Some((0..6).map(|_| next()).collect());
        }
        for mark in &mut trial.marks {
            mark.name = next();
            mark.account.iter_mut().flat_map(|account| &mut account.owners).for_each(|owner| owner.name = next());
            mark.nmt.iter_mut().flat_map(|nmt| &mut nmt.categories).for_each(|category| category.name = next());
        }
        trial.phases.iter_mut().for_each(|phase| phase.name = next());
        trial.doubts = vec![DoubtRecord { doubt: Doubt::SharedCpus, text: next(), next: next() }];
        let last_lines = (0..20).map(|_| next()).collect();
        trial.end = Some(End { cause: EndCause::ByItself, exit_code: None, signal: None, text: next(), last_lines });
    }
    for one in &mut evidence {
        one.spectra.iter_mut().for_each(|spectrum| spectrum.phase = next());
        one.intervals.iter_mut().for_each(|interval| interval.phase = next());
        one.missing = vec![next()];
    }
    document.metrics.iter_mut().for_each(|record| record.metric = next());
    document.comparisons.iter_mut().for_each(|record| record.metric = next());
    document.pareto.iter_mut().for_each(|record| (record.x, record.y) = (next(), next()));
    document.budgets.iter_mut().for_each(|record| (record.expression, record.why) = (next(), next()));
    document.blocks.iter_mut().for_each(|record| record.disturbed = Some(next()));
    let missing = texts.clone();
    (document, evidence, missing)
}
