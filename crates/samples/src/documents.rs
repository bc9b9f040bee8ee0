//! Handwritten documents for export tests: compared, failing, hostile, empty. The numbers are invented.

use crate::{find, tune};
use loadline_jvm::owner::Owner;
use loadline_model::doubt::{Doubt, MemoryPool};
use loadline_model::record::{
    AccountDocument, AccountRecord, Better, BlockRecord, BudgetRecord, BudgetVerdict, ComparisonRecord, Conditions,
    DifferenceVerdict, Document, DoubtRecord, End, EndCause, FindOutcome, Finding, FindingRecord, GrowthRecord,
    GrowthWord, Jvm, LeastRecord, Machine, Mark, MetricRecord, Model, OfTrials, Outcome, OwnerRecord, ParetoPoint,
    ParetoRecord, PhaseRecord, RESULT_SCHEMA, Trial, TuneOutcome, Unit, ValueRecord, WatchDocument, WatchLabel,
    WatchLimit, WatchOwner, WatchSample, WatchedJvm,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Bytes per mebibyte.
pub const MIB: f64 = loadline_base::units::MIB as f64;

/// Text that tries to escape its context in each format.
pub fn hostile_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "<script>alert(1)</script>",
        "a|b\\|c`d``e",
        "line\none\r\n::error::two",
        "=HYPERLINK(\"http://evil.example/\",\"x\")",
        "\"},{\"x\":1",
        "]]></failure><error/>",
        "a,b;c\td \u{1b}[31mred\u{1b}[0m\u{0}\u{7}\u{ffff}",
        "\u{202e}gnp.exe\u{2028}x",
        "{mark=\"x\"} 1\n# EOF\nloadline_x 1",
        "'; system('touch x'); `touch y` @zsh \\$(id)",
        "@somebody #123 ![i](http://evil.example/i.png) [l](javascript:x) www.evil.example",
        "100%25 %0A : , title=x",
        "</details><details open><summary>",
        "$\\LaTeX$ ~~x~~ **y** _z_ <!-- - 1. # > &amp; &#60;",
        "",
        " ",
    ]
    .map(str::to_owned)
    .into();
    texts.push("x".repeat(10_000));
    texts.push("<|`\"',&\n".repeat(1_250));
    texts
}

/// A run without trials.
pub fn empty() -> Document {
    let machine = Machine {
        cores: 2,
        cpu_model: None,
        memory_bytes: 8 << 30,
        kernel: "6.1.0-35-amd64".to_owned(),
        cgroup: "v2".to_owned(),
        load_average_1m: Some(0.12),
        transparent_huge_pages: Some("madvise".to_owned()),
        swap_used_bytes: Some(0),
    };
    let conditions = Conditions {
        loadline: "0.1.0".to_owned(),
        scenario: "tiny-http".to_owned(),
        started: "2026-11-21T04:36:17Z".to_owned(),
        machine,
        seed: 1,
        command: "loadline run tiny-http.loadline.yaml --seed 1".to_owned(),
        load: vec![
            "warmup: GET /hello, closed, 25 connections, 50,000 requests".to_owned(),
            "steady: GET /hello, closed, 25 connections, 30s".to_owned(),
        ],
        ..Conditions::default()
    };
    Document { schema: RESULT_SCHEMA.to_owned(), conditions, ..Document::default() }
}

