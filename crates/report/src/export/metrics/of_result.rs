//! A result's values that are not medians: trials, verdicts of comparisons and budgets, a tuning's results.

use super::super::super::words::{VERDICTS, name_of};
use super::super::points::Points;
use crate::comparison::{CPU_WITHOUT_JIT, split};
use crate::record::{
    BudgetRecord, BudgetVerdict, ComparisonRecord, Document, FleetDocument, Outcome, ProbeVerdict, Unit,
};
use crate::summary::tune_answer::objective_gain;

pub(super) fn trials(of: &Document, to: &mut Points) {
    for name in of.configurations() {
        for outcome in [Outcome::Completed, Outcome::SubjectFailed, Outcome::Killed, Outcome::Aborted] {
            let trials = of.trials.iter().filter(|of| of.configuration == name && of.outcome == outcome);
            to.at(&[("configuration", name), ("outcome", &name_of(outcome))], trials.count() as f64);
        }
    }
}

fn compared(of: &Document) -> impl Iterator<Item = (&ComparisonRecord, [(&str, &str); 3])> {
    let judged = of.comparisons.iter().filter(|of| of.primary);
    judged.map(|of| (of, [("baseline", &*of.baseline), ("candidate", &*of.candidate), ("metric", &*of.metric)]))
}

pub(super) fn ratios(of: &Document, to: &mut Points) {
    compared(of).for_each(|(of, labels)| to.at(&labels, of.ratio));
}

pub(super) fn comparisons(of: &Document, to: &mut Points) {
    compared(of).for_each(|(of, labels)| to.states(&labels, &VERDICTS, of.verdict));
}

fn budget_labels(of: &BudgetRecord) -> [(&str, &str); 2] {
    [("configuration", &of.configuration), ("budget", &of.expression)]
}

pub(super) fn budgets(of: &Document, to: &mut Points) {
    let verdicts = [BudgetVerdict::Pass, BudgetVerdict::Fail, BudgetVerdict::Undecided];
    of.budgets.iter().for_each(|of| to.states(&budget_labels(of), &verdicts, of.verdict));
}

/// Uses the unit in which the user wrote the budget, so milliseconds stay milliseconds.
pub(super) fn of_budgets(of: &Document, to: &mut Points, value: fn(&BudgetRecord) -> Option<f64>) {
    of.budgets.iter().for_each(|of| to.at(&budget_labels(of), value(of)));
}

pub(super) fn tuned_bytes(of: &Document, to: &mut Points) {
    let Some(tune) = &of.tune else { return };
    let Some(gain) = objective_gain(tune).filter(|gain| gain.unit == Unit::Bytes) else { return };
    for (setting, value) in [("as_is", gain.baseline_median), ("tuned", gain.candidate_median)] {
        to.at(&[("objective", tune.objective.word()), ("setting", setting)], value);
    }
}

pub(super) fn tuned_cpu(of: &Document, to: &mut Points) {
    for gain in of.tune.iter().flat_map(|tune| &tune.gains) {
        let (what, phase) = split(&gain.metric);
        if what == CPU_WITHOUT_JIT || what.starts_with("cpu_per") {
            to.at(&[("phase", phase)], gain.ratio);
        }
    }
}

pub(super) fn entries(of: &FleetDocument, to: &mut Points) {
    let standing = &of.standing;
    for (state, number) in [
        ("answered", standing.answered as usize),
        ("missing", standing.missing.len()),
        ("failed", standing.failed.len()),
        ("double", standing.double.len()),
    ] {
        to.at(&[("state", state)], number as f64);
    }
}

/// Whether a trial met the target: 1 or 0; `None` if it was discarded.
pub(super) fn holds(verdict: ProbeVerdict) -> Option<f64> {
    (verdict != ProbeVerdict::Discarded).then_some(f64::from(u8::from(verdict == ProbeVerdict::Holds)))
}
