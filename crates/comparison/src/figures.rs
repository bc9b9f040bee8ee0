//! Figures derived from the marks of one trial: elasticity and slope, or why a figure is refused.
//!
//! They depend only on the trial and the scenario, so a report of an archive can compute them again. `docs/compare.md`
//! has the formulas.

use super::catalogue::{FAMILIES, ReadAt, at_mark, family_named};
use super::names::listed;
use crate::record::{Better, FigureKind, FigureRecord, Mark, Outcome, Trial, Unit};
use crate::scenario::{Derivation, Derived};
use crate::units::grouped;
use loadline_base::order::Order as _;

/// A slope of fewer standard errors than this cannot be distinguished from 0. It is three because the error is itself
/// only rough with few points.
const ERRORS_MIN: f64 = 3.0;

pub(super) fn unit_of(way: &Derivation) -> Unit {
    match way {
        Derivation::Elasticity { .. } => Unit::Ratio,
        Derivation::Slope { .. } => Unit::BytesPer,
    }
}

/// Which values of a figure are better: more memory should be freed, and another instance should cost less.
pub(super) fn better_of(unit: Unit) -> Better {
    if unit == Unit::Ratio { Better::Higher } else { Better::Lower }
}

/// Checks figures against the known metrics and the names of a trial's marks. Errors: the figure that requests
/// something nonexistent, and the names that exist.
pub fn check_figures(figures: &[Derived], marks: &[&str]) -> Result<(), String> {
    figures.iter().try_for_each(|figure| {
        check_figure(figure, marks).map_err(|why| format!("the figure `{}` cannot be computed: {why}", figure.name))
    })
}

fn check_figure(figure: &Derived, marks: &[&str]) -> Result<(), String> {
    if family_named(&figure.name).is_some() {
        return Err(format!("a metric is already named `{}`; give the figure another `name`", figure.name));
    }
    let of = &figure.of;
    let is_slope = matches!(figure.way, Derivation::Slope { .. });
    match family_named(of).map(|family| (family.place, family.unit)) {
        Some((ReadAt::AtMark(_), unit)) if is_slope && unit != Unit::Bytes => {
            return Err(format!("`{of}` is not measured in bytes"));
        }
        Some((ReadAt::AtMark(_), _)) => {}
        Some(_) => return Err(format!("`{of}` is not measured at marks; use `rss`, `heap_live`, or `malloc.live`")),
        None => {
            let mut at_marks = FAMILIES.iter().filter(|family| matches!(family.place, ReadAt::AtMark(_)));
            // A name outside the table refers to an owner, and only the account lists its owners.
            if let Some(near) = at_marks.find(|family| family.is_near(of)) {
                return Err(format!("no metric is named `{of}`; did you mean `{}`?", near.name));
            }
        }
    }
    let known = || listed(marks);
    if let Some(mark) = figure.marks().into_iter().find(|mark| !marks.contains(mark)) {
        return Err(format!("no mark is named `{mark}`; the marks are {}", known()));
    }
    if is_slope && marks.len() < 2 {
        return Err(format!("a slope needs two or more marks, but there is only {}", known()));
    }
    Ok(())
}

/// The figures of a trial, in the order requested; empty if it did not complete.
pub fn figures(asked: &[Derived], trial: &Trial) -> Vec<FigureRecord> {
    match trial.outcome {
        Outcome::Completed => asked.iter().map(|figure| of_trial(figure, trial)).collect(),
        _ => Vec::new(),
    }
}

/// Why no completed trial (of this configuration, if given) has this figure. `None` if a trial has it, or if it was not
/// requested.
pub fn refusal(trials: &[Trial], name: &str, configuration: Option<&str>) -> Option<String> {
    let own = trials.iter().filter(|trial| configuration.is_none_or(|own| trial.configuration == own));
    let found: Vec<&FigureRecord> = own.flat_map(|trial| &trial.figures).filter(|figure| figure.name == name).collect();
    if found.iter().any(|figure| figure.value.is_some()) {
        return None;
    }
    let why = found.first()?.why.as_deref()?;
    let trials = match found.len() {
        1 => "1 trial".to_owned(),
        several => format!("all {several} trials"),
    };
    Some(format!("`{name}` could not be computed in {trials}: {why}"))
}

