//! OpenMetrics text (1.0) and the older Prometheus text (0.0.4) for results, fleets, and watched JVMs.
//!
//! Results and fleets have only gauges, because Prometheus' older parsers (the textfile collector, the Pushgateway)
//! support neither state sets nor info. Single trials have no samples, because their sum would be meaningless. The
//! `jvm` label, not the pid, identifies a watched JVM; the pid is in `loadline_jvm_info`. A sample:
//! `loadline_memory_rss_bytes{configuration="serial",mark="loaded"} 52428800`

use super::metrics::{Metric, Source, TABLE};
use super::points::Points;
use crate::comparison::split;
use crate::owner::{self, Owner};
use crate::record::{Document, FleetDocument, MetricRecord, Unit, WatchDocument, WatchEnds};
use crate::units::visible;
use std::collections::BTreeSet;
use std::fmt::Write;

const STATISTICS: [&str; 9] = ["p50", "p75", "p90", "p99", "p999", "p99_9", "p9999", "max", "mean"];

/// A text format for samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus text 0.0.4.
    Prometheus,
}

impl Exposition {
    /// The preferred format of an `Accept` header (RFC 9110, section 12.5.1).
    pub fn of(accept: &str) -> Self {
        let wanted = |media_type: &str| {
            let ranges = accept.split(',').map(|range| range.split(';').map(str::trim));
            let own = ranges.filter_map(|mut range| {
                range.next().filter(|name| name.eq_ignore_ascii_case(media_type))?;
                let weight = range.find_map(|word| word.strip_prefix("q="));
                Some(weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
            });
            own.fold(0.0, f64::max)
        };
        let open = wanted("application/openmetrics-text");
        if open > 0.0 && open >= wanted("text/plain") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The OpenMetrics text of a result.
pub fn openmetrics(document: &Document) -> String {
    of_result(Some(document), None)
}

/// The OpenMetrics text of a fleet: its services, and the comparison of its blocks.
pub fn fleet_openmetrics(document: &FleetDocument) -> String {
    of_result(document.comparison.as_deref(), Some(document))
}

fn of_result(document: Option<&Document>, fleet: Option<&FleetDocument>) -> String {
    let of_plan = fleet.map(|of| (of.plan.loadline.as_str(), of.plan.name.as_str()));
    let own = document.map(|of| (of.conditions.loadline.as_str(), of.conditions.scenario.as_str()));
    let metrics = document.iter().flat_map(|of| &of.metrics).filter(|of| of.values.iter().any(|value| value.used));
    let medians: Vec<_> = metrics.map(|metric| (family(metric), metric)).collect();
    written(Exposition::OpenMetrics, |of, to| match (of.source, document, fleet) {
        (Source::Build, ..) => {
            if let Some((version, scenario)) = own.or(of_plan) {
                to.at(&[("version", version), ("scenario", scenario)], 1.0);
            }
        }
        (Source::Result(read), Some(document), _) => read(document, to),
        (Source::Fleet(read), _, Some(fleet)) => read(fleet, to),
        (Source::Service(read), _, Some(fleet)) => {
            fleet.services.iter().for_each(|of| to.under("service", &of.name, |to| read(of, to)));
        }
        (source, ..) if source.is_median() => {
            for ((_, labels), metric) in medians.iter().filter(|((name, _), _)| *name == of.name) {
                let scale = if metric.unit == Unit::Milliseconds { 1e-3 } else { 1.0 };
                to.under("configuration", &metric.configuration, |to| to.at(labels, metric.median * scale));
            }
        }
        _ => {}
    })
}

/// The text of a scrape; `ends` includes JVMs that are gone.
pub fn scrape(document: &WatchDocument, ends: &[WatchEnds], text: Exposition) -> String {
    written(text, |of, to| match of.source {
        Source::Watch(read) => read(document, to),
        Source::Ends(read) => ends.iter().for_each(|of| to.under("jvm", &of.name, |to| read(of, to))),
        source => document.jvms.iter().for_each(|jvm| to.under("jvm", &jvm.name, |to| source.of_jvm(jvm, to))),
    })
}

/// All families with samples, in table order. Scrapers reject duplicate samples, so only the first is written.
fn written(text: Exposition, read: impl Fn(&Metric, &mut Points)) -> String {
    let (mut out, is_open) = (String::new(), text == Exposition::OpenMetrics);
    for of in TABLE.iter().filter(|of| !of.name.is_empty()) {
        let mut points = Points::default();
        read(of, &mut points);
        if points.0.is_empty() {
            continue;
        }
        let (kind, series) = (if of.counts { "counter" } else { "gauge" }, series(of));
        // In the older text, a family has the same name as its samples.
        let family = if is_open { format!("loadline_{}", of.name) } else { series.clone() };
        let _ = writeln!(out, "# TYPE {family} {kind}");
        if let Some(unit) = of.unit().filter(|_| is_open) {
            let _ = writeln!(out, "# UNIT {family} {unit}");
        }
        let _ = writeln!(out, "# HELP {family} {}", of.help);
        let mut seen = BTreeSet::new();
        for point in &points.0 {
            let labels = point.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label_value(value)));
            let labels = labels.collect::<Vec<_>>().join(",");
            if seen.insert(labels.clone()) {
                let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
                let _ = writeln!(out, "{series}{labels} {}", point.value);
            }
        }
    }
    if is_open { out + "# EOF\n" } else { out }
}

fn series(of: &Metric) -> String {
    format!("loadline_{}{}", of.name, if of.counts { "_total" } else { "" })
}

fn family(metric: &MetricRecord) -> (&'static str, Vec<(&str, &str)>) {
    let (what, place) = split(&metric.metric);
    let own = TABLE.iter().find_map(|of| Some((of.name, of.source.labels(what, place)?)));
    let own = own.filter(|_| !metric.unit.is_of_figures());
    own.unwrap_or_else(|| (other(metric.unit), vec![("metric", metric.metric.as_str())]))
}

impl Source {
    fn is_median(self) -> bool {
        use Source::{At, Each, Once, Others, Owners, Times};
        matches!(self, Once(_) | At(..) | Each(..) | Owners | Times | Others)
    }

