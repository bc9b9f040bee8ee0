//! Why a trial failed, from the traces it left, most certain first.

use crate::doubt::{Doubt, noise};
use crate::record::{EndCause, FailureCause, Missed, PhaseRecord, ProbeRecord, Trial};

/// A collector that takes this share of a phase leaves too little for the server.
const GC_SHARE: f64 = 0.25;
/// With repeatedly requested collections, the collector takes this share, though it leaves enough for the server.
const GC_SHARE_ASKED: f64 = 0.10;
/// Pages evicted and read again, per second: a healthy server within its limit evicts some at startup, but few after
/// that.
const REFAULTS_PER_S: f64 = 500.0;
/// The share of its file pages that a working server reads again, mostly during startup. One step above the edge, it is
/// all of them; up to about 6% above the edge, it is some. Measured on a fast disk: 33% at 1.4% above the edge, 15% at
/// 5.6%, 1.2% at 11%. On another server: 140% at the line, 12% at 4% above it, 1.7% at 8%.
const REREAD_ALL: f64 = 1.0;
const REREAD_NEAR: f64 = 0.10;
const REREAD_FEW: f64 = 0.02;
/// The assumed distance to the edge from a limit at which fewer than [`REREAD_NEAR`], or fewer than [`REREAD_FEW`],
/// were read again. It is less than measured, because going a step too far costs more trials than stopping a step
/// short.
const ROOM_FEW: f64 = 0.04;
const ROOM_NONE: f64 = 0.06;
/// Minimum time for a startup, in seconds; if a server never became ready, the duration of its startup is not recorded.
const START_MIN_S: f64 = 10.0;

/// Why a trial that missed these numbers of its target failed.
pub fn cause_of(trial: &Trial, missed: &[Missed]) -> FailureCause {
    let ended = trial.end.as_ref().map(|end| end.cause);
    let ran_out = trial.doubts.iter().any(|of| matches!(of.doubt, Doubt::OutOfMemoryError { .. }));
    if ended == Some(EndCause::OomKill) || trial.cgroup.is_some_and(|cgroup| cgroup.oom_kills > 0) {
        return FailureCause::OomKill;
    }
    if ran_out || ended == Some(EndCause::OutOfMemoryError) {
        return FailureCause::OutOfMemoryError;
    }
    // If a collector or a startup has to read its code repeatedly, it is slow because file pages are missing.
    if refaults_per_s(trial) > REFAULTS_PER_S {
        return FailureCause::FilePages;
    }
    if trial.ready_s.is_none() {
        return FailureCause::Start;
    }
    if ended == Some(EndCause::ByItself) {
        return FailureCause::Died;
    }
    if trial.phases.iter().filter_map(PhaseRecord::gc_share).any(|share| share > GC_SHARE) {
        return FailureCause::Collections;
    }
    let about = |families: &[&str]| missed.iter().any(|of| families.contains(&of.family()));
    match () {
        () if about(&["failed"]) => FailureCause::Failures,
        () if about(&["rate"]) => FailureCause::Rate,
        () if about(&["p50", "p90", "p99", "max", "mean", "response", "service"]) => FailureCause::Times,
        () => FailureCause::Other,
    }
}

/// Whether the machine may have caused the missed target, in which case the trial says nothing about memory.
pub(super) fn is_disturbed(trial: &Trial, cause: FailureCause) -> bool {
    let by_others = |doubt: &Doubt| match doubt {
        Doubt::NoisyMachine { foreign_cores, steal_share, .. } => noise::takes_cpu(*foreign_cores, *steal_share),
        _ => false,
    };
    matches!(cause, FailureCause::Times | FailureCause::Rate | FailureCause::Failures | FailureCause::Other)
        && trial.doubts.iter().any(|of| by_others(&of.doubt))
}

/// Whether memory was visibly short in a trial that failed for this reason, so the failure was not a mishap.
pub(super) fn is_short(cause: Option<FailureCause>) -> bool {
    use FailureCause::{Collections, FilePages, OomKill, OutOfMemoryError};
    matches!(cause, Some(OomKill | OutOfMemoryError | FilePages | Collections))
}

/// Whether the heap was too small in a trial that failed.
pub(super) fn is_of_heap(probe: &ProbeRecord) -> bool {
    matches!(probe.cause, Some(FailureCause::OutOfMemoryError | FailureCause::Collections))
}

/// The assumed number of steps of this size from a working limit down to the edge. There are few steps if many of the
/// file pages were read again, and more if hardly any were and there are pages to spare. `None` if the trial shows
/// neither.
pub(super) fn room(trial: &Trial, reference: &Trial, file: u64, step: f64) -> Option<i32> {
    let cgroup = trial.cgroup.filter(|_| file > 0)?;
    // A cold start also causes faults from disk, even with enough memory.
    let at_start = reference.cgroup.map_or(0, |cgroup| cgroup.major_faults);
    let faults = cgroup.major_faults.saturating_sub(at_start);
    let again = cgroup.file_refaults.max(faults) as f64 * cgroup.page() as f64 / file as f64;
    let left = cgroup.file_bytes? as f64 / cgroup.limit_bytes as f64;
    match () {
        () if again > REREAD_ALL => Some(0),
        () if again > REREAD_NEAR => Some(1),
        () if again > REREAD_FEW => Some((ROOM_FEW / step).max(1.0) as i32),
        () if left > 2.0 * ROOM_NONE => Some((ROOM_NONE / step).max(1.0) as i32),
        () => None,
    }
}