fn of_trial(asked: &Derived, trial: &Trial) -> FigureRecord {
    let (kind, per, ideal) = match &asked.way {
        Derivation::Elasticity { ideal, .. } => (FigureKind::Elasticity, None, *ideal),
        Derivation::Slope { per, .. } => (FigureKind::Slope, Some(per.clone()), None),
    };
    let mut record = FigureRecord {
        name: asked.name.clone(),
        kind,
        of: asked.of.clone(),
        per,
        value: None,
        unit: unit_of(&asked.way),
        ideal,
        standard_error: None,
        marks: Vec::new(),
        points: Vec::new(),
        why: None,
    };
    let told = match &asked.way {
        Derivation::Elasticity { base, spike, valley, .. } => {
            elasticity([base, spike, valley], &asked.of, trial, &mut record)
        }
        Derivation::Slope { per, marks } => {
            points(asked, per, marks, trial, &mut record).and_then(|()| slope(asked, per, &mut record))
        }
    };
    match told {
        Ok(value) if value.is_finite() => record.value = Some(value),
        Ok(value) => record.why = Some(format!("it is {value}")),
        Err(why) => record.why = Some(why),
    }
    record
}

/// (spike − valley) / (spike − base).
fn elasticity(marks: [&str; 3], of: &str, trial: &Trial, record: &mut FigureRecord) -> Result<f64, String> {
    for name in marks {
        let mark = reached(trial, name)?;
        record.points.push((mark.at_s, at_mark(of, mark).ok_or_else(|| unknown(of, &[name]))?));
        record.marks.push(name.to_owned());
    }
    let [base, spike, valley] = [0, 1, 2].map(|at| record.points[at].1);
    if spike <= base {
        let [at_base, at_spike, _] = marks;
        let (spike, base) = (amount(of, spike), amount(of, base));
        return Err(format!("`{of}` did not rise: {spike} at `{at_spike}`, {base} at `{at_base}`"));
    }
    Ok((spike - valley) / (spike - base))
}

/// The points of a slope: the weight at each mark that has the counter.
fn points(
    asked: &Derived,
    per: &str,
    named: &[String],
    trial: &Trial,
    record: &mut FigureRecord,
) -> Result<(), String> {
    let counted = |mark: &Mark| mark.counters.get(per).copied().filter(|count| count.is_finite());
    let taken: Vec<&Mark> = match named {
        [] => trial.marks.iter().filter(|mark| counted(mark).is_some()).collect(),
        named => named.iter().map(|name| reached(trial, name)).collect::<Result<_, _>>()?,
    };
    let mut without = Vec::new();
    for mark in taken {
        let count = counted(mark).ok_or_else(|| format!("mark `{}` has no counter `{per}`", mark.name))?;
        match at_mark(&asked.of, mark) {
            Some(value) => {
                record.points.push((count, value));
                record.marks.push(mark.name.clone());
            }
            None => without.push(mark.name.as_str()),
        }
    }
    match (record.points.is_empty(), without.is_empty()) {
        (true, true) => Err(format!("no mark has the counter `{per}`")),
        // Every named mark must have the value. An unnamed mark may lack a value that only some marks have.
        (empty, false) if empty || !named.is_empty() => Err(unknown(&asked.of, &without)),
        _ => Ok(()),
    }
}

