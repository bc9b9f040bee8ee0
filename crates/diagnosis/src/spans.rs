//! Stretches of a trial between two marks in which work was done.

use crate::record::{Mark, PhaseRecord};

/// Spans in which a request brings as much within this factor are alike.
const ALIKE_WITHIN: f64 = 2.0;

/// Each two marks that follow each other with what was answered in between; none where nothing was.
pub(super) fn worked<'a>(marks: &'a [Mark], phases: &[PhaseRecord]) -> Vec<(&'a Mark, &'a Mark, u64)> {
    let span = |pair: &'a [Mark]| {
        let [from, to] = pair else { return None };
        let between = phases.iter().filter(|phase| (from.at_s..to.at_s).contains(&phase.at_s));
        let ok = between.map(|phase| phase.ok).fold(0, u64::saturating_add);
        (ok > 0).then_some((from, to, ok))
    };
    marks.windows(2).filter_map(span).collect()
}

/// Whether two rates are as good as equal.
pub(super) fn alike(one: f64, other: f64) -> bool {
    (1.0 / ALIKE_WITHIN..=ALIKE_WITHIN).contains(&(one / other))
}
