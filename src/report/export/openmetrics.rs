//! OpenMetrics text (1.0), for a history of builds: medians of each configuration, verdicts of budgets and comparisons.
//!
//! Only gauges, so that Prometheus' older text parsers (the collector of text files, the push gateway) read it too;
//! they know neither state sets nor info. No samples of single trials: a sum over them would mean nothing.
//! `loadline_memory_rss_bytes{configuration="serial",mark="loaded"} 52428800`

use super::csv::{outcome_name, verdict_name};
use super::inert::visible;
use super::metric_name::parts;
use crate::owner::{Owner, family};
use crate::record::{BudgetVerdict, DifferenceVerdict, Document, MetricRecord, Outcome, Unit};
use std::collections::BTreeSet;

const STATISTICS: [&str; 9] = ["p50", "p75", "p90", "p99", "p999", "p99_9", "p9999", "max", "mean"];

/// A family of samples: its name without `loadline_`, its unit (the end of its name), its help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Family(&'static str, Option<&'static str>, &'static str);

const VERSION: Family = Family("build_info", None, "Version of Loadline and scenario; always 1.");
const TRIALS: Family = Family("trials", None, "Trials by how they ended.");
const RSS: Family = Family("memory_rss_bytes", Some("bytes"), "Resident memory at a mark, shared pages in full.");
const IN_USE: Family =
    Family("memory_in_use_bytes", Some("bytes"), "Resident memory at a mark without what malloc retains.");
const PSS: Family = Family("memory_pss_bytes", Some("bytes"), "Resident memory at a mark, shared pages divided.");
const CHARGE: Family = Family("memory_charge_bytes", Some("bytes"), "What the memory cgroup counts at a mark.");
const PEAK: Family = Family("memory_rss_peak_bytes", Some("bytes"), "Highest resident memory of the trial.");
const OWNED: Family = Family(
    "memory_resident_bytes",
    Some("bytes"),
    "Resident memory at a mark by owner; in each trial they sum to RSS.",
);
const KIND: Family =
    Family("memory_rss_kind_bytes", Some("bytes"), "Resident memory at a mark by kind of page: anon or file.");
const HEAP: Family = Family("heap_bytes", Some("bytes"), "The Java heap at a mark; committed is not resident.");
const RATE: Family = Family("requests_per_second", Some("per_second"), "Correct answers per second of a phase.");
const TIME: Family = Family("request_time_seconds", Some("seconds"), "Time of correct answers in a phase.");
const FAILED: Family = Family("requests_failed_ratio", Some("ratio"), "Failed requests of a phase, of all.");
const GC: Family = Family("gc_seconds", Some("seconds"), "Time in collections during a phase.");
const COLLECTIONS: Family = Family("gc_collections", None, "Collections during a phase.");
const CPU: Family =
    Family("cpu_per_1000_requests_seconds", Some("seconds"), "CPU time of the subject per 1,000 correct answers.");
const START_UP: Family =
    Family("start_up_seconds", Some("seconds"), "From the command to the first sign of readiness.");
const OTHER_BYTES: Family = Family("metric_bytes", Some("bytes"), "Any other metric that is a size.");
const OTHER_RATE: Family = Family("metric_per_second", Some("per_second"), "Any other metric that is a rate.");
const OTHER_TIME: Family = Family("metric_seconds", Some("seconds"), "Any other metric that is a time.");
const OTHER_SHARE: Family = Family("metric_ratio", Some("ratio"), "Any other metric that is a share, 0 to 1.");
const OTHER_COUNT: Family = Family("metric_number", None, "Any other metric that is a number of things.");
const ELASTICITY: Family = Family("figure_ratio", Some("ratio"), "A figure that is a ratio, such as an elasticity.");
const SLOPE: Family = Family("figure_bytes", Some("bytes"), "A figure that is bytes for each thing counted.");
const RATIO: Family = Family("comparison_ratio", Some("ratio"), "Candidate over baseline, estimated within blocks.");
const VERDICT: Family = Family("comparison_verdict", None, "1 for the verdict on a difference, 0 for the others.");
const BUDGET: Family = Family("budget_verdict", None, "1 for the verdict on a budget, 0 for the others.");
const BUDGET_VALUE: Family = Family("budget_value", None, "What was judged, in the unit of the budget.");
const BUDGET_BOUND: Family = Family("budget_bound", None, "What the budget allows, in the unit of the budget.");

/// In the order of the text.
const FAMILIES: [Family; 29] = [
    VERSION,
    TRIALS,
    RSS,
    IN_USE,
    PSS,
    CHARGE,
    PEAK,
    OWNED,
    KIND,
    HEAP,
    RATE,
    TIME,
    FAILED,
    CPU,
    GC,
    COLLECTIONS,
    START_UP,
    OTHER_BYTES,
    OTHER_RATE,
    OTHER_TIME,
    OTHER_SHARE,
    OTHER_COUNT,
    ELASTICITY,
    SLOPE,
    RATIO,
    VERDICT,
    BUDGET,
    BUDGET_VALUE,
    BUDGET_BOUND,
];

type Labels<'a> = Vec<(&'a str, &'a str)>;

