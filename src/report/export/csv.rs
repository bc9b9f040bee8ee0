//! Tables for spreadsheets and data frames: CSV after RFC 4180, a row for each number, in long form.
//! Cells of foreign text that a spreadsheet would take for a formula get an apostrophe before them.

mod fleet;
mod history;

pub use fleet::fleet_csv;
pub use history::history_csv;

use super::super::quantity::plain;
use super::super::words::name_of;
use super::inert::visible;
use crate::record::{ComparisonRecord, Document, LeastRecord, MetricRecord, ProbeVerdict, Trial, Unit, ValueRecord};
use crate::report::summary::tried::reached;
use crate::scenario::MarkPoint;
use std::collections::BTreeMap;

const TRIALS_HEAD: &str = "configuration,block,trial,outcome,metric,unit,value,used";
const COMPARISONS_HEAD: &str = "baseline,candidate,metric,unit,better,primary,verdict,baseline_median,\
    candidate_median,difference,difference_low,difference_high,ratio,ratio_low,ratio_high,confidence,\
    confidence_each,least,least_kind,blocks,blocks_needed";

/// Every metric of every trial, in the order of the trials. A trial that measured nothing has one row without a metric;
/// one of a search or of a tuning says first what it was for and what it reached, and whether the target held.
pub fn csv(document: &Document) -> String {
    // Trials of two archives may share an index, but not a configuration as well.
    let mut by_trial: BTreeMap<(&str, u32), Vec<(&MetricRecord, &ValueRecord)>> = BTreeMap::new();
    for metric in &document.metrics {
        for value in &metric.values {
            by_trial.entry((&metric.configuration, value.trial)).or_default().push((metric, value));
        }
    }
    let mut out = format!("{TRIALS_HEAD}\r\n");
    for trial in &document.trials {
        let start =
            [cell(&trial.configuration), trial.block.to_string(), trial.index.to_string(), name_of(trial.outcome)];
        let start = start.join(",");
        let values = by_trial.get(&(trial.configuration.as_str(), trial.index)).map(Vec::as_slice).unwrap_or_default();
        let probe = [probe(trial), tuned(trial)].concat();
        for (name, unit, number, used) in &probe {
            out.push_str(&format!("{start},{name},{},{},{used}\r\n", name_of(unit), plain(Some(*number))));
        }
        if values.is_empty() && probe.is_empty() {
            out.push_str(&format!("{start},,,,\r\n"));
        }
        for (metric, value) in values {
            let (name, unit, number) = (cell(&metric.metric), name_of(metric.unit), plain(Some(value.value)));
            out.push_str(&format!("{start},{name},{unit},{number},{}\r\n", value.used));
        }
    }
    out
}

/// What a trial of a search was for: name, unit and number, and whether the trial counts.
fn probe(trial: &Trial) -> Vec<(&'static str, Unit, f64, bool)> {
    let Some(of) = &trial.probe else { return Vec::new() };
    let used = of.verdict != ProbeVerdict::Discarded;
    let reached = reached(trial);
    let holds = f64::from(u8::from(of.verdict == ProbeVerdict::Holds));
    let known = [
        ("find.limit", Unit::Bytes, trial.limit_bytes.map(|bytes| bytes as f64)),
        ("find.heap", Unit::Bytes, of.heap_bytes.map(|bytes| bytes as f64)),
        ("find.peak", Unit::Bytes, trial.cgroup.and_then(|cgroup| cgroup.peak_bytes).map(|bytes| bytes as f64)),
        ("find.asked", Unit::PerSecond, of.rate_per_s),
        ("find.rate", Unit::PerSecond, reached.rate_per_s),
        ("find.p99", Unit::Milliseconds, reached.p99_ms),
        ("find.cpu_per_request", Unit::Milliseconds, reached.cpu_us.map(|us| us / 1e3)),
        ("find.holds", Unit::Count, Some(holds).filter(|_| used)),
    ];
    known.into_iter().filter_map(|(name, unit, number)| Some((name, unit, number?, used))).collect()
}

/// What a trial of a tuning weighed and reached, in the form of [`probe`].
fn tuned(trial: &Trial) -> Vec<(&'static str, Unit, f64, bool)> {
    let Some(of) = &trial.tuned else { return Vec::new() };
    let used = of.verdict != ProbeVerdict::Discarded;
    let reached = reached(trial);
    let weight = |point: MarkPoint| trial.at(point).map(|mark| mark.weight().1 as f64);
    let holds = f64::from(u8::from(of.verdict == ProbeVerdict::Holds));
    let known = [
        ("tune.loaded", Unit::Bytes, weight(MarkPoint::Loaded)),
        ("tune.rested", Unit::Bytes, weight(MarkPoint::Rested)),
        ("tune.peak", Unit::Bytes, trial.rss_bytes_peak.map(|bytes| bytes as f64)),
        ("tune.rate", Unit::PerSecond, reached.rate_per_s),
        ("tune.p99", Unit::Milliseconds, reached.p99_ms),
        ("tune.cpu_per_request", Unit::Milliseconds, reached.cpu_us.map(|us| us / 1e3)),
        ("tune.holds", Unit::Count, Some(holds).filter(|_| used)),
    ];
    known.into_iter().filter_map(|(name, unit, number)| Some((name, unit, number?, used))).collect()
}