/// Whether the collector took as much of a phase as with repeatedly requested collections.
pub(super) fn collects(trial: &Trial) -> bool {
    trial.phases.iter().filter_map(PhaseRecord::gc_share).any(|share| share > GC_SHARE_ASKED)
}

/// File pages that were evicted and read again, or faulted in from a disk, per second of the whole trial.
fn refaults_per_s(trial: &Trial) -> f64 {
    let seconds = trial.seconds().unwrap_or(START_MIN_S);
    let refaults = trial.cgroup.map_or(0, |cgroup| cgroup.file_refaults.max(cgroup.major_faults));
    if seconds > 0.0 { refaults as f64 / seconds } else { 0.0 }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::doubt::MemoryPool;
    use crate::record::{CgroupRecord, End, Outcome, SubjectWork, Unit};
    use FailureCause::{Collections, Died, Failures, FilePages, OomKill, Other, OutOfMemoryError, Rate, Start, Times};

    pub(crate) fn trial() -> Trial {
        let phase = PhaseRecord { name: "steady".to_owned(), seconds: 10.0, ..PhaseRecord::default() };
        let outcome = Outcome::Completed;
        Trial { outcome, ready_s: Some(1.0), phases: vec![phase], ..Trial::new("a", 0, 0) }
    }

    pub(crate) fn noisy(foreign_cores: f64, memory_stall_share: Option<f64>) -> Trial {
        let (phase, foreign_cores) = ("steady".to_owned(), Some(foreign_cores));
        let doubt = Doubt::NoisyMachine { phase, foreign_cores, steal_share: 0.0, memory_stall_share };
        Trial { doubts: vec![doubt.into()], ..trial() }
    }

    fn ended(cause: EndCause) -> Trial {
        let end = End { cause, exit_code: None, signal: None, text: String::new(), last_lines: Vec::new() };
        Trial { end: Some(end), ..trial() }
    }

    /// Refaults over the 11 s of a trial, or of a startup that never ended, which counts as 10 s.
    #[test]
    fn rereads_count_per_second() {
        let with = |cgroup: CgroupRecord, ready_s: Option<f64>| Trial { cgroup: Some(cgroup), ready_s, ..trial() };
        let refaults = |n: u64| CgroupRecord { file_refaults: n, ..CgroupRecord::default() };
        let faults = |n: u64| CgroupRecord { major_faults: n, ..CgroupRecord::default() };
        assert_eq!(cause_of(&with(refaults(5500), Some(1.0)), &[]), Other);
        assert_eq!(cause_of(&with(refaults(5501), Some(1.0)), &[]), FilePages);
        assert_eq!(cause_of(&with(faults(5501), Some(1.0)), &[]), FilePages);
        assert_eq!(cause_of(&with(refaults(5000), None), &[]), Start);
        assert_eq!(cause_of(&with(refaults(5001), None), &[]), FilePages);
        let nothing = Trial { phases: Vec::new(), ..with(refaults(9), Some(0.0)) };
        assert_eq!(cause_of(&nothing, &[]), Other, "a rate needs a duration");
    }

    /// A trial with 10,000 file pages, at a limit of 100 MiB.
    #[test]
    fn room_follows_from_reread_and_remaining_pages() {
        let of = |file_refaults: u64, major_faults: u64, left_mib: u64| {
            let file_bytes = Some(left_mib << 20);
            let cgroup = CgroupRecord {
                limit_bytes: 100 << 20,
                file_refaults,
                major_faults,
                file_bytes,
                ..CgroupRecord::default()
            };
            let cold = Some(CgroupRecord { major_faults: 50, ..CgroupRecord::default() });
            let reference = Trial { cgroup: cold, ..trial() };
            room(&Trial { cgroup: Some(cgroup), ..trial() }, &reference, 10_000 * 4096, 0.02)
        };
        assert_eq!([of(10_001, 0, 20), of(10_000, 0, 20)], [Some(0), Some(1)]);
        assert_eq!([of(1001, 0, 20), of(0, 1051, 20), of(1000, 1050, 20)], [Some(1), Some(1), Some(2)]);
        assert_eq!([of(201, 0, 1), of(200, 0, 13), of(200, 0, 12)], [Some(2), Some(3), None]);
        assert_eq!(room(&trial(), &trial(), 10_000, 0.02), None, "without cgroup counters, the room is unknown");
        let large = CgroupRecord {
            page_bytes: Some(64 << 10),
            file_refaults: 10,
            file_bytes: Some(0),
            limit_bytes: 1,
            ..CgroupRecord::default()
        };
        let of = |cgroup| room(&Trial { cgroup: Some(cgroup), ..trial() }, &trial(), 600_000, 0.02);
        assert_eq!((of(large), of(CgroupRecord { page_bytes: None, ..large })), (Some(0), Some(2)), "counted in pages");
        let cgroup = Some(CgroupRecord { file_bytes: Some(1), limit_bytes: 1, ..CgroupRecord::default() });
        assert_eq!(room(&Trial { cgroup, ..trial() }, &trial(), 0, 0.02), None, "there are no file pages");
        assert_eq!(room(&Trial { cgroup, ..trial() }, &trial(), 10_000, 0.2), Some(1), "the room is at least one step");
    }

    #[test]
    fn a_lack_of_memory_is_concluded_only_from_memory_causes() {
        for cause in [OomKill, OutOfMemoryError, FilePages, Collections] {
            assert!(is_short(Some(cause)), "{cause:?}");
        }
        for cause in [Start, Died, Failures, Rate, Times, Other] {
            assert!(!is_short(Some(cause)), "{cause:?}");
        }
    }

    #[test]
    fn collections_are_a_cause_above_a_quarter_of_the_time() {
        let share = |gc_ms: f64, seconds: f64| {
            let mut trial = trial();
            trial.phases[0].subject = SubjectWork { gc_ms: Some(gc_ms), ..SubjectWork::default() };
            trial.phases[0].seconds = seconds;
            cause_of(&trial, &[])
        };
        assert_eq!(share(2500.0, 10.0), Other);
        assert_eq!(share(2501.0, 10.0), Collections);
        assert_eq!(share(2501.0, 0.0), Other, "a phase without a length has no share");
    }

    #[test]
    fn kills_are_read_from_the_cgroup_and_errors_from_doubts() {
        let killed = CgroupRecord { oom_kills: 1, ..CgroupRecord::default() };
        assert_eq!(cause_of(&Trial { cgroup: Some(killed), ..trial() }, &[]), OomKill);
        let spared = CgroupRecord { oom_kills: 0, ..CgroupRecord::default() };
        assert_eq!(cause_of(&Trial { cgroup: Some(spared), ..trial() }, &[]), Other);
        let error = "java.lang.OutOfMemoryError: Metaspace".to_owned();
        let doubt = Doubt::OutOfMemoryError { error, pool: MemoryPool::Other };
        assert_eq!(cause_of(&Trial { doubts: vec![doubt.into()], ..trial() }, &[]), OutOfMemoryError);
    }

    #[test]
    fn the_most_certain_trace_gives_the_cause() {
        let missed = |metric: &str| {
            let (unit, text) = (Unit::Count, String::new());
            [Missed { metric: format!("{metric}.steady"), unit, value: 9.0, bound: 3.0, text }]
        };
        let slow = missed("p99");
        assert_eq!(cause_of(&ended(EndCause::OomKill), &slow), OomKill);
        assert_eq!(cause_of(&ended(EndCause::OutOfMemoryError), &slow), OutOfMemoryError);
        assert_eq!(cause_of(&ended(EndCause::ByItself), &slow), Died);
        assert_eq!(cause_of(&Trial { ready_s: None, ..trial() }, &slow), Start);
        for family in ["p50", "p90", "p99", "max", "mean", "response", "service"] {
            assert_eq!(cause_of(&trial(), &missed(family)), Times, "{family}");
        }
        assert_eq!(cause_of(&trial(), &missed("rate")), Rate);
        assert_eq!(cause_of(&trial(), &missed("failed")), Failures);
        assert_eq!(cause_of(&trial(), &missed("gc_share")), Other);
        assert_eq!(cause_of(&trial(), &[]), Other);
        let mut collecting = trial();
        collecting.phases[0].subject = SubjectWork { gc_ms: Some(4000.0), ..SubjectWork::default() };
        assert_eq!(cause_of(&collecting, &slow), Collections);
        let thrashing = CgroupRecord { file_refaults: 100_000, ..CgroupRecord::default() };
        assert_eq!(cause_of(&Trial { cgroup: Some(thrashing), ..trial() }, &slow), FilePages);
    }

    #[test]
    fn a_busy_machine_excuses_slow_responses_but_not_a_kill() {
        let of = noisy(0.8, None);
        for cause in [Times, Rate, Failures, Other] {
            assert!(is_disturbed(&of, cause), "{cause:?}");
        }
        for cause in [OomKill, OutOfMemoryError, FilePages, Start, Died, Collections] {
            assert!(!is_disturbed(&of, cause), "{cause:?}");
        }
        assert!(!is_disturbed(&noisy(0.02, Some(0.5)), Times), "the disturbance takes no CPU from the server");
        assert!(!is_disturbed(&trial(), Times));
    }
}