/// Samples with their family; one of each set of labels.
#[derive(Debug, Default)]
struct Samples {
    lines: Vec<(Family, String)>,
    seen: BTreeSet<String>,
}

impl Samples {
    /// What is not a number is not there; of two with the same labels the first counts, since a scraper refuses both.
    fn push(&mut self, family: Family, labels: &[(&str, &str)], value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label_value(value))).collect();
        let series = format!("loadline_{}{{{}}}", family.0, labels.join(","));
        if self.seen.insert(series.clone()) {
            self.lines.push((family, format!("{series} {value}\n")));
        }
    }

    /// One sample for each of `all`, 1 where it is the one.
    fn push_state<'a>(&mut self, family: Family, labels: &Labels<'a>, all: &[&'a str], is: &str) {
        for state in all {
            let mut labels = labels.clone();
            labels.push(("verdict", state));
            self.push(family, &labels, Some(if *state == is { 1.0 } else { 0.0 }));
        }
    }
}

/// The text, ending with `# EOF`.
pub fn openmetrics(document: &Document) -> String {
    let mut samples = Samples::default();
    let of = &document.conditions;
    samples.push(VERSION, &[("version", &of.loadline), ("scenario", &of.scenario)], Some(1.0));
    trials(&mut samples, document);
    document.metrics.iter().for_each(|metric| median(&mut samples, metric));
    comparisons(&mut samples, document);
    budgets(&mut samples, document);
    let mut out = String::new();
    for family in FAMILIES {
        let mut lines = samples.lines.iter().filter(|(of, _)| *of == family).peekable();
        if lines.peek().is_none() {
            continue;
        }
        let Family(name, unit, help) = family;
        out.push_str(&format!("# TYPE loadline_{name} gauge\n"));
        out.extend(unit.map(|unit| format!("# UNIT loadline_{name} {unit}\n")));
        out.push_str(&format!("# HELP loadline_{name} {help}\n"));
        out.extend(lines.map(|(_, line)| line.as_str()));
    }
    out + "# EOF\n"
}

fn trials(samples: &mut Samples, document: &Document) {
    for name in document.configurations() {
        for outcome in [Outcome::Completed, Outcome::SubjectFailed, Outcome::Killed, Outcome::Aborted] {
            let of = document.trials.iter().filter(|of| of.configuration == name && of.outcome == outcome);
            let labels = [("configuration", name), ("outcome", outcome_name(outcome))];
            samples.push(TRIALS, &labels, Some(of.count() as f64));
        }
    }
}

fn median(samples: &mut Samples, metric: &MetricRecord) {
    let (what, place) = parts(&metric.metric);
    let mut labels: Labels<'_> = vec![("configuration", &metric.configuration)];
    let family = match (metric.unit, what, place) {
        (Unit::Bytes, "rss", Some(mark)) => at(&mut labels, "mark", mark, RSS),
        (Unit::Bytes, "rss_in_use", Some(mark)) => at(&mut labels, "mark", mark, IN_USE),
        (Unit::Bytes, "pss", Some(mark)) => at(&mut labels, "mark", mark, PSS),
        (Unit::Bytes, "charge", Some(mark)) => at(&mut labels, "mark", mark, CHARGE),
        (Unit::Bytes, "rss_peak", None) => PEAK,
        (Unit::Bytes, "anon" | "file", Some(mark)) => {
            labels.extend([("mark", mark), ("kind", what)]);
            KIND
        }
        (Unit::Bytes, "heap_used" | "heap_committed" | "heap_live", Some(mark)) => {
            labels.extend([("mark", mark), ("part", what.trim_start_matches("heap_"))]);
            HEAP
        }
        (Unit::Bytes, what, Some(mark)) if is_owner(what) => {
            labels.extend([("mark", mark), ("owner", what)]);
            OWNED
        }
        (Unit::PerSecond, "rate", Some(phase)) => at(&mut labels, "phase", phase, RATE),
        (Unit::Milliseconds, what, Some(phase)) if is_statistic(what) => {
            labels.extend([("phase", phase), ("statistic", what)]);
            TIME
        }
        (Unit::Share, "failed", Some(phase)) => at(&mut labels, "phase", phase, FAILED),
        (Unit::Milliseconds, "gc_ms", Some(phase)) => at(&mut labels, "phase", phase, GC),
        (Unit::Count, "gc_count", Some(phase)) => at(&mut labels, "phase", phase, COLLECTIONS),
        (Unit::Seconds, "cpu_per_1000", Some(phase)) => at(&mut labels, "phase", phase, CPU),
        (Unit::Seconds, "start_up", None) => START_UP,
        (unit, ..) => at(&mut labels, "metric", &metric.metric, other(unit)),
    };
    let scale = if metric.unit == Unit::Milliseconds { 1e-3 } else { 1.0 };
    let counts = metric.values.iter().any(|value| value.used);
    samples.push(family, &labels, counts.then_some(metric.median * scale));
}

fn at<'a>(labels: &mut Labels<'a>, name: &'a str, value: &'a str, family: Family) -> Family {
    labels.push((name, value));
    family
}