/// Each candidate against the baseline, a row for each metric.
pub fn comparisons_csv(document: &Document) -> String {
    let mut out = format!("{COMPARISONS_HEAD}\r\n");
    for comparison in &document.comparisons {
        out.push_str(&comparison_cells(comparison).join(","));
        out.push_str("\r\n");
    }
    out
}

fn comparison_cells(of: &ComparisonRecord) -> Vec<String> {
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

/// Foreign text as a cell. The signs that begin a formula are those OWASP names under "CSV Injection".
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
    use super::super::samples;
    use super::*;
    use crate::report::{find_sample, tune_sample};

    /// The rows of a CSV file, strictly: every row as long as the head.
    fn rows(text: &str) -> Vec<Vec<String>> {
        let mut reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(false).from_reader(text.as_bytes());
        reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn a_row_for_each_number() {
        insta::assert_snapshot!(csv(&samples::compared()).lines().take(12).collect::<Vec<_>>().join("\n"));
        insta::assert_snapshot!(comparisons_csv(&samples::compared()).replace("\r\n", "\n"));
    }

    #[test]
    fn every_number_comes_back() {
        let document = samples::compared();
        let rows = rows(&csv(&document));
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
    fn a_tuning_says_of_each_trial_what_it_weighed_and_whether_the_target_held() {
        let mut document = tune_sample::proved();
        let marks = find_sample::found().trials[0].marks.clone();
        (document.trials[1].marks, document.trials[1].rss_bytes_peak) = (marks, Some(130 << 20));
        document.trials[2].tuned.as_mut().unwrap().verdict = ProbeVerdict::Discarded;
        let rows = rows(&csv(&document));
        let of = |trial: &str, name: &str| {
            let row = rows.iter().find(|row| row[2] == trial && row[4] == name)?;
            Some((row[6].clone(), row[7].clone()))
        };
        let (loaded, peak) = (of("1", "tune.loaded").unwrap(), of("1", "tune.peak").unwrap());
        assert_eq!((loaded.0, peak.0), ((126 << 20).to_string(), (130 << 20).to_string()));
        assert_eq!(of("1", "tune.holds").unwrap(), ("1".to_owned(), "true".to_owned()));
        assert_eq!(of("2", "tune.holds"), None, "a discarded trial says nothing");
        assert_eq!(of("1", "tune.rested"), None);
    }

    #[test]
    fn a_search_says_of_each_trial_what_was_asked_and_whether_it_held() {
        let document = find_sample::found();
        let rows = rows(&csv(&document));
        for trial in &document.trials {
            let of = |name: &str| {
                let row = rows.iter().find(|row| row[2] == trial.index.to_string() && row[4] == name);
                row.map(|row| row[6].parse::<f64>().unwrap())
            };
            let probe = trial.probe.as_ref().unwrap();
            assert_eq!(of("find.limit"), trial.limit_bytes.map(|bytes| bytes as f64));
            assert_eq!(of("find.heap"), probe.heap_bytes.map(|bytes| bytes as f64));
            assert_eq!(of("find.p99"), reached(trial).p99_ms);
            assert_eq!(of("find.holds"), Some(f64::from(u8::from(probe.verdict == ProbeVerdict::Holds))));
        }
    }

    #[test]
    fn a_trial_that_failed_has_a_row() {
        let rows = rows(&csv(&samples::failing()));
        let failed: Vec<_> = rows.iter().filter(|row| row[3] == "subject_failed").collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0][4..], ["", "", "", ""]);
    }

    #[test]
    fn foreign_text_is_no_formula_and_breaks_no_row() {
        let document = samples::hostile();
        for text in [csv(&document), comparisons_csv(&document)] {
            assert!(!text.contains(['\0', '\u{1b}']));
            let rows = rows(&text);
            assert!(rows.len() > 1);
            for row in &rows[1..] {
                assert!(!row[0].starts_with(['=', '+', '-', '@', '\t']), "{row:?}");
            }
            assert_eq!(text.matches("\r\n").count(), rows.len());
            assert_eq!(text.matches('\n').count(), rows.len());
        }
        assert_eq!(cell("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(cell("-Xss256k"), "'-Xss256k");
        assert_eq!(cell(" a"), "\" a\"");
    }

    #[test]
    fn nothing_measured_is_a_head() {
        assert_eq!(csv(&samples::empty()), format!("{TRIALS_HEAD}\r\n"));
        assert_eq!(comparisons_csv(&samples::empty()), format!("{COMPARISONS_HEAD}\r\n"));
    }
}
