//! The chart of a metric over a history: its center and interval at each point, and its changes.

use super::model::{Axis, Chart, Figure, Guide, Item, Panel, Sign};
use super::scale::Scale;
use super::thin::Point;
use crate::quantity::scale;
use crate::record::{MetricHistory, SeriesRecord};
use crate::table::Table;
use crate::units::shortened;

const HEIGHT: u32 = 240;
/// More names than this would overlap below the axis.
const NAMES_MAX: usize = 6;
const NAME_CHARS: usize = 12;
/// Maximum changes drawn with names.
const GUIDES_MAX: usize = 12;
/// With more points, intervals would merge into a black area, and markers into a line.
const SIGNS_MAX: usize = 150;

/// The chart with its table; `None` for fewer than two values.
pub(crate) fn of_metric(series: &SeriesRecord, metric: &MetricHistory, name: &str, table: Table) -> Option<Figure> {
    let values = || metric.values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?)));
    let known = values().filter(|(_, value)| value.centre.is_finite()).count();
    if known < 2 {
        return None;
    }
    let ends =
        || values().flat_map(|(_, of)| [Some(of.centre), of.low, of.high]).flatten().filter(|one| one.is_finite());
    let largest = ends().fold(0.0f64, |most, value| most.max(value.abs()));
    let (by, unit) = scale(metric.unit, largest);
    let numbers: Vec<f64> = ends().map(|value| value / by).collect();
    let unit_words = if unit.trim().is_empty() { String::new() } else { format!(", {}", unit.trim()) };
    let title = format!("{}{unit_words}", metric.metric);
    let y = Axis::new(Scale::around(numbers.into_iter()), &title, unit, 5);
    let x = names(series);
    let place = |at: usize, value: f64| -> Point { (x.across(at as f64), y.down(value / by, HEIGHT)) };
    let mut items = Vec::new();
    if known <= SIGNS_MAX {
        for (at, value) in values() {
            if let Some((low, high)) = value.low.zip(value.high) {
                let down = (y.down(high / by, HEIGHT), y.down(low / by, HEIGHT));
                items.push(Item::Rule { x: x.across(at as f64), down, class: "interval s0".to_owned() });
            }
        }
    }
    let points: Vec<Point> = values().map(|(at, value)| place(at, value.centre)).collect();
    items.push(Item::line(&points, "line l-rss", metric.metric.clone()));
    if known <= SIGNS_MAX {
        items.push(Item::Dots { points, class: "dots".to_owned() });
    }
    let guide = |change: &crate::record::ChangeRecord| {
        let point = series.points.get(change.point as usize)?;
        // The guide is halfway between this point and the previous one.
        Some(Guide { x: x.across(f64::from(change.point) - 0.5), label: shortened(&point.name, NAME_CHARS) })
    };
    let guides = metric.changes.iter().rev().take(GUIDES_MAX).filter_map(guide).collect();
    let chart = Chart {
        name: name.to_owned(),
        title: format!("{} at each point, with its 95% interval", metric.metric),
        description: format!(
            "{} over {} points, oldest on the left; {} changes are marked.",
            metric.metric,
            series.points.len(),
            metric.changes.len()
        ),
        x: Some(x),
        panels: vec![Panel::plot(title, y, HEIGHT, items)],
        guides,
        legend: vec![(Sign::Line("line l-rss".to_owned()), "center".to_owned())],
        ..Chart::default()
    };
    Some(Figure { chart, table })
}

/// The axis of points, some of them with names.
fn names(series: &SeriesRecord) -> Axis {
    let last = series.points.len().saturating_sub(1);
    let every = last.div_ceil(NAMES_MAX).max(1);
    let name = |at: usize| (at as f64, shortened(&series.points[at].name, NAME_CHARS));
    let ticks = (0..=last).step_by(every).map(name).collect();
    Axis {
        scale: Scale::linear(-0.5, last as f64 + 0.5),
        title: "points, oldest to newest".to_owned(),
        unit: "",
        ticks,
    }
}
