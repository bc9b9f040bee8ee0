//! Decides whether the live heap grows under load, by full collections during the load. Uses the verdict of `watch`,
//! with collections instead of cells.

use crate::growth::{Floors, HOUR, Ladder, Unsure};
use crate::record::{LiveGrowthRecord, Mark, Trial};
use crate::scenario::LIVE_MARK;

/// Collections planned during a load: enough for a verdict, plus some that may come late.
pub(crate) const COLLECTIONS: u32 = 24;
/// Collections per window.
const WINDOW: usize = 12;

/// The growth of the live heap in a trial with collections during its last load; `None` without collections.
pub(crate) fn live_growth(trial: &Trial) -> Option<LiveGrowthRecord> {
    let marks: Vec<(&Mark, u64)> = trial.marks.iter().filter(|mark| mark.name == LIVE_MARK).filter_map(live).collect();
    let phase = trial.phases.iter().rfind(|phase| phase.works()).filter(|phase| phase.seconds > 0.0)?;
    let ((first, first_bytes), (last, last_bytes)) = (marks.first()?, marks.last()?);
    let seconds = last.at_s - first.at_s;
    let requests = seconds * phase.ok as f64 / phase.seconds;
    let values: Vec<f64> = marks.iter().map(|(_, bytes)| *bytes as f64).collect();
    let ladder = Ladder::default();
    let floors = Floors { values: &values, age: 0, collections: None };
    // Only the pace matters, not the distance to a limit.
    let judgement = ladder.over(floors, None).at(values.len(), f64::MAX);
    let needed = match judgement.unsure {
        Some(Unsure::Young { grows, .. }) => grows,
        _ => 0,
    };
    let of_window = marks[marks.len().saturating_sub(WINDOW)..].iter().map(|(_, bytes)| *bytes);
    // The verdict's slopes are per `HOUR` cells.
    let per_request = requests / (values.len() - 1).max(1) as f64 * HOUR as f64;
    let hint = judgement.hint.filter(|_| per_request > 0.0);
    Some(LiveGrowthRecord {
        load: String::new(),
        collections: values.len() as u32,
        needed: needed as u32,
        seconds,
        requests: requests as u64,
        live_bytes_first: *first_bytes,
        live_bytes_last: *last_bytes,
        live_bytes_min: of_window.clone().min().unwrap_or(0),
        live_bytes_max: of_window.max().unwrap_or(0),
        bytes_per_request: hint.map(|hint| hint.slope / per_request),
        bytes_per_request_low: hint.map(|hint| hint.low / per_request),
        bytes_per_request_high: hint.map(|hint| hint.high / per_request),
    })
}

fn live(mark: &Mark) -> Option<(&Mark, u64)> {
    Some((mark, mark.heap.live_bytes?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Heap, PhaseRecord};
    use crate::scenario::Model;

    fn trial(live: &[u64]) -> Trial {
        let mark = |(at, bytes): (usize, &u64)| Mark {
            name: LIVE_MARK.to_owned(),
            at_s: at as f64,
            heap: Heap { live_bytes: Some(*bytes), ..Heap::default() },
            ..Mark::default()
        };
        let phase = PhaseRecord { model: Model::Open, ok: 2_400, seconds: 24.0, ..PhaseRecord::default() };
        let marks = live.iter().enumerate().map(mark).collect();
        Trial { marks, phases: vec![phase], ..Trial::new("x", 0, 0) }
    }

    #[test]
    fn a_leak_has_bytes_per_request_and_a_full_cache_does_not() {
        let grown = |bytes: &dyn Fn(u64) -> u64| live_growth(&trial(&(0..24).map(bytes).collect::<Vec<_>>())).unwrap();
        // 100 requests a second, each leaking 1 KiB, with some noise.
        let leak = grown(&|at| (20 << 20) + at * 102_400 + at * 7 % 5 * 4_000);
        let [slope, low, high] =
            [leak.bytes_per_request, leak.bytes_per_request_low, leak.bytes_per_request_high].map(Option::unwrap);
        assert!(low < 1_024.0 && 1_024.0 < high && (slope - 1_024.0).abs() < 20.0, "{leak:?}");
        let full = grown(&|at| (20 << 20) + ((at * 3) << 20).min(12 << 20) + at * 7 % 5 * 4_000);
        assert_eq!((full.bytes_per_request, full.live_bytes_min), (None, 32 << 20));
        assert!(live_growth(&trial(&[])).is_none());
        assert_eq!(live_growth(&trial(&[1; 7])).unwrap().needed, 21);
    }
}
