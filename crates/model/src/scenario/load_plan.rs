//! The load plan: a trial's phases in order, and properties derived from them.

use super::{ExpectStatus, Method, OwnWork, Phase, PhaseKind, PhaseMark, Ready, Until, Work};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// The shortest warm-up that can show whether a subject is warm: four stretches of 2 s, and the first reading.
const SEEN_WARM: Span = Span::seconds(9);

/// The phases of the load on a subject, in order; at least one in a validated plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct LoadPlan(pub Vec<Phase>);

impl LoadPlan {
    /// Index of the last work phase, which the mark `loaded` follows.
    pub fn last_work(&self) -> Option<usize> {
        self.iter().rposition(|phase| phase.kind.works())
    }

    /// Whether the subject rests after the last work, so that the mark `rested` is possible.
    pub fn rests(&self) -> bool {
        self.last_work().is_some_and(|last| last + 1 < self.len())
    }

    /// Lets a sufficiently long warm-up end early when the subject is warm.
    pub fn warm_by_evidence(&mut self) {
        let is_long = |work: &Work| matches!(work.schedule.until(), Some(Until::Elapsed(span)) if span >= SEEN_WARM);
        let warmups = self.iter_mut().filter(|phase| phase.is_warmup());
        for phase in warmups.filter(|phase| matches!(&phase.kind, PhaseKind::Work(work) if is_long(work))) {
            phase.ends_when_steady(None);
        }
    }

    /// Whether a warm-up that ends when the subject is warm has a fixed rate, which warms up code slowly.
    pub fn warms_slowly(&self) -> bool {
        self.iter().any(is_slow_warmup)
    }

    /// Makes such a warm-up run at full speed on this many connections. Adds a full collection after it, because the
    /// load itself would not leave as much garbage.
    pub fn warm_fast(&mut self, connections: u32) {
        for phase in self.iter_mut().filter(|phase| is_slow_warmup(phase)) {
            phase.mark = PhaseMark::Collected;
            if let Some(work) = phase.kind.work_mut() {
                work.schedule.close(connections.min(work.schedule.connections()));
            }
        }
    }

    /// Whether the load can be extended to this length.
    pub fn can_last(&self, span: Span) -> bool {
        self.clone().prolong(span)
    }

    /// Extends the engine's last measured phase to this length. Returns whether it had a time limit and was shorter.
    pub fn prolong(&mut self, span: Span) -> bool {
        let measured = self.iter_mut().rev().filter(|phase| !phase.is_warmup());
        let Some(work) = measured.filter_map(|phase| phase.kind.work_mut()).next() else { return false };
        let is_shorter = match work.schedule.until() {
            Some(Until::Elapsed(own)) => own < span,
            Some(Until::Requests(_)) => true,
            None => false,
        };
        if is_shorter {
            work.schedule.set_until(Until::Elapsed(span));
        }
        is_shorter
    }

    /// Removes the rest after the last work.
    pub fn drop_last_rest(&mut self) {
        let works = self.last_work().map_or(0, |last| last + 1);
        self.truncate(works);
    }

    /// Whether the subject generates its own work in a phase. Loadline then tells it through stdin when to continue.
    pub fn has_own_work(&self) -> bool {
        self.own_works().next().is_some()
    }

    /// Whether the load engine or another driver works in any phase.
    pub fn is_driven(&self) -> bool {
        self.iter().any(|phase| matches!(phase.kind, PhaseKind::Work(_) | PhaseKind::Driver(_)))
    }

    /// The self-driven phases.
    pub fn own_works(&self) -> impl Iterator<Item = &OwnWork> {
        self.iter().filter_map(|phase| phase.kind.own())
    }

    fn engine_works(&self) -> impl DoubleEndedIterator<Item = (&Phase, &Work)> {
        self.iter().filter_map(|phase| Some((phase, phase.kind.work()?)))
    }

    /// Names of the marks that phases add, in order.
    pub fn marks(&self) -> Vec<&str> {
        marks(self)
    }

    /// Names of a trial's work phases, in order.
    pub fn works(&self) -> Vec<&str> {
        let names = self.iter().filter(|phase| phase.kind.works()).flat_map(|phase| match &phase.kind {
            PhaseKind::Own(own) => own.begun().iter().map(String::as_str).collect(),
            _ => vec![phase.name.as_str()],
        });
        names.collect()
    }