/// `g1` compared with `serial`, three blocks, with budgets of every verdict.
pub fn compared() -> Document {
    let mut document = empty();
    for (index, name) in ["serial", "g1", "g1", "serial", "serial", "g1"].into_iter().enumerate() {
        document.trials.push(trial(name, index as u32));
    }
    for (name, weight, rate) in [("serial", 50.0, 5_000.0), ("g1", 62.0, 5_250.0)] {
        let metrics = &mut document.metrics;
        metrics.push(metric(name, "rss.loaded", Unit::Bytes, weight * MIB));
        metrics.push(metric(name, "pss.loaded", Unit::Bytes, (weight - 1.5) * MIB));
        metrics.push(metric(name, "malloc.retained.loaded", Unit::Bytes, 10.5 * MIB));
        metrics.push(metric(name, "heap_used.collected", Unit::Bytes, 2.0 * MIB));
        metrics.push(metric(name, "rss_peak", Unit::Bytes, (weight + 1.0) * MIB));
        metrics.push(metric(name, "rate.warmup", Unit::PerSecond, rate / 2.0));
        metrics.push(metric(name, "rate.steady", Unit::PerSecond, rate));
        metrics.push(metric(name, "p99.steady", Unit::Milliseconds, 9.5));
        metrics.push(metric(name, "cpu_per_1000.steady", Unit::Seconds, 0.0625));
        metrics.push(metric(name, "start_up", Unit::Seconds, 0.25));
    }
    document.comparisons = vec![
        comparison("rss.loaded", Unit::Bytes, [50.0 * MIB, 62.0 * MIB], DifferenceVerdict::Worse),
        comparison("rate.steady", Unit::PerSecond, [5_000.0, 5_250.0], DifferenceVerdict::Better),
        comparison("p99.steady", Unit::Milliseconds, [9.5, 9.5], DifferenceVerdict::CannotTell),
        comparison("cpu_per_1000.steady", Unit::Seconds, [0.0625, 0.0625], DifferenceVerdict::Equivalent),
    ];
    document.comparisons.push(ComparisonRecord {
        primary: false,
        ..comparison("pss.loaded", Unit::Bytes, [48.5 * MIB, 60.5 * MIB], DifferenceVerdict::Worse)
    });
    let order = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let block = |block, order| BlockRecord { block, order, disturbed: None, repeats: None, used: true };
    document.blocks =
        vec![block(0, order(["serial", "g1"])), block(1, order(["g1", "serial"])), block(2, order(["serial", "g1"]))];
    document.pareto = vec![ParetoRecord {
        x: "rss.loaded".to_owned(),
        y: "p99.steady".to_owned(),
        points: [("serial", 50.0 * MIB, None), ("g1", 62.0 * MIB, Some("serial".to_owned()))]
            .map(|(name, x, dominated_by)| ParetoPoint { configuration: name.to_owned(), x, y: 9.5, dominated_by })
            .to_vec(),
    }];
    document.budgets = vec![
        budget("serial", "rss.loaded<=60MiB", 50.0, BudgetVerdict::Pass),
        budget("g1", "rss.loaded<=60MiB", 62.0, BudgetVerdict::Fail),
        BudgetRecord {
            unit: None,
            value: None,
            low: None,
            high: None,
            bound: None,
            metric: None,
            trials: 0,
            why: "`charge.loaded` was not measured".to_owned(),
            ..budget("g1", "charge.loaded<=80MiB", 0.0, BudgetVerdict::Undecided)
        },
    ];
    document.doubts = vec![DoubtRecord::from(Doubt::HugePagesAlways)];
    document
}

/// A failed and a successful trial.
pub fn failing() -> Document {
    let mut document = empty();
    document.trials = vec![trial("serial", 0), trial("serial", 1)];
    document.trials[1].outcome = Outcome::SubjectFailed;
    document.trials[1].why = Some("the server did not answer GET /hello within 30s".to_owned());
    document.trials[1].end = Some(End {
        cause: EndCause::ByItself,
        exit_code: Some(1),
        signal: None,
        text: "the server ended with exit code 1".to_owned(),
        last_lines: vec!["Error occurred during initialization of VM".to_owned(), "Too small maximum heap".to_owned()],
    });
    let mut weight = metric("serial", "rss.loaded", Unit::Bytes, 50.0 * MIB);
    weight.values.truncate(1);
    weight.values[0].trial = 0;
    (weight.low, weight.high) = (None, None);
    document.metrics.push(weight);
    document
}

/// `compared`, followed by the contents of [`named`] for each of [`hostile_texts`].
pub fn hostile() -> Document {
    let texts = hostile_texts();
    let mut document = Document { conditions: named(&texts.join("|")).conditions, ..compared() };
    for own in texts.iter().map(|text| named(text)) {
        document.trials.extend(own.trials);
        document.metrics.extend(own.metrics);
        document.blocks.extend(own.blocks);
        document.comparisons.extend(own.comparisons);
        document.pareto.extend(own.pareto);
        document.doubts.extend(own.doubts);
        document.findings.extend(own.findings);
        document.budgets.extend(own.budgets);
    }
    document.conditions.load = texts;
    document
}

/// The document with every string replaced by `text`, except kinds that the format names, and strings under the keys in
/// `kept`.
pub fn with_every_text<T: Serialize + DeserializeOwned>(document: &T, text: &str, kept: &[&str]) -> T {
    let mut value = serde_json::to_value(document).unwrap();
    replace_texts(&mut value, text, &[&KINDS, kept].concat());
    serde_json::from_value(value).unwrap()
}

/// Keys whose values are words of the format.
const KINDS: [&str; 21] = [
    "better",
    "by",
    "cause",
    "fate",
    "kind",
    "least",
    "model",
    "objective",
    "order",
    "outcome",
    "pages",
    "pool",
    "price",
    "schema",
    "stage",
    "unit",
    "unknowns",
    "verdict",
    "finding",
    "time",
    "timing",
];

