//! The page of a history: the time, size, and owners of each change, then every point of every metric. All history
//! reports use these values.

use super::cells::beginning;
use crate::chart::of_metric;
use crate::owner::label;
use crate::page::{Depth, Page, Part, Section, Topic};
use crate::quantity::{Estimate, Quantity, shown, signed};
use crate::record::{
    ChangeRecord, DifferenceVerdict, HistoryBy, HistoryDocument, HistoryOrder, MetricHistory, OwnerMove, PointRecord,
    SeriesRecord, TrendRecord, Unit,
};
use crate::table::Table;
use crate::units::several;
use crate::words::dash;
use std::collections::BTreeSet;

/// Table rows on a screen, and on a page; points with a change are always included.
const ROWS_SCREEN: usize = 12;
const ROWS_PAGE: usize = 100;
/// Maximum charts per page, to keep it fast.
const PICTURES_MAX: usize = 60;
/// Maximum series shown; the document has all of them.
const SERIES_MAX: usize = 50;
/// Maximum rows for points with a change.
const MARKED_MAX: usize = 50;
/// Maximum sentences per series.
const SENTENCES_MAX: usize = 40;
const NAME_CHARS: usize = 24;
const NOTE_CHARS: usize = 200;
/// Changes of conditions listed in a sentence.
const CONDITIONS_TOLD: usize = 3;

/// The page of a history, with all rows of each metric if `each` is set.
pub fn summarize_history(document: &HistoryDocument, each: bool) -> Page {
    page(document, if each { usize::MAX } else { ROWS_SCREEN }, 0)
}

/// A page with room for more rows and, if `depth` requests everything, charts.
pub(crate) fn page_of_history(document: &HistoryDocument, depth: Depth) -> Page {
    page(document, ROWS_PAGE, if depth.whole { PICTURES_MAX } else { 0 })
}

fn page(document: &HistoryDocument, rows: usize, pictures_max: usize) -> Page {
    let mut drawn = 0;
    let mut sections = vec![Section::new(Topic::Conditions, "conditions", [Part::Facts(facts(document))])];
    for (number, series) in document.series.iter().take(SERIES_MAX).enumerate() {
        let told = sentences(series).into_iter().chain(series.refused.clone());
        sections.push(Section::new(Topic::Answer, title(series), told.map(Part::Text)));
        let mut points = Vec::new();
        for (at, metric) in series.metrics.iter().enumerate() {
            let table = table(series, metric, rows);
            let name = format!("history-{number}-{at}");
            let picture = (drawn < pictures_max).then(|| of_metric(series, metric, &name, table.clone())).flatten();
            drawn += usize::from(picture.is_some());
            points.push(picture.map_or(Part::Table(table), Part::figure));
        }
        sections.push(match document.series.len() {
            1 => Section::titled(Topic::Course, "point by point", points),
            _ => Section::new(Topic::Course, format!("{}, point by point", title(series)), points),
        });
    }
    let more = document.series.len().saturating_sub(SERIES_MAX) as u64;
    let more =
        (more > 0).then(|| Part::Text(format!("The document (`--json`) has {}.", several(more, "more configuration"))));
    sections.push(Section::new(Topic::Answer, "", more));
    let left_out = document.left_out.iter().map(|what| Part::Text(what.clone()));
    sections.push(Section::new(Topic::Doubts, "left out", left_out));
    let heading = match document.series.as_slice() {
        [one] => format!("history of {}", title(one)),
        all => format!("history of {} configurations", all.len()),
    };
    Page::new(heading, sections)
}

fn title(series: &SeriesRecord) -> String {
    match series.scenario == series.configuration {
        true => series.scenario.clone(),
        false => format!("{}, {}", series.scenario, series.configuration),
    }
}

