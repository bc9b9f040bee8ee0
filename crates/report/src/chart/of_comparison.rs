//! Charts of several trials: differences with intervals, every trial as a dot, memory against speed.

use super::model::{Anchor, Axis, Chart, Figure, Item, Panel, SHAPES, Sign};
use super::palette::series_class;
use super::scale::Scale;
use super::thin::{Point, WIDTH};
use super::values::{also_text, configurations, judged_text, kind_of, least_text, metric_words, slug, value_text};
use crate::comparison::split;
use crate::quantity::{self, Quantity};
use crate::record::{
    Better, ComparisonRecord, DifferenceVerdict, Document, LeastRecord, MetricRecord, ParetoPoint, ParetoRecord, Unit,
    each_once,
};
use crate::table::{Cell, Table};
use crate::units::{shortened, trimmed};
use crate::words::{Standing, VERDICTS, dash, metric_of, word_of};
use loadline_base::order::Order as _;

/// Row height of a forest plot, in tenths of a pixel.
const ROW: u32 = 440;
/// Row height of a dot plot, in tenths of a pixel.
const DOT_ROW: u32 = 380;
/// Metrics drawn by default.
const METRICS_MAX: usize = 12;
/// Larger changes would compress all others into a line.
const CHANGE_MAX: f64 = 3.0;
const PARETO_HEIGHT: u32 = 260;
/// Names up to this length leave room for the median.
const ASIDE_CHARS: usize = 24;
const NAME_CHARS: usize = 40;

/// A candidate's judged metrics, decided ones first.
fn judged<'a>(document: &'a Document, candidate: &str) -> Vec<&'a ComparisonRecord> {
    let of = document.comparisons.iter().filter(|comparison| comparison.candidate == candidate);
    let any = of.clone().any(|comparison| comparison.primary);
    let mut found: Vec<&ComparisonRecord> = of.filter(|comparison| comparison.primary || !any).collect();
    if !any {
        found.truncate(METRICS_MAX);
    }
    let is = |comparison: &ComparisonRecord, verdict| comparison.verdict == verdict;
    found.order_by_key(|of| (is(of, DifferenceVerdict::CannotTell), is(of, DifferenceVerdict::Equivalent)));
    found
}

// ---- Differences ----

pub(crate) fn forests(document: &Document) -> Vec<Figure> {
    let candidates = each_once(document.comparisons.iter().map(|comparison| comparison.candidate.as_str()));
    candidates.iter().enumerate().map(|(at, candidate)| forest(document, at, &judged(document, candidate))).collect()
}

/// A change from the baseline: estimate and interval, where 0 means no change.
fn changes(comparison: &ComparisonRecord) -> Option<(f64, Option<(f64, f64)>)> {
    if let Some(ratio) = comparison.ratio {
        let ends = comparison.ratio_low.zip(comparison.ratio_high);
        return Some((ratio - 1.0, ends.map(|(low, high)| (low - 1.0, high - 1.0))));
    }
    let base = Some(comparison.baseline_median).filter(|base| *base > 0.0)?;
    let ends = comparison.low.zip(comparison.high);
    Some((comparison.difference / base, ends.map(|(low, high)| (low / base, high / base))))
}

fn block_changes(document: &Document, comparison: &ComparisonRecord) -> Vec<f64> {
    let of = |configuration: &str| -> Vec<(u32, f64)> {
        let record = metric_of(document, &comparison.metric, configuration);
        let values = record.map(|record| record.values.as_slice()).unwrap_or_default();
        values.iter().filter(|value| value.used).map(|value| (value.block, value.value)).collect()
    };
    let (base, candidate) = (of(&comparison.baseline), of(&comparison.candidate));
    let pair = |(block, value): &(u32, f64)| {
        let (_, base) = base.iter().find(|(other, base)| other == block && *base > 0.0)?;
        Some(value / base - 1.0)
    };
    candidate.iter().filter_map(pair).collect()
}

