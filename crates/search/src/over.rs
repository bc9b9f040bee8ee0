//! The result of a search at one value of a setting, for comparison with the other values.

use super::answers::counted;
use super::conclusion::cpu_per_request;
use crate::numbers::median;
use crate::record::{FindRecord, LineOver, ProbeStage, ProbeVerdict, Trial};

/// The search at this value, and the cost of a request in the trials that held at its line.
pub fn line_over(value: String, find: Option<FindRecord>, trials: &[Trial], why: String) -> LineOver {
    let own = at_line(find.as_ref(), trials);
    let middle =
        |read: fn(&Trial) -> Option<f64>| median(&own.iter().filter_map(|trial| read(trial)).collect::<Vec<_>>());
    let (cpu_per_request_s, ready_s) = (middle(cpu_per_request), middle(|trial| trial.ready_s));
    LineOver { value, find, cpu_per_request_s, throttled_share: throttled(&own), ready_s, why }
}

/// The trials that held at the line, or at the highest rate.
fn at_line<'a>(find: Option<&FindRecord>, trials: &'a [Trial]) -> Vec<&'a Trial> {
    let limit = find.and_then(|find| find.line.as_ref()).map(|line| line.limit_bytes);
    let rate = find.and_then(|find| find.rate.as_ref()).map(|of| of.rate_per_s);
    let stages = [ProbeStage::Limit, ProbeStage::Rate].into_iter();
    let held = stages.flat_map(|stage| counted(trials, stage)).filter(|(trial, probe)| {
        let is_there = match probe.rate_per_s {
            Some(_) => rate.is_some() && probe.rate_per_s == rate,
            None => limit.is_some() && trial.limit_bytes == limit,
        };
        probe.verdict == ProbeVerdict::Holds && is_there
    });
    held.map(|(trial, _)| trial).collect()
}

/// The share of the measured phases' periods in which a CPU limit throttled the subject.
fn throttled(trials: &[&Trial]) -> Option<f64> {
    let phases = trials.iter().flat_map(|trial| trial.measured_phases());
    let counted: Vec<_> = phases.filter_map(|phase| phase.subject.throttling).collect();
    let sum = |of: fn(&crate::record::Throttling) -> u64| counted.iter().map(of).fold(0, u64::saturating_add);
    let (throttled, periods) = (sum(|of| of.throttled_periods), sum(|of| of.periods));
    (periods > 0).then(|| throttled as f64 / periods as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LineRecord, PhaseRecord, SubjectWork, Throttling};
    use crate::{Attempt, Ruling};

    fn trial(limit: u64, verdict: ProbeVerdict, cpu_s: f64, throttled_periods: u64) -> Trial {
        let throttling = Some(Throttling { periods: 100, throttled_periods, throttled_s: 0.0 });
        let subject = SubjectWork { cpu_s: Some(cpu_s), throttling, ..SubjectWork::default() };
        let model = crate::record::Model::Open;
        let phase = PhaseRecord { name: "steady".to_owned(), model, ok: 10, subject, ..PhaseRecord::default() };
        let ruling = Ruling { verdict, why: Vec::new(), missed: Vec::new(), cause: None };
        let probe = Attempt::first(ProbeStage::Limit, limit).ruled(ruling);
        let of = Trial::new("a", 0, 0);
        Trial { limit_bytes: Some(limit), probe: Some(probe), ready_s: Some(cpu_s), phases: vec![phase], ..of }
    }

    #[test]
    fn a_line_has_the_figures_of_its_trials() {
        use ProbeVerdict::{Fails, Holds};
        let trials = [
            trial(200, Holds, 9.0, 0),
            trial(100, Fails, 8.0, 90),
            trial(100, Holds, 1.0, 10),
            trial(100, Holds, 2.0, 20),
            trial(100, Holds, 4.0, 30),
        ];
        let line = Some(LineRecord { limit_bytes: 100, ..LineRecord::default() });
        let found = Some(FindRecord { line, ..FindRecord::default() });
        let of = line_over("500m".to_owned(), found, &trials, String::new());
        assert_eq!((of.cpu_per_request_s, of.throttled_share, of.ready_s), (Some(0.2), Some(0.2), Some(2.0)));
        let none = line_over("10m".to_owned(), None, &trials, "it ended early".to_owned());
        assert_eq!((none.cpu_per_request_s, none.throttled_share, none.ready_s), (None, None, None));
    }
}