fn facts(document: &HistoryDocument) -> Vec<(String, String)> {
    let what = match document.by {
        HistoryBy::Date => "archive",
        HistoryBy::Commit => "commit",
        HistoryBy::Build => "build",
    };
    let order = match document.order {
        HistoryOrder::Date => "by measurement date",
        HistoryOrder::Commits => "in the order of the commit list",
    };
    let all = || document.series.iter().flat_map(|of| &of.points);
    let points = several(document.series.iter().map(|of| of.points.len()).max().unwrap_or(0) as u64, what);
    let archives = all().flat_map(|of| &of.archives).collect::<BTreeSet<_>>();
    let archives = several(archives.len() as u64, "archive");
    let trials = several(all().map(|of| of.trials).sum::<u32>().into(), "trial");
    let most = if document.series.len() > 1 { "up to " } else { "" };
    vec![("points".to_owned(), format!("{most}{points}, {order}; {archives}, {trials}"))]
}

/// A sentence per change and trend, in metric order.
fn sentences(series: &SeriesRecord) -> Vec<String> {
    let mut told = Vec::new();
    for metric in &series.metrics {
        told.extend(metric.changes.iter().map(|change| of_change(series, metric, change)));
        told.extend(metric.trends.iter().map(|trend| of_trend(series, metric, trend)));
    }
    let more = told.len().saturating_sub(SENTENCES_MAX);
    told.truncate(SENTENCES_MAX);
    told.extend((more > 0).then(|| format!("and {more} more, listed in the document")));
    if told.is_empty() {
        told.push(nothing(series));
    }
    told
}

/// Why no change is reported: it may have been undetectable.
fn nothing(series: &SeriesRecord) -> String {
    let points = several(series.points.len() as u64, "point");
    let known = series.metrics.iter().any(|metric| metric.noise.is_some());
    let few = "with too few trials to tell noise from change: weigh each with `--trials 3` or more.";
    match series.points.len() {
        0 | 1 => "One point cannot show a change: weigh more commits.".to_owned(),
        _ if !known => format!("{points} {few}"),
        _ => format!("No change found across {points}."),
    }
}

/// `rss.loaded +7.8 MiB (+6.9 … +8.6) since 3f2a91c (9c01d2e..3f2a91c): metaspace +7.5 MiB, “Cache templates by name”`.
fn of_change(series: &SeriesRecord, metric: &MetricHistory, change: &ChangeRecord) -> String {
    let name = |at: u32| name(series, at);
    let moved = moved(metric, change.difference, (change.low, change.high));
    let since = name(change.point);
    let before = name(change.point_first.saturating_sub(1));
    let owners = owners(&change.owners);
    let what = format!("`{}` {moved}", code(&metric.metric));
    if !change.conditions_changed.is_empty() {
        let conditions = conditions(&change.conditions_changed);
        return format!(
            "{what} since {since}{owners}, but conditions also changed then ({conditions}), so no commit can be \
             blamed"
        );
    }
    let range = match change.point_first == change.point_last {
        true => format!("({before}..{since})"),
        false => format!("(it may be anywhere in {before}..{})", name(change.point_last)),
    };
    let subject = series.points.get(change.point as usize).and_then(|point| point.subject.as_ref());
    let subject = subject.map(|subject| format!(", “{}”", beginning(subject, NOTE_CHARS))).unwrap_or_default();
    format!("{what} since {since} {range}{owners}{subject}")
}

/// `rss.loaded rises gradually, +8.7 MiB (+6.1 … +11.2) from a to b, +0.3 MiB per point`.
fn of_trend(series: &SeriesRecord, metric: &MetricHistory, trend: &TrendRecord) -> String {
    let word = way(trend);
    let steps = trend.point_last.saturating_sub(trend.point_first).max(1);
    let each = signed(metric.unit, Some(trend.difference / f64::from(steps)));
    let meanwhile = match trend.conditions_changed.as_slice() {
        [] => String::new(),
        changed => format!("; conditions changed in the meantime ({})", conditions(changed)),
    };
    let moved = moved(metric, trend.difference, (trend.low, trend.high));
    let (metric, owners) = (code(&metric.metric), owners(&trend.owners));
    let [from, to] = [trend.point_first, trend.point_last].map(|at| name(series, at));
    format!("`{metric}` {word} gradually, {moved} from {from} to {to}, {each} per point{owners}{meanwhile}")
}