    /// A metric's labels if it is among these medians.
    fn labels<'a>(self, what: &'a str, place: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        use Source::{At, Each, Once, Owners, Times};
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

/// The family for metrics without their own.
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

/// Whether it is a name such as `p99`, or `response.p99` and `service.p99` for a phase with both timings.
fn is_statistic(what: &str) -> bool {
    let last = what.strip_prefix("response.").or(what.strip_prefix("service.")).unwrap_or(what);
    STATISTICS.contains(&last)
}

/// Escapes backslash, quote, and newline according to the OpenMetrics grammar. The grammar allows other control
/// characters, but they cause trouble elsewhere.
fn label_value(text: &str) -> String {
    visible(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::super::consumers::check_openmetrics;
    use super::super::otlp;
    use super::super::samples::{self, watched};
    use super::*;
    use crate::record::{GrowthWord, WATCH_OWNERS_MAX, WatchAccount, WatchOwner};
    use crate::{fleet_sample, tune_sample};

    /// Checks the values of samples; `None` for one that must be missing.
    fn check_values(text: &str, expected: &[(&str, Option<f64>)]) {
        let found = check_openmetrics(text);
        for (series, expect) in expected {
            let value = found.iter().find(|(name, _)| name == series).map(|(_, value)| *value);
            assert_eq!(value, *expect, "{series}");
        }
    }

    fn mib(number: f64) -> Option<f64> {
        Some(number * samples::MIB)
    }

    #[test]
    fn openmetrics_families_have_type_unit_and_help() {
        insta::assert_snapshot!(openmetrics(&samples::compared()));
    }

    #[test]
    fn every_metric_of_a_result_is_exported() {
        let tuned = [
            ("loadline_tuning_bytes{objective=\"rss\",setting=\"tuned\"}", mib(1000.7)),
            ("loadline_tuning_cpu_ratio{phase=\"steady\"}", Some(1.255 / 1.25)),
        ];
        check_values(&openmetrics(&tune_sample::proved()), &tuned);
        let compared = [
            ("loadline_memory_rss_bytes{configuration=\"serial\",mark=\"loaded\"}", mib(50.0)),
            (
                "loadline_memory_resident_bytes{configuration=\"g1\",mark=\"loaded\",owner=\"malloc.retained\"}",
                mib(10.5),
            ),
            ("loadline_request_time_seconds{configuration=\"g1\",phase=\"steady\",statistic=\"p99\"}", Some(0.0095)),
            ("loadline_budget_verdict{configuration=\"g1\",budget=\"rss.loaded<=60MiB\",verdict=\"fail\"}", Some(1.0)),
        ];
        check_values(&openmetrics(&samples::compared()), &compared);
    }

    #[test]
    fn metrics_without_their_own_family_are_exported_by_unit() {
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
    fn duplicate_samples_are_exported_once() {
        let mut document = samples::compared();
        document.metrics.extend(document.metrics.clone());
        assert_eq!(openmetrics(&document), openmetrics(&samples::compared()));
    }

    #[test]
    fn fleet_lines_limits_and_verdicts_are_exported() {
        let expected = [
            ("loadline_fleet_line_bytes{service=\"export\"}", mib(300.0)),
            ("loadline_fleet_limit_bytes{service=\"export\"}", mib(330.0)),
            ("loadline_fleet_wasted_bytes{service=\"export\"}", mib(-74.0)),
            ("loadline_fleet_line_bytes{service=\"journal\"}", None),
            ("loadline_fleet_verdict{service=\"gateway\",verdict=\"not_held\"}", Some(1.0)),
            ("loadline_fleet_verdict{service=\"gateway\",verdict=\"proved\"}", Some(0.0)),
            ("loadline_fleet_entries{state=\"missing\"}", Some(2.0)),
            ("loadline_fleet_node_seconds", Some(9_000.0)),
            ("loadline_build_info{version=\"0.1.0\",scenario=\"shop\"}", Some(1.0)),
        ];
        check_values(&fleet_openmetrics(&fleet_sample::fleet()), &expected);
    }

    #[test]
    fn fleet_metrics_include_the_comparison() {
        let document = FleetDocument { comparison: Some(Box::new(samples::compared())), ..fleet_sample::fleet() };
        let found = check_openmetrics(&fleet_openmetrics(&document));
        assert!(found.iter().any(|(name, _)| name.starts_with("loadline_comparison_ratio{")));
    }

    #[test]
    fn watched_values_are_exported() {
        let expected = [
            ("loadline_memory_rss_bytes{jvm=\"shop\",kind=\"anon\"}", mib(500.0)),
            ("loadline_memory_headroom_bytes{jvm=\"shop\"}", mib(90.0)),
            ("loadline_memory_growth_bytes_per_second{jvm=\"shop\",bound=\"estimate\",owner=\"direct\"}", Some(1000.0)),
            ("loadline_memory_limit_eta_seconds{jvm=\"shop\",bound=\"soonest\"}", Some(7200.0)),
            ("loadline_memory_limit_eta_seconds{jvm=\"shop\",bound=\"latest\"}", None),
            ("loadline_growth_verdict{jvm=\"shop\",verdict=\"grows\"}", Some(1.0)),
            ("loadline_growth_verdict{jvm=\"blind\",verdict=\"cannot_tell\"}", Some(1.0)),
            ("loadline_gc_pause_seconds_total{jvm=\"shop\"}", Some(1.5)),
            ("loadline_watch_unreadable{jvm=\"blind\"}", Some(1.0)),
            ("loadline_memory_rss_bytes{jvm=\"blind\",kind=\"anon\"}", None),
            // A JVM that is gone still has its ends.
            ("loadline_jvm_ends_total{jvm=\"gone\",how=\"killed\"}", Some(2.0)),
            ("loadline_jvm_ends_total{jvm=\"gone\",how=\"other\"}", Some(1.0)),
        ];
        let ends = [WatchEnds { name: "gone".to_owned(), killed: 2, other: 1 }];
        check_values(&scrape(&watched("shop"), &ends, Exposition::OpenMetrics), &expected);
    }

    #[test]
    fn exported_owners_are_limited_and_have_the_accounts_age() {
        let owners = (0..1000).map(|n| WatchOwner { name: format!("o{n}"), bytes: 1 << 20 }).collect();
        let mut document = watched("shop");
        document.jvms[0].account = Some(WatchAccount { age_s: 90.0, owners, ..WatchAccount::default() });
        let text = scrape(&document, &[], Exposition::OpenMetrics);
        let found = check_openmetrics(&text);
        let of = |family: &str| found.iter().filter(|(name, _)| name.starts_with(family)).count();
        let counts = ["resident", "counted"].map(|what| of(&format!("loadline_memory_{what}_bytes{{")));
        assert_eq!(counts, [WATCH_OWNERS_MAX, 1]);
        assert!(found.contains(&("loadline_memory_account_age_seconds{jvm=\"shop\"}".to_owned(), 90.0)), "{text}");
        let json = otlp(&document, &[], 1);
        assert_eq!(json.matches("loadline.memory.owner").count(), WATCH_OWNERS_MAX + 1);
        let without = scrape(&watched("shop"), &[], Exposition::OpenMetrics);
        assert!(!without.contains("account"), "an age is exported only with an account");
    }

    #[test]
    fn a_growth_hint_exports_no_time_to_the_limit() {
        let mut document = watched("shop");
        document.jvms[0].growth.verdict = GrowthWord::Warming;
        assert!(!scrape(&document, &[], Exposition::OpenMetrics).contains("eta"));
    }

    #[test]
    fn the_older_text_format_has_no_units_or_eof() {
        let text = scrape(&watched("shop"), &[], Exposition::of("text/plain"));
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
        assert!(text.contains("# TYPE loadline_gc_pause_seconds_total counter\n"), "{text}");
        for (accept, expected) in [
            ("application/openmetrics-text;version=1.0.0,*/*;q=0.1", Exposition::OpenMetrics),
            // Prometheus 2.42 and 3.5.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Exposition::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;q=0.3",
                Exposition::OpenMetrics,
            ),
            ("text/plain;version=0.0.4, application/openmetrics-text;q=0.5", Exposition::Prometheus),
            ("application/openmetrics-text;q=0", Exposition::Prometheus),
            ("*/*", Exposition::Prometheus),
        ] {
            assert_eq!(Exposition::of(accept), expected, "{accept}");
        }
    }

    #[test]
    fn alerts_and_dashboard_use_only_exported_metrics() {
        let is_watched =
            |of: &&Metric| matches!(of.source, Source::Watch(_) | Source::Jvm(_) | Source::Now(_) | Source::Ends(_));
        let exported: BTreeSet<String> = TABLE.iter().filter(is_watched).map(series).collect();
        for text in [
            include_str!("../../../../monitoring/dashboard.json"),
            include_str!("../../../../monitoring/loadline.rules.yaml"),
            include_str!("../../../../monitoring/loadline.rules.test.yaml"),
        ] {
            let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let names: BTreeSet<&str> = words.filter(|word| word.starts_with("loadline_")).collect();
            assert!(!names.is_empty());
            let unknown: Vec<&&str> = names.iter().filter(|name| !exported.contains(**name)).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }

    #[test]
    fn a_watch_without_jvms_still_exports_its_own_metrics() {
        let nothing = check_openmetrics(&scrape(&WatchDocument::default(), &[], Exposition::OpenMetrics));
        assert_eq!(nothing.len(), 6, "{nothing:?}");
    }
}
