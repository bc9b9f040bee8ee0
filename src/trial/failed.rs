//! After a phase that failed or was interrupted: the subject is weighed as that phase left it, as far as it lives. Such
//! a trial is in no estimate, but its account shows where the memory is with which it failed.

use super::trialling::Trialling;
use crate::record::FailedIn;
use crate::scenario::{Look, MarkPoint, Phase, PhaseKind};

/// Lines of the subject's output kept from the moment of the failure.
const KEPT_LINES: usize = 20;

impl Trialling<'_> {
    /// Records in which phase the trial failed, and takes the marks that remain. The next one is taken at once:
    /// `loaded` after a phase up to the last work, `rested` after a later one. An interrupted trial has no further
    /// mark, since a collection takes longer than a user waits.
    pub(super) fn weigh_failed(&mut self, index: usize, phase: &Phase) {
        let last_lines = self.subject.output().tail_texts(KEPT_LINES);
        self.notes.trial.failed_in = Some(FailedIn { phase: phase.name.clone(), last_lines });
        // The guard ends a trial early to save time, and nobody reads the account of that trial.
        if self.has_died() || self.guard.hopeless().is_some() {
            return;
        }
        self.note_load();
        let is_rest = self.plan.load.last_work().is_some_and(|last| index > last);
        let point = if is_rest { MarkPoint::Rested } else { MarkPoint::Loaded };
        // The marks of a subject that works by itself are those of its markers, which do not come any more.
        let is_own = matches!(phase.kind, PhaseKind::Own(_)) && self.plan.look == Look::Full;
        if self.takes(point) || is_own {
            self.mark_as_it_is(point.word());
        }
        if !self.stage.interrupted() {
            self.mark(MarkPoint::Collected);
            self.mark(MarkPoint::Trimmed);
        }
    }
}
