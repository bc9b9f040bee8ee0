//! The ruling on a trial of a search: its target held, it failed, or it is discarded. Pure.

use super::cause::{cause_of, is_disturbed, is_short};
use crate::comparison::Judged;
use crate::record::{FailureCause, Missed, Outcome, ProbeVerdict, Trial};
use crate::units::{Bytes, grouped};

/// Maximum consecutive discarded trials. After that, a trial disturbed by the machine counts anyway, and one with an
/// unmeasured target ends the search.
pub const DISCARDED_MAX: usize = 3;

/// A cgroup whose charge came this close to its limit counts as full, because the kernel frees some pages early.
const FULL_SHARE: f64 = 0.98;

/// The verdict on a trial, with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// Whether the target held in the trial.
    pub verdict: ProbeVerdict,
    /// The missed targets with their numbers, or why the trial is discarded.
    pub why: Vec<String>,
    /// The numbers that were missed.
    pub missed: Vec<Missed>,
    /// The cause of failure.
    pub cause: Option<FailureCause>,
}

impl Ruling {
    /// Rules on a trial judged by its target, after `discarded` consecutive discarded ones. `shared` is the number of
    /// bytes of its file pages charged to other cgroups. It is given only if they make the trial too easy and the next
    /// trial may differ.
    pub fn of(judged: Judged, trial: &Trial, discarded: usize, shared: Option<u64>) -> Self {
        if trial.outcome == Outcome::Aborted {
            // The result of this trial is unknown, so a resumed search repeats the trial.
            return Self::discard(trial.why.clone().into_iter().collect());
        }
        let (why, missed) = match (judged, shared) {
            (Judged::Held, Some(shared)) => {
                return Self::discard(vec![format!(
                    "{} of its file pages were charged to other cgroups",
                    Bytes(shared)
                )]);
            }
            (Judged::Held, None) => {
                return Self { verdict: ProbeVerdict::Holds, why: Vec::new(), missed: Vec::new(), cause: None };
            }
            // A target that was not measured says nothing about the limit.
            (Judged::Unmeasured(why), _) => return Self::discard(vec![why]),
            (Judged::Ended(why), _) => (vec![why], trial.hopeless.clone().into_iter().collect()),
            (Judged::Missed(missed), _) => (missed.iter().map(|of| of.text.clone()).collect(), missed),
        };
        let cause = cause_of(trial, &missed);
        if is_disturbed(trial, cause) && discarded < DISCARDED_MAX {
            return Self { missed, ..Self::discard(why) };
        }
        let why = with_refaults(why, cause, trial);
        Self { verdict: ProbeVerdict::Fails, why, missed, cause: Some(cause) }
    }

    fn discard(why: Vec<String>) -> Self {
        Self { verdict: ProbeVerdict::Discarded, why, missed: Vec::new(), cause: None }
    }
}

/// Whether the limit was too small for a failed trial, judging by all of its traces.
pub fn is_short_of_memory(trial: &Trial) -> bool {
    let is_full = |peak: u64, limit: u64| peak as f64 >= limit as f64 * FULL_SHARE;
    let filled = trial.cgroup.is_some_and(|of| of.peak_bytes.is_some_and(|peak| is_full(peak, of.limit_bytes)));
    match cause_of(trial, &[]) {
        FailureCause::Start => filled,
        cause => is_short(Some(cause)),
    }
}

/// Number of consecutive discarded trials at the end.
pub fn discarded(trials: &[Trial]) -> usize {
    let is_discarded = |trial: &&Trial| trial.verdict() == Some(ProbeVerdict::Discarded);
    trials.iter().rev().take_while(is_discarded).count()
}

/// The missed targets, plus the number of pages that were read again if that is the reason.
fn with_refaults(mut why: Vec<String>, cause: FailureCause, trial: &Trial) -> Vec<String> {
    let pages = trial.cgroup.map_or(0, |cgroup| cgroup.file_refaults).max(1);
    if cause == FailureCause::FilePages {
        why.push(format!("{} file pages were evicted and reread", grouped(pages)));
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::tests::{noisy, trial};
    use crate::record::{CgroupRecord, Unit};

    fn check(judged: Judged, trial: &Trial, discarded: usize, shared: Option<u64>, expect: ProbeVerdict) {
        let ruling = Ruling::of(judged, trial, discarded, shared);
        assert_eq!(ruling.verdict, expect, "{ruling:?}");
        assert_eq!(ruling.cause.is_some(), expect == ProbeVerdict::Fails, "{ruling:?}");
        assert_eq!(ruling.why.is_empty(), expect == ProbeVerdict::Holds, "{ruling:?}");
    }

    #[test]
    fn only_measured_undisturbed_trials_count() {
        let unmeasured = || Judged::Unmeasured("`gc_share` was not measured".to_owned());
        let text = "p99.steady was 812 ms, but the target is p99<50ms";
        let of = Missed {
            metric: "p99.steady".to_owned(),
            unit: Unit::Milliseconds,
            value: 812.0,
            bound: 50.0,
            text: text.to_owned(),
        };
        let slow = || Judged::Missed(vec![of.clone()]);
        check(Judged::Held, &trial(), 0, None, ProbeVerdict::Holds);
        check(Judged::Held, &trial(), 0, Some(9 << 20), ProbeVerdict::Discarded);
        check(slow(), &trial(), 0, Some(9 << 20), ProbeVerdict::Fails);
        check(slow(), &noisy(0.8, None), DISCARDED_MAX - 1, None, ProbeVerdict::Discarded);
        check(slow(), &noisy(0.8, None), DISCARDED_MAX, None, ProbeVerdict::Fails);
        for discarded in [0, DISCARDED_MAX, DISCARDED_MAX + 1] {
            check(unmeasured(), &trial(), discarded, None, ProbeVerdict::Discarded);
        }
        let why = Some("interrupted".to_owned());
        let aborted = Trial { outcome: Outcome::Aborted, why, ..trial() };
        check(slow(), &aborted, DISCARDED_MAX, None, ProbeVerdict::Discarded);
    }

    #[test]
    fn a_first_trial_can_show_a_lack_of_memory() {
        let check = |ready_s: Option<f64>, cgroup: CgroupRecord, expect: bool| {
            let of = Trial { ready_s, cgroup: Some(CgroupRecord { limit_bytes: 20 << 20, ..cgroup }), ..trial() };
            assert_eq!(is_short_of_memory(&of), expect, "{cgroup:?}");
        };
        let peak = |mib: u64| CgroupRecord { peak_bytes: Some(mib << 20), ..CgroupRecord::default() };
        check(None, CgroupRecord { oom_kills: 1, ..CgroupRecord::default() }, true);
        check(None, CgroupRecord { file_refaults: 100_000, ..CgroupRecord::default() }, true);
        check(None, peak(20), true);
        check(None, peak(12), false);
        check(None, CgroupRecord::default(), false);
        // A server also fills its cgroup with file pages.
        check(Some(1.0), peak(20), false);
    }
}