/// The slope of the least-squares line, if it exceeds drift.
fn slope(asked: &Derived, per: &str, record: &mut FigureRecord) -> Result<f64, String> {
    let of = &asked.of;
    let mut sorted = record.points.clone();
    sorted.order_by(|left, right| left.0.total_cmp(&right.0));
    let groups: Vec<&[(f64, f64)]> = sorted.chunk_by(|left, right| left.0 == right.0).collect();
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return Err("there are no points".to_owned());
    };
    if groups.len() < 2 {
        let marks = listed(&record.marks);
        return Err(format!("a slope needs two different `{per}` counts, but all are {} at {marks}", number(first.0)));
    }
    let fit = Fit::of(&sorted).ok_or("the counts are too close together, or too large")?;
    record.standard_error = fit.standard_error;
    let span = last.0 - first.0;
    let change = (fit.slope * span).abs();
    let over = format!("over {} to {} `{per}`", number(first.0), number(last.0));
    if change == 0.0 {
        return Err(format!("within drift: `{of}` does not change {over}"));
    }
    let spread = |group: &&[(f64, f64)]| {
        let (low, high) = group.iter().fold((f64::MAX, f64::MIN), |(low, high), (_, y)| (low.min(*y), high.max(*y)));
        (high - low, group[0].0)
    };
    let repeated = groups.iter().filter(|group| group.len() > 1).map(spread);
    let within = match (repeated.max_by(|left, right| left.0.total_cmp(&right.0)), fit.standard_error) {
        (Some((drift, count)), _) if change <= drift => {
            format!("by {} between marks with the same count, {}", amount(of, drift), number(count))
        }
        (None, Some(error)) if change <= ERRORS_MIN * error * span => {
            let errors = amount(of, ERRORS_MIN * error * span);
            format!("{ERRORS_MIN} standard errors of the line through its {} points are {errors}", sorted.len())
        }
        _ => return Ok(fit.slope),
    };
    Err(format!("within drift: `{of}` changes by {} {over}, and {within}", amount(of, change)))
}

/// A least-squares line.
struct Fit {
    slope: f64,
    standard_error: Option<f64>,
}

impl Fit {
    /// b = Σ (x − x̄)(y − ȳ) / Σ (x − x̄)². The standard error is √(Σ r² / (n − 2)) / √Σ (x − x̄)², where r is the
    /// residual of y. `None` if this cannot be computed.
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        // Values are relative to the first point, so that high levels cost no precision.
        let (x0, y0) = *points.first()?;
        let mean = |value: fn(&(f64, f64)) -> f64, from: f64| {
            points.iter().map(|point| value(point) - from).sum::<f64>() / n + from
        };
        let (x_mean, y_mean) = (mean(|point| point.0, x0), mean(|point| point.1, y0));
        let from_mean = || points.iter().map(|(x, y)| (x - x_mean, y - y_mean));
        let squares: f64 = from_mean().map(|(x, _)| x * x).sum();
        let slope = from_mean().map(|(x, y)| x * y).sum::<f64>() / squares;
        let left: f64 = from_mean().map(|(x, y)| (y - slope * x).powi(2)).sum();
        let standard_error = (points.len() > 2).then(|| (left / (n - 2.0) / squares).sqrt());
        let sound = slope.is_finite() && standard_error.is_none_or(f64::is_finite);
        sound.then_some(Self { slope, standard_error })
    }
}

fn reached<'a>(trial: &'a Trial, name: &str) -> Result<&'a Mark, String> {
    trial.mark(name).ok_or_else(|| format!("mark `{name}` was not reached"))
}

fn unknown(of: &str, marks: &[&str]) -> String {
    let needs = family_named(of).map(|family| family.needs).filter(|needs| !needs.is_empty());
    let needs = needs.map(|needs| format!("; it needs {needs}")).unwrap_or_default();
    format!("`{of}` is unknown at {}{needs}", listed(marks))
}

/// A mark's metric value, with enough digits even for small sizes.
fn amount(of: &str, value: f64) -> String {
    const KIB: f64 = 1024.0;
    match value.abs() {
        _ if family_named(of).is_some_and(|family| family.unit != Unit::Bytes) => number(value),
        size if size >= KIB * KIB => format!("{:.1} MiB", value / KIB / KIB),
        size if size >= KIB => format!("{:.1} KiB", value / KIB),
        _ => format!("{value:.1} B"),
    }
}

/// A human-readable count.
fn number(value: f64) -> String {
    match value {
        whole if whole.fract() == 0.0 && (0.0..1e15).contains(&whole) => grouped(whole as u64),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
