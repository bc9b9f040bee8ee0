//! Self-driven subjects: the marks shown as columns, reported counters, and the source of figures.

use crate::record::{Mark, PhaseRecord, Trial, each_once};
use crate::scenario::MarkPoint;

/// The most informative marks of a scenario that has no marks of its own.
const USUAL: [MarkPoint; 4] = [MarkPoint::Start, MarkPoint::Loaded, MarkPoint::Rested, MarkPoint::Collected];
/// Maximum number of marks in a table that also has other columns.
const COLUMNS_MAX: usize = 5;
/// Maximum numbers shown in a note; the JSON document has all of them.
const TOLD_MAX: usize = 12;

/// Whether a mark is the scenario's own.
pub(super) fn is_own(mark: &str) -> bool {
    MarkPoint::ALL.iter().all(|point| point.word() != mark)
}

/// The most informative marks of these trials: the scenario's own, reduced to the first and last ones if there are
/// many, else the usual ones.
pub(super) fn columns(trials: &[Trial]) -> Vec<&str> {
    let marks = trials.iter().flat_map(|trial| &trial.marks).map(|mark| mark.name.as_str());
    let own = each_once(marks.filter(|mark| is_own(mark)));
    if own.is_empty() { USUAL.map(MarkPoint::word).to_vec() } else { ends(own, COLUMNS_MAX) }
}

/// The first and last values, at most `most` of them.
pub(super) fn ends<T>(mut all: Vec<T>, most: usize) -> Vec<T> {
    if all.len() > most {
        let behind = most / 2;
        all.drain(most - behind..all.len() - behind);
    }
    all
}

/// The counters that the subject reported at its markers.
pub(super) fn told(marks: &[Mark]) -> Option<String> {
    let of = |mark: &Mark| {
        let numbers: Vec<String> = mark.counters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        (!numbers.is_empty()).then(|| format!("{} {}", mark.name, numbers.join(" ")))
    };
    let told: Vec<String> = marks.iter().filter_map(of).collect();
    let more = match told.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        n => format!("; and at {n} more"),
    };
    let shown: Vec<&str> = told.iter().take(TOLD_MAX).map(String::as_str).collect();
    (!shown.is_empty()).then(|| {
        format!(
            "The program reported these values at its markers: {}{more}.",
            shown.join(
                "; \
        "
            )
        )
    })
}

/// The source of the figures in self-driven phases.
pub(super) fn work(phases: &[PhaseRecord]) -> Option<String> {
    let own: Vec<&PhaseRecord> = phases.iter().filter(|phase| phase.is_own()).collect();
    let names: Vec<&str> = own.iter().map(|phase| phase.name.as_str()).collect();
    let counts = match own.iter().any(|phase| phase.is_counted()) {
        true => "requests and rate count its operations",
        false => "it counted no operations",
    };
    (!own.is_empty()).then(|| format!("{}: the program ran its own workload; {counts}.", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Model;
    use std::collections::BTreeMap;

    fn trial(marks: &[&str]) -> Trial {
        let mut trial = Trial::new("a", 0, 0);
        trial.marks = marks.iter().map(|name| Mark { name: (*name).to_owned(), ..Mark::default() }).collect();
        trial
    }

    #[test]
    fn columns_are_the_scenarios_own_marks_or_the_default_ones() {
        assert_eq!(columns(&[trial(&["start", "loaded"])]), ["start", "loaded", "rested", "collected"]);
        let two = [trial(&["start", "empty", "full", "loaded"]), trial(&["empty", "x"])];
        assert_eq!(columns(&two), ["empty", "full", "x"]);
        assert_eq!(columns(&[trial(&["a", "b", "c", "d", "e", "f", "g"])]), ["a", "b", "c", "f", "g"]);
    }

    #[test]
    fn printed_counters_are_quoted_and_limited() {
        let mark = |name: &str, key: &str, value| Mark {
            name: name.to_owned(),
            counters: BTreeMap::from([(key.to_owned(), value)]),
            ..Mark::default()
        };
        let marks = [mark("empty", "instances", 0.0), Mark::default(), mark("full", "share", 0.5)];
        let expect = "The program reported these values at its markers: empty instances=0; full share=0.5.";
        assert_eq!(told(&marks).unwrap(), expect);
        assert_eq!(told(&[Mark::default()]), None);
        let many: Vec<Mark> = (0..20).map(|n| mark(&format!("m{n}"), "n", f64::from(n))).collect();
        assert!(told(&many).unwrap().ends_with("; and at 8 more."));
    }

    #[test]
    fn the_source_of_work_figures_is_named() {
        let phase = |model, requests| PhaseRecord { name: "p".to_owned(), model, requests, ..PhaseRecord::default() };
        assert_eq!(work(&[phase(Model::Closed, 1), phase(Model::Idle, 0)]), None);
        let none = phase(Model::Subject, 0);
        assert!(work(std::slice::from_ref(&none)).unwrap().ends_with("it counted no operations."));
        assert!(work(&[none, phase(Model::Subject, 2)]).unwrap().starts_with("p, p: the program ran its own workload"));
    }
}