fn replace_texts(value: &mut Value, text: &str, kept: &[&str]) {
    match value {
        Value::String(own) => text.clone_into(own),
        Value::Array(all) => all.iter_mut().for_each(|one| replace_texts(one, text, kept)),
        Value::Object(all) => {
            let own = all.iter_mut().filter(|(key, _)| !kept.contains(&key.as_str()));
            own.for_each(|(_, one)| replace_texts(one, text, kept));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A comparison in which every name and message is `text`.
pub fn named(text: &str) -> Document {
    let mut document = with_every_text(&compared(), text, &["metric"]);
    let own = || text.to_owned();
    for trial in &mut document.trials {
        (trial.outcome, trial.why) = (Outcome::Killed, Some(own()));
        let (text, last_lines) = (own(), vec![own()]);
        trial.end = Some(End { cause: EndCause::OomKill, exit_code: None, signal: Some(9), text, last_lines });
        trial.doubts = vec![Doubt::OutOfMemoryError { error: own(), pool: MemoryPool::Other }.into()];
    }
    for block in &mut document.blocks {
        (block.disturbed, block.repeats, block.used) = (Some(own()), Some(0), false);
    }
    document.pareto[0].points.iter_mut().for_each(|point| point.dominated_by = Some(own()));
    document.metrics.truncate(10);
    (document.metrics[1].metric, document.metrics[2].metric) = (own(), format!("{text}.loaded"));
    document.comparisons[0].metric = own();
    document.findings = vec![FindingRecord {
        finding: Finding::LoadersKeepComing { loader: own(), spans: Vec::new(), live_after_gc: None },
        of: Some(OfTrials { configuration: own(), trial: 0, trials_alike: 2 }),
        text: own(),
        next: own(),
        costs_bytes: 0,
        gain_bytes_max: None,
        remedies: Vec::new(),
    }];
    document
}

/// A running JVM's account.
pub fn weighed() -> AccountDocument {
    serde_json::from_str(include_str!("../../../tests/cli/accounts/made-up.json")).unwrap()
}

/// Every end of a search and a tuning, with the result that a test expects.
pub fn endings<E>(of_search: fn(FindOutcome) -> E, of_tuning: fn(TuneOutcome) -> E) -> Vec<(E, Document)> {
    let searches = find::endings().into_iter().map(|(outcome, document)| (of_search(outcome), document));
    let tunings = tune::endings().into_iter().map(|(outcome, document)| (of_tuning(outcome), document));
    searches.chain(tunings).collect()
}

/// Two JVMs: one grows, and one is unreadable.
pub fn watched(name: &str) -> WatchDocument {
    let mib = |mib: u64| Some(mib << 20);
    let now = WatchSample {
        rss_anon_bytes: mib(500),
        rss_file_bytes: mib(30),
        heap_used_bytes: mib(300),
        heap_floor_bytes: mib(200),
        unreclaimable_bytes: mib(510),
        gc_ms: Some(1_500),
        oom_kills: Some(0),
        ..WatchSample::default()
    };
    let growth = GrowthRecord {
        verdict: GrowthWord::Grows,
        owner: Some("direct".to_owned()),
        bytes_per_hour: Some(3_600_000.0),
        bytes_per_hour_low: Some(3_200_000.0),
        bytes_per_hour_high: Some(4_000_000.0),
        limit_in_s: Some(7_200.0),
        ..GrowthRecord::default()
    };
    let one = WatchedJvm {
        name: name.to_owned(),
        labels: vec![WatchLabel { name: "pod".to_owned(), value: name.to_owned() }],
        pid: 7,
        version: Some(name.to_owned()),
        now,
        limit: Some(WatchLimit { bytes: 600 << 20, cgroup: "/shop".to_owned() }),
        growth,
        owners: vec![WatchOwner { name: "direct".to_owned(), bytes: 100 << 20 }],
        ..WatchedJvm::default()
    };
    let blind = WatchedJvm { name: "blind".to_owned(), unreadable: vec!["no".to_owned()], ..WatchedJvm::default() };
    WatchDocument { jvms: vec![one, blind], loadline: "0.1.0".to_owned(), ..WatchDocument::default() }
}

/// An owner of `bytes` unshared bytes.
pub fn owner(name: &str, bytes: u64) -> OwnerRecord {
    OwnerRecord { name: name.to_owned(), rss_bytes: bytes, pss_bytes: bytes, ..OwnerRecord::default() }
}

/// An account with these owners.
pub fn account(owners: &[(&str, u64)]) -> AccountRecord {
    let total_bytes = owners.iter().map(|(_, bytes)| bytes).sum();
    let unexplained = owners.iter().find(|(name, _)| *name == Owner::Unexplained.name());
    AccountRecord {
        total_bytes,
        pss_bytes: total_bytes,
        unexplained_bytes: unexplained.map_or(0, |(_, bytes)| *bytes),
        owners: owners.iter().map(|(name, bytes)| owner(name, *bytes)).collect(),
        ..AccountRecord::default()
    }
}

fn trial(configuration: &str, index: u32) -> Trial {
    let mark = Mark { name: "loaded".to_owned(), at_s: 8.0, rss_bytes: 50 << 20, ..Mark::default() };
    let phase = |name: &str, seconds| PhaseRecord {
        name: name.to_owned(),
        model: Model::Closed,
        seconds,
        requests: 150_000,
        ok: 150_000,
        achieved_per_s: 5_000.0,
        ..PhaseRecord::default()
    };
    let jvm = Jvm {
        pid: 4_711,
        version: Some("17.0.15+6-Debian-1deb12u1".to_owned()),
        name: Some("OpenJDK 64-Bit Server VM".to_owned()),
        java: Some("/usr/lib/jvm/java-17-openjdk-amd64/bin/java".to_owned()),
        collector: Some("Serial".to_owned()),
        options: vec!["-Xmx6m".to_owned(), "-XX:+UseSerialGC".to_owned()],
        ..Jvm::default()
    };
    Trial {
        outcome: Outcome::Completed,
        jvm: Some(jvm),
        ready_s: Some(0.25),
        marks: vec![mark],
        phases: vec![phase("warmup", 5.25), phase("steady", 30.0)],
        ..Trial::new(configuration, index / 2, index)
    }
}

/// Three values, 2% apart, around `median`.
fn metric(configuration: &str, name: &str, unit: Unit, median: f64) -> MetricRecord {
    let better = if unit == Unit::PerSecond { Better::Higher } else { Better::Lower };
    let trials = match configuration {
        "serial" => [0, 3, 4],
        "g1" => [1, 2, 5],
        _ => [10, 11, 12],
    };
    let factors = [0.98, 1.0, 1.02];
    let value =
        |(trial, factor): (u32, f64)| ValueRecord { trial, block: trial / 2, value: median * factor, used: true };
    MetricRecord {
        metric: name.to_owned(),
        unit,
        better,
        configuration: configuration.to_owned(),
        values: trials.into_iter().zip(factors).map(value).collect(),
        median,
        low: Some(median * 0.97),
        high: Some(median * 1.03),
    }
}

/// A judged metric of `g1` compared with `serial`.
pub fn comparison(metric: &str, unit: Unit, medians: [f64; 2], verdict: DifferenceVerdict) -> ComparisonRecord {
    let [baseline_median, candidate_median] = medians;
    let (ratio, difference) = (candidate_median / baseline_median, candidate_median - baseline_median);
    ComparisonRecord {
        metric: metric.to_owned(),
        unit,
        better: if unit == Unit::PerSecond { Better::Higher } else { Better::Lower },
        baseline: "serial".to_owned(),
        candidate: "g1".to_owned(),
        primary: true,
        baseline_median,
        candidate_median,
        ratio: Some(ratio),
        ratio_low: Some(ratio - 0.01),
        ratio_high: Some(ratio + 0.01),
        difference,
        low: Some(difference - 0.01 * baseline_median),
        high: Some(difference + 0.01 * baseline_median),
        confidence: 0.95,
        confidence_each: 0.9875,
        least: LeastRecord::Relative(0.02),
        verdict,
        blocks: 3,
        blocks_needed: (verdict == DifferenceVerdict::CannotTell).then_some(18),
    }
}

fn budget(configuration: &str, expression: &str, mib: f64, verdict: BudgetVerdict) -> BudgetRecord {
    BudgetRecord {
        expression: expression.to_owned(),
        configuration: configuration.to_owned(),
        metric: Some("rss.loaded".to_owned()),
        unit: Some(Unit::Bytes),
        value: Some(mib * MIB),
        low: Some((mib - 1.0) * MIB),
        high: Some((mib + 1.0) * MIB),
        bound: Some(60.0 * MIB),
        relative: false,
        of_change: false,
        measured: None,
        before: None,
        trials_needed: None,
        trials: 3,
        verdict,
        why: format!("{mib:.1} MiB against 60.0 MiB"),
    }
}
