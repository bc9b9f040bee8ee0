//! Adds up a subject's counts of its own work, from lines such as `loadline: ops=1200 s=1.5 fail=0 name=put`.

use crate::record::{Failures, Model, PhaseRecord, RequestRecord};
use crate::subject::Marker;

/// Kinds of operations counted separately; other kinds are only in the totals.
const NAMES_MAX: usize = 64;

/// Counts of the current phase.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tally {
    ok: u64,
    failed: u64,
    /// The reported time.
    seconds: f64,
    /// Per name, in order of first appearance.
    named: Vec<(String, u64, u64)>,
}

impl Tally {
    /// Adds a line. Values that are negative or not numbers are ignored.
    pub(super) fn add(&mut self, marker: &Marker) {
        let number = |key: &str| marker.number(key).filter(|number| *number >= 0.0);
        let (ops, failed) = (number("ops"), number("fail").unwrap_or(0.0) as u64);
        let Some(ok) = ops.map(|ops| (ops as u64).saturating_sub(failed)) else { return };
        self.ok = self.ok.saturating_add(ok);
        self.failed = self.failed.saturating_add(failed);
        self.seconds += number("s").unwrap_or(0.0);
        let Some((_, name)) = marker.values.iter().find(|(key, _)| key == "name") else { return };
        if let Some((_, of_ok, of_failed)) = self.named.iter_mut().find(|(known, ..)| known == name) {
            *of_ok = of_ok.saturating_add(ok);
            *of_failed = of_failed.saturating_add(failed);
        } else if self.named.len() < NAMES_MAX {
            self.named.push((name.clone(), ok, failed));
        }
    }

    /// The record of a phase that lasted `seconds`; the caller adds its name, time, and the subject's part.
    ///
    /// The rate uses the reported time, which excludes what the subject does not count as work. It is capped at the
    /// phase's length, because times of parallel threads can add up to more.
    pub(super) fn record(self, seconds: f64) -> PhaseRecord {
        let told =
            if self.seconds > 0.0 && (self.seconds < seconds || seconds <= 0.0) { self.seconds } else { seconds };
        let request = |(request, ok, failed): (String, u64, u64)| RequestRecord { request, weight: 1, ok, failed };
        PhaseRecord {
            model: Model::Subject,
            requests: self.ok.saturating_add(self.failed),
            ok: self.ok,
            failed: Failures { other: self.failed, ..Failures::default() },
            achieved_per_s: if told > 0.0 { self.ok as f64 / told } else { 0.0 },
            by_request: if self.named.len() > 1 { self.named.into_iter().map(request).collect() } else { Vec::new() },
            ..PhaseRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn told(lines: &[&str], seconds: f64) -> PhaseRecord {
        let mut tally = Tally::default();
        for line in lines {
            tally.add(&Marker::parse(line, &[], Duration::ZERO).unwrap());
        }
        tally.record(seconds)
    }

    #[test]
    fn work_reported_on_several_lines_is_summed() {
        let record = told(&["loadline: ops=1000 s=1.5 fail=10 name=put", "loadline: ops=500 s=0.5 name=get"], 4.0);
        assert_eq!((record.requests, record.ok, record.failed.other), (1500, 1490, 10));
        assert!((record.achieved_per_s - 745.0).abs() < 1e-9, "{record:?}");
        let named: Vec<_> = record.by_request.iter().map(|r| (r.request.as_str(), r.ok, r.failed)).collect();
        assert_eq!(named, [("put", 990, 10), ("get", 500, 0)]);
        assert_eq!(told(&["loadline: ops=5 name=put"], 1.0).by_request, []);
    }

    #[test]
    fn missing_or_excessive_times_are_replaced_by_the_phases() {
        assert!((told(&["loadline: ops=100"], 4.0).achieved_per_s - 25.0).abs() < 1e-9);
        assert!((told(&["loadline: ops=100 s=3", "loadline: ops=100 s=3"], 4.0).achieved_per_s - 50.0).abs() < 1e-9);
        assert!(told(&["loadline: ops=100"], 0.0).achieved_per_s.abs() < 1e-9);
    }

    #[test]
    fn invalid_counters_are_ignored() {
        for line in ["loadline: ops=-5", "loadline: ops=NaN s=1", "loadline: s=3", "loadline: ops= fail=x"] {
            let record = told(&[line], 1.0);
            assert_eq!((record.requests, record.ok, record.model), (0, 0, Model::Subject), "{line}");
        }
        let more_failed = told(&["loadline: ops=3 fail=5"], 1.0);
        assert_eq!((more_failed.requests, more_failed.ok), (5, 0));
        let huge = told(&["loadline: ops=1e300", "loadline: ops=1e300 fail=1e300"], 1.0);
        assert_eq!(huge.requests, u64::MAX);
    }
}
