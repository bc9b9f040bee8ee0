//! Percentile spectra: all response times of a phase, all trials in one chart, on an axis that expands toward 1.

use super::model::{Axis, Chart, Figure, Item, Panel, Sign};
use super::palette::series_class;
use super::scale::{Scale, ScaleKind};
use super::thin::Point;
use super::values::{configurations, slug};
use crate::record::{Document, Evidence, SpectrumRecord, Timing};
use crate::table::Table;
use crate::units::{grouped, milliseconds, trimmed};
use crate::words::{dash, gathered};

/// Labels of a quantile axis: the share of slower responses, and the quantile in percent.
const NINES: [(f64, &str); 7] = [
    // On a phone, a percent sign would touch the next number.
    (1.0, "0"),
    (0.5, "50%"),
    (0.1, "90%"),
    (0.01, "99%"),
    (1e-3, "99.9%"),
    (1e-4, "99.99%"),
    (1e-5, "99.999%"),
];
const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.99, 0.999, 0.9999];
const HEIGHT: u32 = 240;

/// A spectrum with its origin.
struct Of<'a> {
    configuration: &'a str,
    trial: u32,
    spectrum: &'a SpectrumRecord,
}

/// A chart per phase and timing.
pub(crate) fn figures<'a>(document: &'a Document, evidence: &'a [Evidence]) -> Vec<Figure> {
    let of = |evidence: &'a Evidence| {
        let trial = document.trials.iter().find(|trial| trial.index == evidence.trial);
        let configuration = trial.map_or("unknown", |trial| trial.configuration.as_str());
        let told = evidence.spectra.iter().filter(|spectrum| !spectrum.points.is_empty());
        told.map(move |spectrum| {
            ((spectrum.phase.as_str(), spectrum.time), Of { configuration, trial: evidence.trial, spectrum })
        })
    };
    let kinds = gathered(evidence.iter().flat_map(of), |one, other| one == other).into_iter().enumerate();
    let names = configurations(document);
    kinds.map(|(index, (kind, spectra))| figure(index, kind, &spectra, &names)).collect()
}

fn figure(index: usize, (phase, time): (&str, Timing), spectra: &[Of<'_>], names: &[&str]) -> Figure {
    // The axis ends at quantile 1 − 1/count of the largest spectrum, with count clamped to 20..=1,000,000.
    let count = spectra.iter().map(|of| of.spectrum.count).max().unwrap_or(0).clamp(20, 1_000_000);
    let longer = Scale { low: 1.0, high: count as f64, kind: ScaleKind::Log };
    let ticks: Vec<(f64, String)> = NINES
        .iter()
        .filter(|(share, _)| 1.0 / share <= count as f64)
        .map(|(share, text)| (1.0 / share, (*text).to_owned()))
        .collect();
    let x =
        Axis { scale: longer, title: "share of responses that were at least this fast".to_owned(), unit: "", ticks };
    let all = spectra.iter().flat_map(|of| of.spectrum.points.iter().map(|(_, ms)| ms.max(0.001)));
    let y = Axis::new(Scale::log_around(all), "ms", " ms", 8);
    let place = |configuration: &str| names.iter().position(|name| *name == configuration).unwrap_or(0);
    let line = |of: &Of<'_>| {
        let known = of.spectrum.points.iter().filter(|(quantile, _)| (0.0..=1.0).contains(quantile));
        let across = |quantile: f64| x.across(1.0 / (1.0 - quantile).max(1.0 / count as f64));
        let points: Vec<Point> = known.map(|(q, ms)| (across(*q), y.down(ms.max(0.001), HEIGHT))).collect();
        let class = format!("line {}", series_class(place(of.configuration)));
        Item::line(&points, class, format!("{}, trial {}", of.configuration, of.trial + 1))
    };
    let lines = spectra.iter().map(line).collect();
    let shown = names.iter().filter(|name| spectra.iter().any(|of| of.configuration == **name));
    let key = |name: &&str| (Sign::Line(format!("line {}", series_class(place(name)))), (*name).to_owned());
    let words = if time == Timing::Response { "Response times" } else { "Service times" };
    let chart = Chart {
        name: format!("spectrum-{}-{}-{}", index + 1, slug(phase), time.name()),
        title: format!("{words} in {phase} by percentile"),
        description: "How long the responses of a phase took, from fastest to slowest: one line per trial, colored by \
            configuration. Each step to the right leaves out nine tenths of the remaining responses."
            .to_owned(),
        group: format!("spectrum-{}", index + 1),
        legend: shown.map(key).collect(),
        panels: vec![Panel::plot(format!("{words}, ms"), y, HEIGHT, lines)],
        x: Some(x),
        ..Chart::default()
    };
    Figure { chart, table: table(words, spectra) }
}

fn table(words: &str, spectra: &[Of<'_>]) -> Table {
    let mut head = vec!["configuration".to_owned(), "trial".to_owned(), "responses".to_owned()];
    head.extend(QUANTILES.iter().map(|quantile| format!("p{}", trimmed(quantile * 100.0, 2))));
    head.push("longest".to_owned());
    let row = |of: &Of<'_>| {
        let mut row = vec![of.configuration.to_owned(), (of.trial + 1).to_string(), grouped(of.spectrum.count)];
        let told = |quantile: &f64| {
            // A quantile is shown only if at least one response lies beyond it.
            let enough = of.spectrum.count as f64 * (1.0 - quantile) >= 1.0;
            let at = of.spectrum.points.iter().find(|(q, _)| *q >= quantile - 1e-9).filter(|_| enough);
            at.map_or_else(dash, |(_, ms)| milliseconds(*ms))
        };
        row.extend(QUANTILES.iter().map(told));
        row.push(of.spectrum.points.last().map_or_else(dash, |(_, ms)| milliseconds(*ms)));
        row
    };
    Table::new(format!("{words} as a table, ms"), head, spectra.iter().map(row))
}
