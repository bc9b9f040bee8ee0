//! How to test a known line again, and how to interpret the result.

use super::ServiceVersions;
use super::service::past;
use crate::record::{EntryOutcome, FindOutcome, FindRecord, ProbeStage, ProbeVerdict, Task, Trial, to_set};
use crate::scenario::{Change, Last, RamShare, Scenario};
use crate::units::Bytes;

/// If the step below the line passes this many times in a row, a new search is worthwhile.
const PROOFS_BELOW: u32 = 2;

/// The directory of an entry's results, relative to that of all results.
pub fn folder_of(index: u32) -> String {
    format!("index-{index:06}")
}

/// Whether a new result replaces the existing one. An answer replaces a result without one. Any other result replaces
/// one from a node that could not measure, unless its own node could not either.
pub fn outweighs(new: EntryOutcome, standing: EntryOutcome) -> bool {
    let weight = |outcome| match outcome {
        EntryOutcome::Answered => 2,
        EntryOutcome::OutOfTime | EntryOutcome::SubjectFailed => 1,
        EntryOutcome::NodeUnfit => 0,
    };
    weight(new) > weight(standing)
}

/// The scenario that confirms a line: its heap, direct memory, and limit.
pub fn proof_of(scenario: &Scenario, last: &Last) -> Scenario {
    let mut scenario = scenario.clone();
    let heap = last.heap_bytes.map(|bytes| Change::HeapMax(Bytes(bytes)));
    let direct = last.direct_bytes.map(|bytes| Change::DirectMax(Bytes(bytes)));
    if let Some(configuration) = scenario.configurations.first_mut() {
        heap.into_iter().chain(direct).for_each(|change| change.apply(configuration));
    }
    scenario.find.proofs = scenario.find.fresh();
    scenario.find.prove = Some(Bytes(last.limit_bytes));
    scenario
}

/// The same, one search step below the line, in whole pages of this size; `None` if that should not be tested.
pub fn proof_below(scenario: &Scenario, last: &Last, page: u64) -> Option<Scenario> {
    let below = (last.limit_bytes as f64 / (1.0 + scenario.find.step)) as u64 / page * page;
    let least = scenario.find.limit_min.unwrap_or_default().0.max(page);
    (below >= least).then(|| {
        let mut scenario = proof_of(scenario, &Last { limit_bytes: below, ..last.clone() });
        scenario.find.proofs = PROOFS_BELOW;
        scenario
    })
}

/// The result of confirming a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It passed as many times as required.
    Held,
    /// It failed, or failed even with more memory.
    Failed,
    /// The machine prevented a result.
    Unknown,
}

impl Proof {
    /// Derives the result from all trials.
    pub fn of(find: &FindRecord) -> Self {
        match find.outcome {
            FindOutcome::Found | FindOutcome::AtLowerBound | FindOutcome::Grows => Self::Held,
            FindOutcome::Never | FindOutcome::NotHeld => Self::Failed,
            FindOutcome::GivenUp => Self::Unknown,
        }
    }
}

/// The record of a confirmed line, in the form of a search, with the heap, the scenario's headroom, and the result one
/// step below, if tested.
pub fn proved(proof: &FindRecord, last: &Last, headroom: f64, below: Option<(&FindRecord, &[Trial])>) -> FindRecord {
    let mut find = proof.clone();
    let Some(line) = &mut find.line else { return find };
    (line.heap_bytes, line.direct_bytes) = (last.heap_bytes, last.direct_bytes);
    let (limit, heap) = to_set(line.limit_bytes, last.heap_bytes, headroom);
    (find.headroom, find.limit_bytes, find.heap_bytes) = (headroom, Some(limit), heap);
    find.share_options = heap.map_or_else(Vec::new, |heap| RamShare::options(heap, limit));
    let Some((below, trials)) = below else { return find };
    find.trials += below.trials;
    find.seconds += below.seconds;
    let probes = trials.iter().filter_map(|trial| trial.probe.as_ref());
    let fails =
        |probe: &&crate::record::ProbeRecord| probe.stage == ProbeStage::Limit && probe.verdict == ProbeVerdict::Fails;
    let failed = probes.rev().find(fails).filter(|_| below.outcome == FindOutcome::Never);
    if let (Some(failed), Some(limit)) = (failed, below.prove_bytes) {
        line.below_bytes = Some(limit);
        (line.cause, line.cause_text) = (failed.cause, failed.why.clone());
        find.text = format!("{}; at {}, the target was missed", find.text, Bytes(limit));
    }
    find
}

/// The conditions under which a line was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineConditions {
    /// The current time: UTC, ISO 8601.
    pub at: String,
    /// SHA-256 of the question.
    pub question: String,
    /// SHA-256 of the files that its trials read.
    pub inputs: Option<String>,
    /// Properties of the service that only the node knows.
    pub seen: ServiceVersions,
    /// The model of the node's CPU, if known.
    pub cpu_model: Option<String>,
}

