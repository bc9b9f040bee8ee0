//! Charts of trials and comparisons: values (`model`) rendered as SVG (`svg`). Each chart has a table with the same
//! data.

mod model;
mod of_comparison;
mod of_find;
mod of_flames;
mod of_history;
mod of_trial;
mod of_tune;
mod of_watch;
mod owners;
mod palette;
mod scale;
mod spectra;
mod svg;
mod thin;
mod values;

pub(super) use model::{Figure, Sign};
pub(super) use of_comparison::{dots, forests, paretos};
pub(super) use of_find::finds;
pub(super) use of_flames::flames;
pub(super) use of_history::of_metric;
pub(super) use of_trial::figures as of_trial;
pub(super) use of_tune::tunes;
pub(super) use of_watch::last_hours;
pub(super) use spectra::figures as spectra;
pub(super) use svg::{definitions, draw_sign, fluid};

use crate::record::{Document, Evidence};

/// Color names with their light and dark values.
pub(super) const COLOURS: &str = include_str!("colours.css");
/// Style rules that assign each class a color.
pub(super) const RULES: &str = include_str!("chart.css");

/// A chart as a separate file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// File name stem of `a-z`, `0-9`, and `-`, unique within a document.
    pub name: String,
    /// The title: what the chart shows.
    pub title: String,
    /// The chart as a self-contained SVG document.
    pub svg: String,
}

/// Every chart of the report as a separate file, in report order.
pub fn plots(document: &Document, evidence: &[Evidence]) -> Vec<Plot> {
    let style = palette::literal(COLOURS, RULES);
    let mut figures = [tunes(document), finds(document), forests(document), dots(document), paretos(document)].concat();
    figures.extend(spectra(document, evidence));
    for trial in &document.trials {
        let evidence = evidence.iter().find(|evidence| evidence.trial == trial.index);
        figures.extend(of_trial(trial, evidence).into_iter().flatten());
        figures.extend(trial.explanation.iter().flat_map(|found| flames(found, trial.index)));
    }
    let plot = |figure: Figure| Plot {
        svg: svg::fixed(&figure.chart, &style),
        name: figure.chart.name,
        title: figure.chart.title,
    };
    figures.into_iter().map(plot).collect()
}
