//! A history as a table: a row for each metric at each point, with what changed there.

use super::super::super::quantity::plain;
use super::super::super::words::name_of;
use super::cell;
use crate::record::{HistoryDocument, MetricHistory, SeriesRecord};

const HEAD: &str = "scenario,configuration,metric,unit,point,name,commit,build,started,trials,centre,low,high,change,\
    change_low,change_high,verdict,conditions_changed";

/// Every metric at every point.
pub fn history_csv(document: &HistoryDocument) -> String {
    let mut out = format!("{HEAD}\r\n");
    for series in &document.series {
        for metric in &series.metrics {
            for at in 0..series.points.len() {
                out.push_str(&format!("{}\r\n", row(series, metric, at).join(",")));
            }
        }
    }
    out
}

fn row(series: &SeriesRecord, metric: &MetricHistory, at: usize) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::super::super::samples::hostile_texts;
    use super::*;
    use crate::report::history_sample;

    #[test]
    fn a_row_for_each_metric_at_each_point() {
        insta::assert_snapshot!(history_csv(&history_sample::history()).replace("\r\n", "\n"));
    }

    #[test]
    fn every_text_stays_in_its_cell() {
        for text in hostile_texts() {
            let table = history_csv(&history_sample::hostile(&text));
            let rows = ::csv::ReaderBuilder::new().flexible(false).from_reader(table.as_bytes()).into_records();
            assert_eq!(rows.map(Result::unwrap).count(), 6, "{text}");
        }
    }
}
