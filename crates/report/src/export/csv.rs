//! CSV tables (RFC 4180) for spreadsheets and data frames. Results are in long form, one row per number. Comparisons,
//! fleets, and histories have a row per comparison, service, or point. Untrusted text that looks like a formula is
//! prefixed with an apostrophe.

use super::super::quantity::plain;
use super::super::words::name_of;
use super::metrics::{Source, TABLE};
use crate::record::{
    ComparisonRecord, Document, FleetDocument, HistoryDocument, LeastRecord, MetricHistory, MetricRecord, ProbeVerdict,
    SeriesRecord, ServiceRecord, Trial, ValueRecord,
};
use crate::summary::fleet::by_waste;
use crate::summary::tried::reached;
use crate::units::visible;
use std::collections::BTreeMap;

const TRIALS_HEAD: &str = "configuration,block,trial,outcome,metric,unit,value,used";
const COMPARISONS_HEAD: &str = "baseline,candidate,metric,unit,better,primary,verdict,baseline_median,\
    candidate_median,difference,difference_low,difference_high,ratio,ratio_low,ratio_high,confidence,\
    confidence_each,least,least_kind,blocks,blocks_needed";
const FLEET_HEAD: &str = "service,index,verdict,line_bytes,limit_bytes,declared_bytes,wasted_bytes,last_bytes,\
    heap_bytes,node,other_cpu,trials,seconds,text";
const HISTORY_HEAD: &str = "scenario,configuration,metric,unit,point,name,commit,build,started,trials,centre,low,high,\
    change,change_low,change_high,verdict,conditions_changed";

/// Every metric of every trial, in trial order. A trial without measurements has one row without a metric. For searches
/// and tunings, each trial's rows begin with its purpose, results, and verdict.
pub fn csv(document: &Document) -> String {
    // Trials of two archives may share an index, but not an index and a configuration.
    let mut by_trial: BTreeMap<(&str, u32), Vec<(&MetricRecord, &ValueRecord)>> = BTreeMap::new();
    for metric in &document.metrics {
        for value in &metric.values {
            by_trial.entry((&metric.configuration, value.trial)).or_default().push((metric, value));
        }
    }
    let rows = document.trials.iter().flat_map(|trial| {
        let start =
            [cell(&trial.configuration), trial.block.to_string(), trial.index.to_string(), name_of(trial.outcome)];
        let values = by_trial.get(&(trial.configuration.as_str(), trial.index)).map(Vec::as_slice).unwrap_or_default();
        let of_value = |(metric, value): &(&MetricRecord, &ValueRecord)| {
            [cell(&metric.metric), name_of(metric.unit), plain(Some(value.value)), value.used.to_string()]
        };
        let mut ends = tried(trial);
        ends.extend(values.iter().map(of_value));
        if ends.is_empty() {
            ends.push(Default::default());
        }
        ends.into_iter().map(move |end| [start.clone(), end].concat())
    });
    written(TRIALS_HEAD, rows)
}

/// A trial of a search or tuning: metric, unit, number, and whether the trial counts.
fn tried(trial: &Trial) -> Vec<[String; 4]> {
    let searched = trial.probe.as_ref().map(|of| of.verdict);
    let tuned = trial.tuned.as_ref().map(|of| of.verdict);
    let reached = reached(trial);
    let cells = TABLE.iter().filter_map(|of| {
        let (verdict, unit, read) = match of.source {
            Source::Searched(unit, read) => (searched?, unit, read),
            Source::Tuned(unit, read) => (tuned?, unit, read),
            _ => return None,
        };
        let used = verdict != ProbeVerdict::Discarded;
        Some([of.name.to_owned(), unit.to_owned(), plain(Some(read(trial, &reached)?)), used.to_string()])
    });
    cells.collect()
}

/// Each candidate compared with the baseline, one row per metric.
pub fn comparisons_csv(document: &Document) -> String {
    written(COMPARISONS_HEAD, document.comparisons.iter().map(comparison))
}