fn other(unit: Unit) -> Family {
    match unit {
        Unit::Bytes => OTHER_BYTES,
        Unit::PerSecond => OTHER_RATE,
        Unit::Milliseconds | Unit::Seconds => OTHER_TIME,
        Unit::Share => OTHER_SHARE,
        Unit::Count => OTHER_COUNT,
        Unit::BytesPer => SLOPE,
        Unit::Ratio => ELASTICITY,
    }
}

fn is_owner(what: &str) -> bool {
    Owner::ALL.iter().any(|owner| family(owner.name()) == family(what))
}

/// `p99`, and `response.p99` or `service.p99` where both times are told.
fn is_statistic(what: &str) -> bool {
    let last = what.strip_prefix("response.").or(what.strip_prefix("service.")).unwrap_or(what);
    STATISTICS.contains(&last)
}

fn comparisons(samples: &mut Samples, document: &Document) {
    let all = [
        DifferenceVerdict::Better,
        DifferenceVerdict::Worse,
        DifferenceVerdict::Equivalent,
        DifferenceVerdict::CannotTell,
    ]
    .map(verdict_name);
    for of in document.comparisons.iter().filter(|of| of.primary) {
        let labels: Labels<'_> = vec![("baseline", &of.baseline), ("candidate", &of.candidate), ("metric", &of.metric)];
        samples.push(RATIO, &labels, of.ratio);
        samples.push_state(VERDICT, &labels, &all, verdict_name(of.verdict));
    }
}

fn budgets(samples: &mut Samples, document: &Document) {
    for of in &document.budgets {
        let labels: Labels<'_> = vec![("configuration", &of.configuration), ("budget", &of.expression)];
        let verdict = match of.verdict {
            BudgetVerdict::Pass => "pass",
            BudgetVerdict::Fail => "fail",
            BudgetVerdict::Undecided => "undecided",
        };
        samples.push_state(BUDGET, &labels, &["pass", "fail", "undecided"], verdict);
        // Unlike elsewhere milliseconds stay what they are, as the budget was written.
        samples.push(BUDGET_VALUE, &labels, of.value);
        samples.push(BUDGET_BOUND, &labels, of.bound);
    }
}

/// After the grammar of OpenMetrics: backslash, quote and newline are escaped. Other control characters are legal there
/// and trouble everywhere else.
fn label_value(text: &str) -> String {
    visible(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;

    #[test]
    fn families_have_type_unit_and_help() {
        insta::assert_snapshot!(openmetrics(&samples::compared()));
    }

    #[test]
    fn the_grammar_holds_for_any_text() {
        for document in [samples::empty(), samples::compared(), samples::failing(), samples::hostile()] {
            consumers::check_openmetrics(&openmetrics(&document));
        }
        assert_eq!(label_value("a\\b\"c\nd"), "a\\\\b\\\"c\\\\nd");
    }

    #[test]
    fn every_metric_has_its_place() {
        let document = samples::compared();
        let found = consumers::check_openmetrics(&openmetrics(&document));
        let value =
            |series: &str| found.iter().find(|(name, _)| name == series).unwrap_or_else(|| panic!("{series}")).1;
        assert_eq!(value("loadline_memory_rss_bytes{configuration=\"serial\",mark=\"loaded\"}"), 50.0 * samples::MIB);
        let retained = "{configuration=\"g1\",mark=\"loaded\",owner=\"malloc.retained\"}";
        assert_eq!(value(&format!("loadline_memory_resident_bytes{retained}")), 10.5 * samples::MIB);
        let p99 = "loadline_request_time_seconds{configuration=\"g1\",phase=\"steady\",statistic=\"p99\"}";
        assert_eq!(value(p99), 0.0095);
        let fail = "loadline_budget_verdict{configuration=\"g1\",budget=\"rss.loaded<=60MiB\",verdict=\"fail\"}";
        assert_eq!(value(fail), 1.0);
    }

    #[test]
    fn what_has_no_family_of_its_own_has_a_place_too() {
        for (unit, expect) in [
            (Unit::Bytes, "loadline_metric_bytes"),
            (Unit::PerSecond, "loadline_metric_per_second"),
            (Unit::Milliseconds, "loadline_metric_seconds"),
            (Unit::Seconds, "loadline_metric_seconds"),
            (Unit::Share, "loadline_metric_ratio"),
            (Unit::Count, "loadline_metric_number"),
            (Unit::BytesPer, "loadline_figure_bytes"),
            (Unit::Ratio, "loadline_figure_ratio"),
        ] {
            let mut document = samples::empty();
            let known = samples::compared().metrics.remove(0);
            document.metrics.push(MetricRecord { metric: "new.steady".to_owned(), unit, ..known });
            let text = openmetrics(&document);
            assert!(text.contains(&format!("{expect}{{configuration=\"serial\",metric=\"new.steady\"}}")), "{text}");
        }
    }

    #[test]
    fn no_two_samples_have_the_same_labels() {
        let mut document = samples::compared();
        document.metrics.extend(document.metrics.clone());
        assert_eq!(openmetrics(&document), openmetrics(&samples::compared()));
    }
}