fn way(trend: &TrendRecord) -> &'static str {
    if trend.difference < 0.0 { "falls" } else { "rises" }
}

fn name(series: &SeriesRecord, at: u32) -> String {
    series.points.get(at as usize).map_or_else(dash, |point| code(&point.name))
}

/// A name in backticks, replacing backticks within.
fn code(name: &str) -> String {
    beginning(&name.replace('`', "'"), NAME_CHARS)
}

fn moved(metric: &MetricHistory, difference: f64, ends: (f64, f64)) -> String {
    Estimate::new(metric.unit, difference, Some(ends)).difference().to_string()
}

fn owners(all: &[OwnerMove]) -> String {
    let one = |of: &OwnerMove| {
        let number = Quantity::new(Unit::Bytes, of.bytes).difference();
        format!("{} {number}", beginning(label(&of.owner).trim(), NAME_CHARS))
    };
    match all {
        [] => String::new(),
        all => format!(": {}", all.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

fn conditions(all: &[String]) -> String {
    let more = all.len().saturating_sub(CONDITIONS_TOLD);
    let told = all.iter().take(CONDITIONS_TOLD).map(|what| beginning(what, NOTE_CHARS));
    let more = (more > 0).then(|| format!("{more} more"));
    told.chain(more).collect::<Vec<_>>().join(", ")
}

/// A row for each recent point, and for each point with a change.
fn table(series: &SeriesRecord, metric: &MetricHistory, rows_max: usize) -> Table {
    let points = series.points.len();
    let latest = points.saturating_sub(rows_max);
    let note = |at: usize| note(series, metric, at);
    let marked: Vec<usize> = (0..latest).rev().filter(|at| !note(*at).is_empty()).take(MARKED_MAX).collect();
    let shown_at = |at: &usize| *at >= latest || marked.contains(at);
    let rows = (0..points).filter(shown_at).map(|at| {
        let point = &series.points[at];
        let value = metric.values.get(at).copied().flatten();
        let number = |value: Option<f64>| shown(metric.unit, value);
        let trials = value.map_or_else(dash, |value| value.trials.to_string());
        let numbers = [value.map(|of| of.centre), value.and_then(|of| of.low), value.and_then(|of| of.high)];
        let [name, day] = [point.name.as_str(), day(point)].map(|text| beginning(text, NAME_CHARS));
        let lead = [name, day, trials].into_iter();
        lead.chain(numbers.map(number)).chain([beginning(&note(at), NOTE_CHARS)]).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let hidden = (points - rows.len()) as u64;
    let hidden = (hidden > 0).then(|| format!("Not shown: {} without a change.", several(hidden, "earlier point")));
    let noise = metric.noise.map(|noise| {
        let noise = shown(metric.unit, Some(noise));
        format!("Trials of a point or its neighbors vary by {noise} (standard deviation).")
    });
    let head = ["point", "weighed", "trials", "center", "low", "high", "change"];
    Table::new(metric.metric.clone(), head, rows).worded(2, 1).noted(hidden.into_iter().chain(noise))
}

/// The day of a point; text that is not a date stays unchanged.
fn day(point: &PointRecord) -> &str {
    point.started.split('T').next().unwrap_or_default()
}

fn note(series: &SeriesRecord, metric: &MetricHistory, at: usize) -> String {
    let change = metric.changes.iter().find(|change| change.point as usize == at);
    let word = |verdict: DifferenceVerdict| if verdict == DifferenceVerdict::Better { "better" } else { "worse" };
    let change = change.map(|of| format!("{} {}", signed(metric.unit, Some(of.difference)), word(of.verdict)));
    let ends = metric.trends.iter().find(|trend| trend.point_first as usize == at);
    let ends = ends.map(|trend| format!("{} from this point on", way(trend)));
    let conditions = series.points.get(at).map(|point| point.conditions_changed.as_slice()).unwrap_or_default();
    let conditions = (!conditions.is_empty()).then(|| self::conditions(conditions));
    [change, ends, conditions].into_iter().flatten().collect::<Vec<_>>().join("; ")
}