/// A line in the form that the next plan needs, with the previous line in its past; `None` if no line passed.
pub fn last_of(find: &FindRecord, task: &Task, before: Option<&Last>, known: &LineConditions) -> Option<Last> {
    let line = find.line.as_ref()?;
    let searched_at = match task {
        Task::Prove => before.and_then(|before| before.searched_at.clone()),
        Task::Search { .. } | Task::Block { .. } => Some(known.at.clone()),
    };
    Some(Last {
        limit_bytes: line.limit_bytes,
        heap_bytes: line.heap_bytes,
        direct_bytes: line.direct_bytes,
        proved_at: Some(known.at.clone()),
        searched_at,
        question: Some(known.question.clone()),
        inputs: known.inputs.clone(),
        image_digest: known.seen.image_digest.clone(),
        jdk: known.seen.jdk.clone(),
        cpu_model: known.cpu_model.clone(),
        past: before.map(past).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LineRecord, Why};
    use crate::scenario::{PAST_MAX, PastLine, parse};
    use crate::units::MIB;
    use std::path::Path;

    fn scenario(find: &str) -> Scenario {
        let text = format!(
            "name: x\nsubject: {{command: [java, -jar, x.jar]}}\nconfigurations: {{a: {{}}}}\nfind: {{{find}}}\n\
             load: [steady: {{constant: {{rate: 9, duration: 1s}}, get: /}}]\n"
        );
        parse(&text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn last() -> Last {
        Last {
            heap_bytes: Some(8 * MIB),
            direct_bytes: Some(4 * MIB),
            proved_at: Some("2026-11-21T00:00:00Z".to_owned()),
            searched_at: Some("2026-11-20T00:00:00Z".to_owned()),
            past: (0..PAST_MAX as u64).map(|n| PastLine { at: format!("night {n}"), limit_bytes: n }).collect(),
            ..Last::of(Bytes::mib(102))
        }
    }

    fn find(limit_bytes: u64, outcome: FindOutcome) -> FindRecord {
        let line = LineRecord { limit_bytes, ..LineRecord::default() };
        FindRecord {
            outcome,
            line: Some(line).filter(|_| outcome == FindOutcome::AtLowerBound),
            limit_bytes: Some(limit_bytes),
            prove_bytes: Some(limit_bytes),
            trials: 6,
            seconds: 60.0,
            ..FindRecord::default()
        }
    }

    #[test]
    fn a_proof_uses_all_settings_and_the_step_below_uses_the_search_grid() {
        let scenario_ = scenario("step: 2%, proofs: 5");
        let proof = proof_of(&scenario_, &last());
        assert_eq!(proof.configurations[0].jvm, ["-Xmx8m", "-XX:MaxDirectMemorySize=4m"]);
        assert_eq!((proof.find.prove, proof.find.proofs), (Some(Bytes::mib(102)), 5));
        let below = proof_below(&scenario_, &last(), 4096).unwrap();
        assert_eq!((below.find.prove, below.find.proofs), (Some(Bytes::mib(100)), 2));
        assert_eq!(below.configurations, proof.configurations);
        assert_eq!(proof_below(&scenario("limit_min: 101m"), &last(), 4096), None);
    }

    #[test]
    fn a_proved_line_is_described_like_a_searched_one() {
        let proof = find(102 * MIB, FindOutcome::AtLowerBound);
        let alone = proved(&proof, &last(), 0.1, None);
        let line = alone.line.as_ref().unwrap();
        assert_eq!((line.heap_bytes, line.direct_bytes, line.below_bytes), (Some(8 * MIB), Some(4 * MIB), None));
        assert_eq!((alone.headroom, alone.limit_bytes, alone.trials), (0.1, Some(113 * MIB), 6));
        let below = find(100 * MIB, FindOutcome::Never);
        let whole = proved(&proof, &last(), 0.1, Some((&below, &[])));
        assert_eq!((whole.trials, whole.seconds), (12, 120.0));
        assert_eq!(whole.line.unwrap().below_bytes, None, "the step below does not count without a trial");
        let held = |outcome| Proof::of(&find(1, outcome));
        assert_eq!(held(FindOutcome::AtLowerBound), Proof::Held);
        assert_eq!([held(FindOutcome::Never), held(FindOutcome::NotHeld)], [Proof::Failed; 2]);
        assert_eq!(held(FindOutcome::GivenUp), Proof::Unknown);
    }

    #[test]
    fn a_found_line_is_kept_with_earlier_ones_for_the_next_plan() {
        let known = LineConditions { at: "now".to_owned(), question: "q".to_owned(), ..LineConditions::default() };
        let found = find(90 * MIB, FindOutcome::AtLowerBound);
        let proved = last_of(&found, &Task::Prove, Some(&last()), &known).unwrap();
        assert_eq!((proved.proved_at.as_deref(), proved.searched_at), (Some("now"), last().searched_at));
        assert_eq!((proved.past.len(), proved.past[0].at.as_str()), (PAST_MAX, "night 1"));
        assert_eq!(proved.past.last().map(|past| past.limit_bytes), Some(102 * MIB));
        assert_eq!(proved.cpu_model, None);
        let search = Task::Search { why: Why::First };
        let searched = last_of(&found, &search, None, &known).unwrap();
        assert_eq!((searched.searched_at.as_deref(), searched.past.len()), (Some("now"), 0));
        assert_eq!(last_of(&find(1, FindOutcome::Never), &search, None, &known), None);
    }

    #[test]
    fn an_entry_result_is_replaced_only_by_a_stronger_outcome() {
        use EntryOutcome::{Answered, NodeUnfit, OutOfTime, SubjectFailed};
        let all = [Answered, OutOfTime, SubjectFailed, NodeUnfit];
        let wins = |new| all.into_iter().filter(|standing| outweighs(new, *standing)).collect::<Vec<_>>();
        assert_eq!(wins(Answered), [OutOfTime, SubjectFailed, NodeUnfit]);
        assert_eq!([wins(OutOfTime), wins(SubjectFailed)], [[NodeUnfit], [NodeUnfit]]);
        assert!(wins(NodeUnfit).is_empty());
        assert_eq!(folder_of(3), "index-000003");
    }
}