fn comparison(of: &ComparisonRecord) -> Vec<String> {
    let (least, least_kind) = match of.least {
        LeastRecord::Absolute(least) => (least, "absolute"),
        LeastRecord::Relative(least) => (least, "relative"),
    };
    let mut cells = vec![cell(&of.baseline), cell(&of.candidate), cell(&of.metric)];
    cells.extend([name_of(of.unit), name_of(of.better), of.primary.to_string(), name_of(of.verdict)]);
    cells.extend([Some(of.baseline_median), Some(of.candidate_median)].map(plain));
    cells.extend([Some(of.difference), of.low, of.high, of.ratio, of.ratio_low, of.ratio_high].map(plain));
    cells.extend([of.confidence, of.confidence_each, least].map(|number| plain(Some(number))));
    cells.extend([least_kind.to_owned(), of.blocks.to_string()]);
    cells.push(of.blocks_needed.map(|blocks| blocks.to_string()).unwrap_or_default());
    cells
}

/// The services of a fleet: those with too little memory first, then the most wasteful.
pub fn fleet_csv(document: &FleetDocument) -> String {
    written(FLEET_HEAD, by_waste(document).into_iter().map(service))
}

fn service(of: &ServiceRecord) -> Vec<String> {
    let line = of.line.as_ref();
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    let mut cells = vec![cell(&of.name), of.index.to_string(), name_of(of.verdict)];
    cells.extend([line.map(|line| line.limit_bytes), of.limit_bytes, of.declared_bytes].map(bytes));
    cells.push(of.wasted_bytes.map(|bytes| bytes.to_string()).unwrap_or_default());
    cells.extend([of.last_bytes, line.and_then(|line| line.heap_bytes)].map(bytes));
    cells.extend([cell(&of.node), of.other_cpu.to_string(), of.trials.to_string(), of.seconds.to_string()]);
    cells.push(cell(&of.text));
    cells
}

/// Every metric at every point of a history, with changes.
pub fn history_csv(document: &HistoryDocument) -> String {
    let metrics = document.series.iter().flat_map(|series| series.metrics.iter().map(move |metric| (series, metric)));
    let rows = metrics.flat_map(|(series, of)| (0..series.points.len()).map(move |at| point(series, of, at)));
    written(HISTORY_HEAD, rows)
}

fn point(series: &SeriesRecord, metric: &MetricHistory, at: usize) -> Vec<String> {
    let point = &series.points[at];
    let value = metric.values.get(at).copied().flatten();
    let change = metric.changes.iter().find(|change| change.point as usize == at);
    let text = |text: &Option<String>| text.as_deref().map(cell).unwrap_or_default();
    let mut cells = vec![cell(&series.scenario), cell(&series.configuration), cell(&metric.metric)];
    cells.extend([name_of(metric.unit), at.to_string(), cell(&point.name), text(&point.commit), text(&point.build)]);
    cells.extend([cell(&point.started), value.map_or(0, |value| value.trials).to_string()]);
    cells.extend([value.map(|of| of.centre), value.and_then(|of| of.low), value.and_then(|of| of.high)].map(plain));
    cells.extend([change.map(|of| of.difference), change.map(|of| of.low), change.map(|of| of.high)].map(plain));
    cells.push(change.map(|of| name_of(of.verdict)).unwrap_or_default());
    cells.push(cell(&point.conditions_changed.join("; ")));
    cells
}

fn written<Row: AsRef<[String]>>(head: &str, rows: impl Iterator<Item = Row>) -> String {
    let rows = rows.map(|cells| format!("{}\r\n", cells.as_ref().join(",")));
    std::iter::once(format!("{head}\r\n")).chain(rows).collect()
}

