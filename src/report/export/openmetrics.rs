//! OpenMetrics text (1.0), for a history of builds: medians of each configuration, verdicts of budgets and comparisons.
//!
//! Only gauges, so that Prometheus' older text parsers (the collector of text files, the push gateway) read it too;
//! they know neither state sets nor info. No samples of single trials: a sum over them would mean nothing.
//! `loadline_memory_rss_bytes{configuration="serial",mark="loaded"} 52428800`

mod fleet;

pub use fleet::fleet_openmetrics;

use super::super::words::{VERDICTS, name_of};
use super::inert::visible;
use crate::comparison::split;
use crate::owner::{self, Owner};
use crate::record::{BudgetVerdict, Document, MetricRecord, Outcome, Unit};
use crate::report::summary::tune_answer::objective_gain;
use serde::Serialize;
use std::collections::BTreeSet;

const STATISTICS: [&str; 9] = ["p50", "p75", "p90", "p99", "p999", "p99_9", "p9999", "max", "mean"];

/// A family of samples: its name without `loadline_`, its unit, which ends the name or is empty, its help, its metrics.
type Family = (&'static str, &'static str, &'static str, Metrics);

/// The metrics whose medians a family has.
#[derive(Debug, Clone, Copy)]
enum Metrics {
    /// Samples that are no medians, or medians of metrics without a family of their own.
    No,
    /// One of this name, once in a trial.
    Once(&'static str),
    /// One of this name, at each place, which the label says.
    At(&'static str, &'static str),
    /// Several, at each place: the label of the place, that of the metric, and the label's value for each.
    Each(&'static str, &'static str, &'static [(&'static str, &'static str)]),
    /// Every owner of the account.
    Owners,
    /// Every figure of a time.
    Times,
}

use Metrics::{At, Each, No, Once, Owners, Times};

const KINDS: &[(&str, &str)] = &[("anon", "anon"), ("file", "file")];
const PARTS: &[(&str, &str)] = &[("heap_used", "used"), ("heap_committed", "committed"), ("heap_live", "live")];

/// All families, in the order of the text.
const FAMILIES: [Family; 42] = [
    ("build_info", "", "Version of Loadline and scenario; always 1.", No),
    ("trials", "", "Trials by how they ended.", No),
    ("memory_rss_bytes", "bytes", "Resident memory at a mark, shared pages in full.", At("rss", "mark")),
    (
        "memory_in_use_bytes",
        "bytes",
        "Resident memory at a mark without what malloc retains.",
        At("rss_in_use", "mark"),
    ),
    ("memory_pss_bytes", "bytes", "Resident memory at a mark, shared pages divided.", At("pss", "mark")),
    ("memory_charge_bytes", "bytes", "What the memory cgroup counts at a mark.", At("charge", "mark")),
    ("memory_rss_peak_bytes", "bytes", "Highest resident memory of the trial.", Once("rss_peak")),
    ("memory_resident_bytes", "bytes", "Resident memory at a mark by owner; in each trial they sum to RSS.", Owners),
    (
        "memory_rss_kind_bytes",
        "bytes",
        "Resident memory at a mark by kind of page: anon or file.",
        Each("mark", "kind", KINDS),
    ),
    ("heap_bytes", "bytes", "The Java heap at a mark; committed is not resident.", Each("mark", "part", PARTS)),
    ("requests_per_second", "per_second", "Correct answers per second of a phase.", At("rate", "phase")),
    ("request_time_seconds", "seconds", "Time of correct answers in a phase.", Times),
    ("requests_failed_ratio", "ratio", "Failed requests of a phase, of all.", At("failed", "phase")),
    (
        "cpu_per_1000_requests_seconds",
        "seconds",
        "CPU time of the subject per 1,000 correct answers.",
        At("cpu_per_1000", "phase"),
    ),
    (
        "allocated_per_request_bytes",
        "bytes",
        "Allocated in the Java heap per correct answer, without what is allocated at rest.",
        At("alloc_per_request", "phase"),
    ),
    (
        "allocated_bytes_per_second",
        "bytes_per_second",
        "Allocated in the Java heap during a phase.",
        At("alloc_rate", "phase"),
    ),
    ("gc_seconds", "seconds", "Time in collections during a phase.", At("gc_ms", "phase")),
    ("gc_collections", "", "Collections during a phase.", At("gc_count", "phase")),
    ("start_up_seconds", "seconds", "From the command to the first sign of readiness.", Once("start_up")),
    ("metric_bytes", "bytes", "Any other metric that is a size.", No),
    ("metric_bytes_per_second", "bytes_per_second", "Any other metric that is a size per second.", No),
    ("metric_per_second", "per_second", "Any other metric that is a rate.", No),
    ("metric_seconds", "seconds", "Any other metric that is a time.", No),
    ("metric_ratio", "ratio", "Any other metric that is a share, 0 to 1.", No),
    ("metric_number", "", "Any other metric that is a number of things.", No),
    ("figure_ratio", "ratio", "A figure that is a ratio, such as an elasticity.", No),
    ("figure_bytes", "bytes", "A figure that is bytes for each thing counted.", No),
    ("comparison_ratio", "ratio", "Candidate over baseline, estimated within blocks.", No),
    ("comparison_verdict", "", "1 for the verdict on a difference, 0 for the others.", No),
    ("budget_verdict", "", "1 for the verdict on a budget, 0 for the others.", No),
    ("budget_value", "", "What was judged, in the unit of the budget.", No),
    ("budget_bound", "", "What the budget allows, in the unit of the budget.", No),
    ("tuning_bytes", "bytes", "What tuning makes small, as it is and tuned; medians of the confirmation.", No),
    ("tuning_cpu_ratio", "ratio", "CPU time of a request tuned, over that as it is; estimated within blocks.", No),
    ("fleet_entries", "", "Entries of the plan by what became of them; a double one is answered or failed, too.", No),
    ("fleet_node_seconds", "seconds", "How long the nodes were at work, in sum.", No),
    ("fleet_to_win_bytes", "bytes", "What limits of production are larger than those to set, in sum.", No),
    ("fleet_line_bytes", "bytes", "The smallest limit at which the target of a service holds.", No),
    ("fleet_limit_bytes", "bytes", "The limit to set: the line with its headroom.", No),
    ("fleet_declared_bytes", "bytes", "The limit that a service has in production.", No),
    ("fleet_wasted_bytes", "bytes", "The limit of production without the limit to set; negative where too small.", No),
    ("fleet_verdict", "", "1 for what became of a line, 0 for the others.", No),
];

type Labels<'a> = Vec<(&'a str, &'a str)>;

/// Samples with their family; one of each set of labels.
#[derive(Debug, Default)]
struct Samples {
    /// Samples behind the name of their family.
    lines: Vec<(&'static str, String)>,
    seen: BTreeSet<String>,
}

impl Samples {
    /// A value that is no number leaves no sample; of two samples with the same labels the first counts, since a
    /// scraper refuses both.
    fn push(&mut self, family: &'static str, labels: &[(&str, &str)], value: Option<f64>) {
        debug_assert!(FAMILIES.iter().any(|of| of.0 == family), "{family} is no family");
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label_value(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let series = format!("loadline_{family}{labels}");
        if self.seen.insert(series.clone()) {
            self.lines.push((family, format!("{series} {value}\n")));
        }
    }

    /// One sample for each of `all`, 1 where it is the one.
    fn push_state<V: Copy + PartialEq + Serialize>(
        &mut self,
        family: &'static str,
        labels: &Labels<'_>,
        all: &[V],
        is: V,
    ) {
        for state in all {
            let (mut labels, name) = (labels.clone(), name_of(state));
            labels.push(("verdict", &name));
            self.push(family, &labels, Some(if *state == is { 1.0 } else { 0.0 }));
        }
    }
}

/// The text, ending with `# EOF`.
pub fn openmetrics(document: &Document) -> String {
    let mut samples = Samples::default();
    of_document(&mut samples, document);
    written(&samples)
}

fn of_document(samples: &mut Samples, document: &Document) {
    let of = &document.conditions;
    samples.push("build_info", &[("version", &of.loadline), ("scenario", &of.scenario)], Some(1.0));
    trials(samples, document);
    document.metrics.iter().for_each(|metric| median(samples, metric));
    comparisons(samples, document);
    budgets(samples, document);
    tuning(samples, document);
}

/// All families that have samples, in the order of the table.
fn written(samples: &Samples) -> String {
    let mut out = String::new();
    for (name, unit, help, _) in FAMILIES {
        let mut lines = samples.lines.iter().filter(|(of, _)| *of == name).peekable();
        if lines.peek().is_none() {
            continue;
        }
        out.push_str(&format!("# TYPE loadline_{name} gauge\n"));
        out.extend((!unit.is_empty()).then(|| format!("# UNIT loadline_{name} {unit}\n")));
        out.push_str(&format!("# HELP loadline_{name} {help}\n"));
        out.extend(lines.map(|(_, line)| line.as_str()));
    }
    out + "# EOF\n"
}

fn trials(samples: &mut Samples, document: &Document) {
    for name in document.configurations() {
        for outcome in [Outcome::Completed, Outcome::SubjectFailed, Outcome::Killed, Outcome::Aborted] {
            let of = document.trials.iter().filter(|of| of.configuration == name && of.outcome == outcome);
            let labels = [("configuration", name), ("outcome", &name_of(outcome))];
            samples.push("trials", &labels, Some(of.count() as f64));
        }
    }
}

fn median(samples: &mut Samples, metric: &MetricRecord) {
    let (what, place) = split(&metric.metric);
    let of_metric = |(name, _, _, metrics): &Family| Some((*name, metrics.labels(what, place)?));
    let own = FAMILIES.iter().find_map(of_metric).filter(|_| !metric.unit.is_of_figures());
    let (family, own) = own.unwrap_or_else(|| (other(metric.unit), vec![("metric", metric.metric.as_str())]));
    let labels = [vec![("configuration", metric.configuration.as_str())], own].concat();
    let scale = if metric.unit == Unit::Milliseconds { 1e-3 } else { 1.0 };
    let counts = metric.values.iter().any(|value| value.used);
    samples.push(family, &labels, counts.then_some(metric.median * scale));
}

impl Metrics {
    /// The labels of a metric among these; `None` of any other.
    fn labels<'a>(self, what: &'a str, place: &'a str) -> Option<Labels<'a>> {
        Some(match (self, place) {
            (Once(name), "") if name == what => Vec::new(),
            (_, "") => return None,
            (At(name, label), _) if name == what => vec![(label, place)],
            (Each(label, kind, all), _) => {
                let (_, value) = all.iter().find(|(name, _)| *name == what)?;
                vec![(label, place), (kind, value)]
            }
            (Owners, _) if is_owner(what) => vec![("mark", place), ("owner", what)],
            (Times, _) if is_statistic(what) => vec![("phase", place), ("statistic", what)],
            _ => return None,
        })
    }
}

/// The family of metrics without one of their own.
fn other(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes | Unit::BytesPerRequest => "metric_bytes",
        Unit::BytesPerSecond => "metric_bytes_per_second",
        Unit::PerSecond => "metric_per_second",
        Unit::Milliseconds | Unit::Seconds => "metric_seconds",
        Unit::Share => "metric_ratio",
        Unit::Count => "metric_number",
        Unit::BytesPer => "figure_bytes",
        Unit::Ratio => "figure_ratio",
    }
}

fn is_owner(what: &str) -> bool {
    Owner::ALL.iter().any(|owner| owner::family(owner.name()) == owner::family(what))
}

/// `p99`, and `response.p99` or `service.p99` where both times are told.
fn is_statistic(what: &str) -> bool {
    let last = what.strip_prefix("response.").or(what.strip_prefix("service.")).unwrap_or(what);
    STATISTICS.contains(&last)
}

fn comparisons(samples: &mut Samples, document: &Document) {
    for of in document.comparisons.iter().filter(|of| of.primary) {
        let labels: Labels<'_> = vec![("baseline", &of.baseline), ("candidate", &of.candidate), ("metric", &of.metric)];
        samples.push("comparison_ratio", &labels, of.ratio);
        samples.push_state("comparison_verdict", &labels, &VERDICTS, of.verdict);
    }
}

fn budgets(samples: &mut Samples, document: &Document) {
    for of in &document.budgets {
        let labels: Labels<'_> = vec![("configuration", &of.configuration), ("budget", &of.expression)];
        let verdicts = [BudgetVerdict::Pass, BudgetVerdict::Fail, BudgetVerdict::Undecided];
        samples.push_state("budget_verdict", &labels, &verdicts, of.verdict);
        // The unit is that of the budget as it was written: milliseconds stay milliseconds.
        samples.push("budget_value", &labels, of.value);
        samples.push("budget_bound", &labels, of.bound);
    }
}

/// What was confirmed: the first gain is the objective.
fn tuning(samples: &mut Samples, document: &Document) {
    let Some(tune) = &document.tune else { return };
    let objective = tune.objective.word();
    if let Some(gain) = objective_gain(tune).filter(|gain| gain.unit == Unit::Bytes) {
        for (setting, value) in [("as_is", gain.baseline_median), ("tuned", gain.candidate_median)] {
            samples.push("tuning_bytes", &[("objective", objective), ("setting", setting)], Some(value));
        }
    }
    for gain in &tune.gains {
        let (what, phase) = split(&gain.metric);
        if what.starts_with("cpu_per") {
            samples.push("tuning_cpu_ratio", &[("phase", phase)], gain.ratio);
        }
    }
}

/// After the grammar of OpenMetrics: backslash, quote and newline are escaped. Other control characters are legal there
/// and trouble everywhere else.
pub(super) fn label_value(text: &str) -> String {
    visible(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;
    use crate::report::tune_sample;

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
    fn what_tuning_confirmed_has_its_place() {
        let found = consumers::check_openmetrics(&openmetrics(&tune_sample::proved()));
        let value = |series: &str| found.iter().find(|(name, _)| name == series).map(|(_, value)| *value);
        let tuned = value("loadline_tuning_bytes{objective=\"rss\",setting=\"tuned\"}").unwrap();
        assert!((tuned - 1000.7 * samples::MIB).abs() < 1.0);
        assert_eq!(value("loadline_tuning_cpu_ratio{phase=\"steady\"}"), Some(1.255 / 1.25));
        for text in samples::hostile_texts() {
            consumers::check_openmetrics(&openmetrics(&tune_sample::hostile(&text)));
        }
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