fn forest(document: &Document, index: usize, rows: &[&ComparisonRecord]) -> Figure {
    let (baseline, candidate) =
        rows.first().map_or(("", ""), |first| (first.baseline.as_str(), first.candidate.as_str()));
    let dots: Vec<Vec<f64>> = rows.iter().map(|row| block_changes(document, row)).collect();
    let ends = rows.iter().filter_map(|row| changes(row)).flat_map(|(estimate, ends)| {
        [Some(estimate), ends.map(|ends| ends.0), ends.map(|ends| ends.1)].into_iter().flatten()
    });
    let shown = ends.chain(dots.iter().flatten().copied()).chain([0.0, 0.01, -0.01]);
    let percent = shown.map(|change| change.clamp(-1.0, CHANGE_MAX) * 100.0).collect::<Vec<_>>();
    let title = format!("of {}", shortened(baseline, NAME_CHARS));
    let x = Axis::new(Scale::around(percent.into_iter()), &title, "%", 7).signed("%");
    let mut items = Vec::new();
    for (row, (comparison, dots)) in rows.iter().zip(&dots).enumerate() {
        items.extend(forest_row(comparison, dots, &x, row as u32 * ROW));
    }
    items.insert(0, Item::Rule { x: x.across(0.0), down: (0, rows.len() as u32 * ROW), class: "zero".to_owned() });
    let key = |verdict: DifferenceVerdict| {
        let (class, _, shape) = Standing::from(verdict).look();
        (Sign::Mark(shape, class.to_owned()), word_of(verdict))
    };
    let seen = VERDICTS.into_iter().filter(|verdict| rows.iter().any(|row| row.verdict == *verdict));
    let mut legend: Vec<(Sign, String)> = seen.map(key).collect();
    legend.push((Sign::Dot("dots block".to_owned()), "a block".to_owned()));
    legend.push((Sign::Area("least".to_owned(), false), "too small to matter".to_owned()));
    let chart = Chart {
        name: format!("comparison-{}-{}", index + 1, slug(candidate)),
        title: format!("Change of each judged metric from {baseline} to {candidate}"),
        description: "One row per judged metric: the estimated change with its interval, a dot for the change in each \
            block, and a shaded range of changes too small to matter."
            .to_owned(),
        x: Some(x),
        panels: vec![Panel::rows(rows.len() as u32 * ROW / 10, items)],
        legend,
        ..Chart::default()
    };
    Figure { chart, table: forest_table(rows) }
}

fn forest_row(comparison: &ComparisonRecord, dots: &[f64], x: &Axis, top: u32) -> Vec<Item> {
    let across = |change: f64| x.across(change * 100.0);
    let y = top + 310;
    let mut items = Vec::new();
    let least = match comparison.least {
        LeastRecord::Relative(share) => Some(share),
        LeastRecord::Absolute(value) if comparison.baseline_median > 0.0 => Some(value / comparison.baseline_median),
        LeastRecord::Absolute(_) => None,
    };
    if let Some(least) = least {
        items.push(Item::Area {
            across: (across(-least), across(least)),
            down: (y - 80, y + 80),
            class: "least".to_owned(),
            hatched: false,
            words: format!("less than {} is too small to matter", least_text(comparison)),
            label: String::new(),
        });
    }
    let name = shortened(&metric_words(&comparison.metric), NAME_CHARS);
    items.push(Item::words((0, top + 150), Anchor::Start, name, "strong"));
    items.push(Item::words((WIDTH, top + 150), Anchor::End, judged_text(comparison), "aside"));
    let points: Vec<Point> = dots.iter().map(|change| (across(*change), y)).collect();
    items.push(Item::Dots { points, class: "dots block".to_owned() });
    let (class, _, shape) = Standing::from(comparison.verdict).look();
    if let Some((estimate, ends)) = changes(comparison) {
        if let Some((low, high)) = ends {
            items.push(Item::Interval { across: (across(low), across(high)), y, class: format!("interval {class}") });
        }
        let words = format!("{}: {}", word_of(comparison.verdict), judged_text(comparison));
        items.push(Item::mark((across(estimate), y), shape, class, words));
    }
    items
}

fn forest_table(rows: &[&ComparisonRecord]) -> Table {
    let row = |comparison: &&ComparisonRecord| {
        let needed = comparison.blocks_needed.map_or(String::new(), |needed| format!(" of about {needed} needed"));
        let shown = |value: f64| value_text(comparison.unit, value);
        vec![
            word_of(comparison.verdict),
            comparison.candidate.clone(),
            metric_words(&comparison.metric),
            shown(comparison.baseline_median),
            shown(comparison.candidate_median),
            judged_text(comparison),
            also_text(comparison),
            least_text(comparison),
            format!("{}{needed}", comparison.blocks),
        ]
    };
    let baseline = rows.first().map_or("baseline", |first| first.baseline.as_str());
    let head = ["verdict", "candidate", "metric", baseline, "candidate's", "difference (interval)", "also"];
    let head = head.into_iter().chain(["smallest that matters", "blocks"]);
    let mut notes = Vec::new();
    if let Some(first) = rows.first() {
        let [all, each] = [first.confidence, first.confidence_each].map(|share| trimmed(share * 100.0, 2));
        notes.push(format!("All intervals hold jointly with {all}% confidence; each one alone has {each}%."));
        notes.push("Medians cover all trials; the difference is estimated within blocks.".to_owned());
    }
    Table::new("Differences as a table", head, rows.iter().map(row)).worded(3, 0).noted(notes)
}

// ---- Every trial ----