/// Untrusted text as a cell. OWASP lists the formula prefixes in "CSV Injection".
fn cell(text: &str) -> String {
    let text = visible(text);
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text };
    match text.contains([',', '"', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::consumers::check_csv;
    use super::super::samples;
    use super::*;
    use crate::{find_sample, fleet_sample, history_sample, tune_sample};

    #[test]
    fn csv_has_a_row_for_each_value() {
        insta::assert_snapshot!(csv(&samples::compared()).lines().take(12).collect::<Vec<_>>().join("\n"));
        insta::assert_snapshot!(comparisons_csv(&samples::compared()).replace("\r\n", "\n"));
    }

    #[test]
    fn fleet_csv_has_a_row_for_each_service() {
        insta::assert_snapshot!(fleet_csv(&fleet_sample::fleet()).replace("\r\n", "\n"));
    }

    #[test]
    fn history_csv_has_a_row_for_each_metric_and_point() {
        insta::assert_snapshot!(history_csv(&history_sample::history()).replace("\r\n", "\n"));
    }

    #[test]
    fn every_csv_value_round_trips() {
        let document = samples::compared();
        let rows = check_csv(&csv(&document));
        let numbers: usize = document.metrics.iter().map(|metric| metric.values.len()).sum();
        assert_eq!(rows.len(), 1 + numbers);
        for metric in &document.metrics {
            for value in &metric.values {
                let of = |row: &&Vec<String>| {
                    row[0] == metric.configuration && row[2] == value.trial.to_string() && row[4] == metric.metric
                };
                let row = rows.iter().find(of).unwrap();
                assert_eq!(row[6].parse::<f64>().unwrap(), value.value);
                assert_eq!(row[7], value.used.to_string());
            }
        }
    }

    #[test]
    fn tuning_csv_has_memory_and_verdict_of_each_trial() {
        let mut document = tune_sample::proved();
        let marks = find_sample::found().trials[0].marks.clone();
        (document.trials[1].marks, document.trials[1].rss_bytes_peak) = (marks, Some(130 << 20));
        document.trials[2].tuned.as_mut().unwrap().verdict = ProbeVerdict::Discarded;
        let rows = check_csv(&csv(&document));
        let of = |trial: u32, name: &str| number(&rows, trial, name);
        let mib = |mib: f64| Some(mib * samples::MIB);
        assert_eq!((of(1, "tune.loaded"), of(1, "tune.peak")), (mib(126.0), mib(130.0)));
        assert_eq!((of(1, "tune.holds"), of(1, "tune.rested")), (Some(1.0), None));
        assert_eq!(of(2, "tune.holds"), None, "a discarded trial has no verdict");
        assert!(rows.iter().any(|row| row[2] == "1" && row[4] == "tune.holds" && row[7] == "true"), "{rows:?}");
    }

    fn number(rows: &[Vec<String>], trial: u32, name: &str) -> Option<f64> {
        let row = rows.iter().find(|row| row[2] == trial.to_string() && row[4] == name)?;
        Some(row[6].parse().unwrap())
    }

    #[test]
    fn search_csv_has_settings_and_verdict_of_each_trial() {
        let document = find_sample::found();
        let rows = check_csv(&csv(&document));
        for trial in &document.trials {
            let of = |name: &str| number(&rows, trial.index, name);
            let probe = trial.probe.as_ref().unwrap();
            assert_eq!(of("find.limit"), trial.limit_bytes.map(|bytes| bytes as f64));
            assert_eq!(of("find.heap"), probe.heap_bytes.map(|bytes| bytes as f64));
            assert_eq!(of("find.p99"), reached(trial).p99_ms);
            assert_eq!(of("find.holds"), Some(f64::from(u8::from(probe.verdict == ProbeVerdict::Holds))));
        }
    }

    #[test]
    fn a_failed_trial_has_a_csv_row() {
        let rows = check_csv(&csv(&samples::failing()));
        let failed: Vec<_> = rows.iter().filter(|row| row[3] == "subject_failed").collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0][4..], ["", "", "", ""]);
    }

    #[test]
    fn csv_text_is_never_a_formula() {
        assert_eq!(cell("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(cell("-Xss256k"), "'-Xss256k");
        assert_eq!(cell(" a"), "\" a\"");
    }

    #[test]
    fn csv_without_measurements_has_only_a_header() {
        assert_eq!(csv(&samples::empty()), format!("{TRIALS_HEAD}\r\n"));
        assert_eq!(comparisons_csv(&samples::empty()), format!("{COMPARISONS_HEAD}\r\n"));
    }
}