    /// The status that the load expects from the readiness path, if it requests that path and expects a single status.
    pub fn ready_status(&self, ready: &Ready) -> Option<u16> {
        let Ready::Http(path) = ready else { return None };
        let asked = self.engine_works().flat_map(|(_, work)| work.requests().map(|request| (request, work.expect)));
        let mut same = asked.filter(|(request, _)| request.method == Method::Get && request.path == *path);
        let (request, of_phase) = same.next()?;
        match request.checks.status.unwrap_or(of_phase) {
            ExpectStatus::Exactly(status) => Some(status),
            ExpectStatus::Success => None,
        }
    }

    /// The rate of the last measured open phase, per second.
    pub fn rate_per_s(&self) -> Option<f64> {
        let mut measured = self.engine_works().rev().filter(|(phase, _)| !phase.is_warmup());
        measured.find_map(|(_, work)| work.schedule.rate().map(|rate| rate.max()))
    }

    /// Whether any phase has an open model.
    pub fn is_open(&self) -> bool {
        self.engine_works().any(|(_, work)| work.schedule.is_open())
    }

    /// Names of the closed measured phases.
    pub fn closed_phases(&self) -> impl Iterator<Item = &str> {
        let closed = self.engine_works().filter(|(phase, work)| !phase.is_warmup() && !work.schedule.is_open());
        closed.map(|(phase, _)| phase.name.as_str())
    }

    /// Gives a closed phase a constant rate, in requests per second.
    pub fn open(&mut self, name: &str, rate_per_s: f64) {
        let named = self.iter_mut().filter(|phase| phase.name == name);
        named.filter_map(|phase| phase.kind.work_mut()).for_each(|work| work.schedule.open(rate_per_s));
    }

    /// Multiplies the rate of every open phase.
    pub fn scale(&mut self, factor: f64) {
        self.iter_mut().filter_map(|phase| phase.kind.work_mut()).for_each(|work| work.schedule.scale(factor));
    }
}

fn is_slow_warmup(phase: &Phase) -> bool {
    let is_open = |work: &Work| work.schedule.is_open() && work.schedule.until().is_some();
    phase.is_warmup() && phase.until_steady && phase.kind.work().is_some_and(is_open)
}

pub(super) fn marks(load: &[Phase]) -> Vec<&str> {
    let names = load.iter().flat_map(|phase| match &phase.kind {
        PhaseKind::Own(own) => own.phases.iter().map(String::as_str).collect(),
        _ if phase.mark == PhaseMark::None => Vec::new(),
        _ => vec![phase.name.as_str()],
    });
    names.collect()
}

impl Deref for LoadPlan {
    type Target = Vec<Phase>;

    fn deref(&self) -> &Vec<Phase> {
        &self.0
    }
}

impl DerefMut for LoadPlan {
    fn deref_mut(&mut self) -> &mut Vec<Phase> {
        &mut self.0
    }
}

impl<'a> IntoIterator for &'a LoadPlan {
    type Item = &'a Phase;
    type IntoIter = std::slice::Iter<'a, Phase>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_measured_phase_is_prolonged_up_to_a_time() {
        let of = |phases: &str| {
            let text = format!("name: x\nsubject: {{command: [x]}}\nconfigurations: {{a: {{}}}}\nload:\n{phases}");
            let mut load = super::super::parse(&text, std::path::Path::new("/x"), &[17]).unwrap().load;
            let longer = load.prolong(Span::seconds(60));
            let until = load.iter().filter_map(|phase| phase.kind.work()?.schedule.until());
            (longer, until.collect::<Vec<_>>())
        };
        let (warm, steady) =
            ("  - warmup: {same: steady}\n", "  - steady: {constant: {rate: 9, duration: 10s}, get: /}\n");
        let [ten, sixty] = [10, 60].map(|seconds| Until::Elapsed(Span::seconds(seconds)));
        assert_eq!(of(&format!("{warm}{steady}  - rest: {{idle: 5s}}\n")), (true, vec![ten, sixty]));
        let closed = "  - steady: {closed: {connections: 2, requests: 50}, get: /}\n";
        assert_eq!(of(closed), (true, vec![sixty]));
        let long = "  - steady: {constant: {rate: 9, duration: 2m}, get: /}\n";
        assert_eq!(of(long), (false, vec![Until::Elapsed(Span::seconds(120))]), "2 minutes are long enough");
        let program = "  - steady: {driver: wrk}\n";
        assert!(!of(program).0, "Loadline cannot prolong another program's load");
    }
}
