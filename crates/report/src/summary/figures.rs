//! Figures derived from marks: intervals over trials, ideals, formulas, and reasons for rejections.

use super::super::quantity::{Estimate, Quantity, shown};
use crate::record::{Document, FigureKind, FigureRecord, MetricRecord, Trial, Unit, each_once};
use crate::table::{Cell, Table};
use crate::units::grouped;
use crate::words::{NONE, metric_of};

/// Every figure of every configuration; `None` if the scenario has none.
pub(crate) fn figures(document: &Document) -> Option<Table> {
    let names = each_once(document.trials.iter().flat_map(|trial| &trial.figures).map(|figure| figure.name.as_str()));
    let head = ["figure", "configuration", "value", "interval", "ideal", "trials"];
    let mut table = Table::new("figures derived from marks", head, Vec::<Vec<Cell>>::new()).worded(2, 0);
    for name in names {
        let mut refusals = Vec::new();
        for configuration in document.configurations() {
            let all: Vec<(&Trial, &FigureRecord)> = of(document, name, configuration);
            let Some((_, first)) = all.first() else { continue };
            table.rows.push(row(first, configuration, metric_of(document, name, configuration), &all));
            refusals.extend(refused(name, configuration, &all));
        }
        table.notes.extend(made_of(name, document));
        table.notes.extend(refusals);
    }
    table.filled()
}

fn of<'a>(document: &'a Document, name: &str, configuration: &str) -> Vec<(&'a Trial, &'a FigureRecord)> {
    let own = document.trials.iter().filter(|trial| trial.configuration == configuration);
    own.filter_map(|trial| Some((trial, trial.figures.iter().find(|figure| figure.name == name)?))).collect()
}

fn row(
    first: &FigureRecord,
    configuration: &str,
    metric: Option<&MetricRecord>,
    all: &[(&Trial, &FigureRecord)],
) -> Vec<Cell> {
    let estimate = metric.map(|of| Cell::estimate(Estimate::new(first.unit, of.median, of.low.zip(of.high))));
    let [value, interval] = estimate.unwrap_or_else(|| ["not computed", NONE].map(Cell::from));
    let ideal = Cell::known(first.ideal.map(|ideal| Quantity::new(Unit::Ratio, ideal)));
    let told = all.iter().filter(|(_, figure)| figure.value.is_some()).count();
    let told = if told == all.len() { told.to_string() } else { format!("{told} of {}", all.len()) };
    vec![first.name.as_str().into(), configuration.into(), value, interval, ideal, told.into()]
}