/// A chart per judged metric: every trial of every configuration as a dot. Trials of searches and tunings differ on
/// purpose and have their own charts.
pub(crate) fn dots(document: &Document) -> Vec<Figure> {
    if document.trials.len() < 2 || document.find.is_some() || document.tune.is_some() {
        return Vec::new();
    }
    let compared = document.comparisons.iter().filter(|comparison| comparison.primary);
    let budgeted = document.budgets.iter().filter_map(|budget| budget.metric.as_deref());
    let mut metrics = each_once(compared.map(|comparison| comparison.metric.as_str()).chain(budgeted));
    if metrics.is_empty() {
        let usual = |metric: &&str| ["rss", "p99", "rate"].contains(&split(metric).0);
        metrics = each_once(document.metrics.iter().map(|record| record.metric.as_str()).filter(usual));
        metrics.truncate(METRICS_MAX);
    }
    metrics.iter().enumerate().filter_map(|(at, metric)| dot_figure(document, at, metric)).collect()
}

fn dot_figure(document: &Document, index: usize, metric: &str) -> Option<Figure> {
    let (unit, better) = kind_of(document, metric)?;
    let names = configurations(document);
    let of_place = |(at, name): (usize, &&str)| Some((at, metric_of(document, metric, name)?));
    let rows: Vec<(usize, &MetricRecord)> = names.iter().enumerate().filter_map(of_place).collect();
    let largest = rows.iter().flat_map(|(_, row)| &row.values).map(|value| value.value).fold(0.0, f64::max);
    let (factor, unit_words) = quantity::scale(unit, largest);
    let all: Vec<f64> = rows
        .iter()
        .flat_map(|(_, row)| row.values.iter().map(|value| value.value).chain(row.low).chain(row.high))
        .map(|value| value / factor)
        .collect();
    let direction = if better == Better::Lower { "\u{2190} better" } else { "better \u{2192}" };
    let unit_title = if unit == Unit::PerSecond { "per second" } else { unit_words.trim() };
    let title = format!("{unit_title} {direction}");
    let x = Axis::new(Scale::around(all.into_iter()), title.trim(), unit_words, 6);
    let mut items = Vec::new();
    for (row, (place, record)) in rows.iter().enumerate() {
        items.extend(dot_row(*place, record, &x, factor, row as u32 * DOT_ROW));
    }
    let mut legend = vec![
        (Sign::Mark(0, "s0".to_owned()), "a trial".to_owned()),
        (Sign::Line("interval faint-line".to_owned()), "interval of the center".to_owned()),
    ];
    if rows.iter().any(|(_, row)| row.values.iter().any(|value| !value.used)) {
        legend.push((Sign::Mark(0, "hollow".to_owned()), "not counted: its block was disturbed".to_owned()));
    }
    let chart = Chart {
        name: format!("trials-{}-{}", index + 1, slug(metric)),
        title: metric_words(metric),
        description: "One row per configuration: a dot for each trial, and the median with its interval.".to_owned(),
        x: Some(x),
        panels: vec![Panel::rows(rows.len() as u32 * DOT_ROW / 10, items)],
        legend,
        ..Chart::default()
    };
    Some(Figure { chart, table: dot_table(&rows) })
}

fn dot_row(place: usize, record: &MetricRecord, x: &Axis, factor: f64, top: u32) -> Vec<Item> {
    let y = top + 270;
    let across = |value: f64| x.across(value / factor);
    let class = series_class(place);
    let name = shortened(&record.configuration, NAME_CHARS);
    let mut items = vec![Item::words((0, top + 130), Anchor::Start, name, "strong")];
    let median = format!("median {}", value_text(record.unit, record.median));
    // On a phone, a long name leaves no room for the median.
    let aside = if record.configuration.chars().count() > ASIDE_CHARS { "aside" } else { "" };
    items.push(Item::words((WIDTH, top + 130), Anchor::End, median, aside));
    if let (Some(low), Some(high)) = (record.low, record.high) {
        items.push(Item::Interval { across: (across(low), across(high)), y, class: "interval faint-line".to_owned() });
    }
    items.push(Item::Rule { x: across(record.median), down: (y - 90, y + 90), class: format!("centre {class}") });
    for value in &record.values {
        let words = format!("trial {}: {}", value.trial + 1, value_text(record.unit, value.value));
        let class = if value.used { class.as_str() } else { "hollow" };
        items.push(Item::mark((across(value.value), y), place % SHAPES.len(), class, words));
    }
    items
}