/// The formula with its marks, and its standard error if known.
fn made_of(name: &str, document: &Document) -> Option<String> {
    let all = || document.trials.iter().flat_map(|trial| &trial.figures).filter(|figure| figure.name == name);
    let figure = all().find(|figure| figure.value.is_some())?;
    let of = &figure.of;
    if figure.kind == FigureKind::Elasticity {
        let [base, spike, valley] = [0, 1, 2].map(|at| figure.marks.get(at).map_or(NONE, String::as_str));
        return Some(format!("{name}: the share of {of} growth from {base} to {spike} that was gone by {valley}."));
    }
    let per = figure.per.as_deref().unwrap_or(NONE);
    let (low, high) =
        figure.points.iter().fold((f64::MAX, f64::MIN), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
    let count = |value: f64| if value.fract() == 0.0 { grouped(value as u64) } else { value.to_string() };
    let mut errors: Vec<f64> = all().filter_map(|figure| figure.value.and(figure.standard_error)).collect();
    errors.sort_unstable_by(f64::total_cmp);
    let error = match errors.get(errors.len() / 2) {
        Some(error) if errors.len() == 1 => format!("standard error {}", shown(figure.unit, Some(*error))),
        Some(error) => format!("standard error within a trial {}", shown(figure.unit, Some(*error))),
        None => "no standard error within a trial, so only the interval across trials counts".to_owned(),
    };
    let marks = figure.points.len();
    Some(format!(
        "{name}: the slope of {of} from {} to {} {per}, a line through {marks} marks; \
        {error}.",
        count(low),
        count(high)
    ))
}

/// Why a configuration has no value: the first reason, and the number of trials with one.
fn refused(name: &str, configuration: &str, all: &[(&Trial, &FigureRecord)]) -> Option<String> {
    let mut reasons = all.iter().filter_map(|(trial, figure)| Some((trial.index, figure.why.as_deref()?)));
    let (index, why) = reasons.next()?;
    let count = 1 + reasons.count();
    let place = match (count, all.len()) {
        (1, 1) => String::new(),
        (count, all) => format!(" in {count} of {all} trials; in trial {}", index + 1),
    };
    let kept = if count < all.len() { " Using only the other trials would bias the result." } else { "" };
    Some(format!("{name} of {configuration} was not computed{place}: {why}.{kept}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples;
    use crate::record::{Better, ValueRecord};

    fn trial(index: u32, figure: FigureRecord) -> Trial {
        Trial { figures: vec![figure], ..Trial::new("lean", index, index) }
    }

    fn slope(value: Option<f64>, points: usize, standard_error: Option<f64>) -> FigureRecord {
        FigureRecord {
            name: "bytes_per_instance".to_owned(),
            kind: FigureKind::Slope,
            of: "heap_live".to_owned(),
            per: Some("instances".to_owned()),
            value,
            unit: Unit::BytesPer,
            ideal: None,
            standard_error,
            marks: (0..points).map(|n| format!("m{n}")).collect(),
            points: (0..points).map(|n| (n as f64 * 1000.0, n as f64)).collect(),
            why: value.is_none().then(|| "within drift".to_owned()),
        }
    }

    fn document(trials: Vec<Trial>) -> Document {
        let values = trials.iter().filter_map(|trial| {
            Some(ValueRecord { trial: trial.index, block: trial.block, value: trial.figures[0].value?, used: true })
        });
        let values: Vec<ValueRecord> = values.collect();
        let metric = MetricRecord {
            metric: "bytes_per_instance".to_owned(),
            unit: Unit::BytesPer,
            better: Better::Lower,
            configuration: "lean".to_owned(),
            median: values.first().map_or(0.0, |value| value.value),
            low: (values.len() > 2).then_some(460.06),
            high: (values.len() > 2).then_some(1_470.0),
            values: values.clone(),
        };
        let metrics = if values.is_empty() { Vec::new() } else { vec![metric] };
        Document { trials, metrics, ..samples::empty() }
    }

    #[test]
    fn a_figure_is_shown_with_its_interval_and_its_error() {
        let of = |at: u32| trial(at, slope(Some(466.24), 3, Some(3.12)));
        let table = figures(&document(vec![of(0), of(1), of(2)])).unwrap();
        assert_eq!(table.rows, [["bytes_per_instance", "lean", "466.2 B", "460.1 … 1,470.0", "-", "3"]]);
        let note = "bytes_per_instance: the slope of heap_live from 0 to 2,000 instances, a line through 3 marks; \
            standard error \
                    within a trial 3.1 B.";
        assert_eq!(table.notes, [note]);
    }

    #[test]
    fn two_marks_give_no_standard_error() {
        let table = figures(&document(vec![trial(0, slope(Some(466.24), 2, None))])).unwrap();
        assert_eq!(table.rows[0][3], "-");
        assert!(table.notes[0].contains("no standard error within a trial"), "{:?}", table.notes);
    }

    #[test]
    fn a_figure_not_computed_is_explained_and_counted() {
        let alone = figures(&document(vec![trial(0, slope(None, 3, None))])).unwrap();
        assert_eq!(alone.rows, [["bytes_per_instance", "lean", "not computed", "-", "-", "0 of 1"]]);
        assert_eq!(alone.notes, ["bytes_per_instance of lean was not computed: within drift."]);
        let some = vec![trial(0, slope(Some(1.0), 3, Some(0.1))), trial(1, slope(None, 3, None))];
        let some = figures(&document(some)).unwrap();
        assert_eq!(some.rows[0][5], "1 of 2");
        let said = "was not computed in 1 of 2 trials; in trial 2: within drift. Using only the other trials would \
            bias the result.";
        assert!(some.notes[1].ends_with(said), "{:?}", some.notes);
        assert_eq!(figures(&document(Vec::new())), None);
    }
}