fn dot_table(rows: &[(usize, &MetricRecord)]) -> Table {
    let head = ["configuration", "block", "trial", "value", "counts"];
    let mut table = Table::new("Every trial as a table", head, Vec::<Vec<Cell>>::new()).worded(1, 1);
    for (_, record) in rows {
        for value in &record.values {
            table.rows.push(vec![
                record.configuration.as_str().into(),
                (value.block + 1).to_string().into(),
                (value.trial + 1).to_string().into(),
                Quantity::new(record.unit, value.value).into(),
                if value.used { "yes" } else { "no: its block was disturbed" }.into(),
            ]);
        }
        let shown = |value: f64| value_text(record.unit, value);
        let ends = record.low.zip(record.high);
        let ends = ends.map(|(low, high)| format!(" ({} \u{2026} {})", shown(low), shown(high))).unwrap_or_default();
        table.notes.push(format!("{}: median {}{ends}.", record.configuration, shown(record.median)));
    }
    table
}

// ---- Weight against speed ----

pub(crate) fn paretos(document: &Document) -> Vec<Figure> {
    let drawn = document.pareto.iter().filter(|pareto| !pareto.points.is_empty());
    drawn.enumerate().map(|(at, pareto)| pareto_figure(document, at, pareto)).collect()
}

fn pareto_figure(document: &Document, index: usize, pareto: &ParetoRecord) -> Figure {
    let kind = |metric: &str| kind_of(document, metric).unwrap_or((Unit::Count, Better::Lower));
    let ((x_unit, x_better), (y_unit, y_better)) = (kind(&pareto.x), kind(&pareto.y));
    let axis = |metric: &str, unit: Unit, better: Better, values: Vec<f64>, directions: [&str; 2]| {
        let (factor, words) = quantity::scale(unit, values.iter().copied().fold(0.0, f64::max));
        let direction = directions[usize::from(better == Better::Higher)];
        let title = match unit {
            Unit::PerSecond => format!("{}  {direction}", metric_words(metric)),
            _ => format!("{}, {}  {direction}", metric_words(metric), words.trim()),
        };
        (Axis::new(Scale::around(values.into_iter().map(|value| value / factor)), &title, words, 6), factor)
    };
    let xs = pareto.points.iter().map(|point| point.x).collect();
    let ys = pareto.points.iter().map(|point| point.y).collect();
    let (x, x_factor) = axis(&pareto.x, x_unit, x_better, xs, ["\u{2190} better", "better \u{2192}"]);
    let (y, y_factor) = axis(&pareto.y, y_unit, y_better, ys, ["\u{2193} better", "\u{2191} better"]);
    let names = configurations(document);
    let mut items = Vec::new();
    let mut taken: Vec<Point> = Vec::new();
    for point in &pareto.points {
        let place = names.iter().position(|name| *name == point.configuration).unwrap_or(0);
        let at = (x.across(point.x / x_factor), y.down(point.y / y_factor, PARETO_HEIGHT));
        items.extend(pareto_point(point, place, at, &mut taken, [x_unit, y_unit]));
    }
    let mut legend = vec![(Sign::Mark(0, "s0".to_owned()), "a configuration's medians".to_owned())];
    if pareto.points.iter().any(|point| point.dominated_by.is_some()) {
        legend.push((
            Sign::Mark(0, "dominated".to_owned()),
            "another configuration is at least as good on both".to_owned(),
        ));
    }
    let chart = Chart {
        name: format!("pareto-{}", index + 1),
        title: format!("{} vs. {}", metric_words(&pareto.x), metric_words(&pareto.y)),
        description: "One point per configuration; another configuration beats the gray ones on both \
            metrics."
            .to_owned(),
        panels: vec![Panel::plot(y.title.clone(), y, PARETO_HEIGHT, items)],
        x: Some(x),
        legend,
        ..Chart::default()
    };
    Figure { chart, table: pareto_table(pareto, [x_unit, y_unit]) }
}

fn pareto_point(point: &ParetoPoint, place: usize, at: Point, taken: &mut Vec<Point>, units: [Unit; 2]) -> [Item; 2] {
    let own = (series_class(place), "strong");
    let (class, strength) = point.dominated_by.as_ref().map_or(own, |_| ("dominated".to_owned(), "faint"));
    let name = &point.configuration;
    let words = format!("{name}: {}, {}", value_text(units[0], point.x), value_text(units[1], point.y));
    [Item::mark(at, place, class, words), Item::beside(at, name, strength, taken)]
}

fn pareto_table(pareto: &ParetoRecord, units: [Unit; 2]) -> Table {
    let row = |point: &ParetoPoint| {
        vec![
            point.configuration.clone(),
            value_text(units[0], point.x),
            value_text(units[1], point.y),
            point.dominated_by.clone().map_or_else(dash, |by| format!("by {by}")),
        ]
    };
    let head = ["configuration", &metric_words(&pareto.x), &metric_words(&pareto.y), "dominated"];
    Table::new("Medians as a table", head, pareto.points.iter().map(row)).worded(1, 1)
}
