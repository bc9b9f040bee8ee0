//! The heap's contents at the end: read after all measurements; for a fresh JVM, after the other one ended.

use super::super::made_up::JvmReply;
use super::*;
use crate::scenario::Objects;
use std::path::PathBuf;

fn asking() -> TrialPlan {
    let heap_dump = Some(PathBuf::from("/x/a.hprof"));
    TrialPlan { objects: Objects::Listed, heap_dump, marks: MarkPoint::ALL.to_vec(), ..plan(LOAD) }
}

#[test]
fn object_collections_happen_after_all_measurements() {
    let made = carry_out_in(Script::default(), &asking());
    let calls: Vec<&str> = made.calls.iter().map(String::as_str).collect();
    let behind = calls.iter().position(|call| *call == "weigh trimmed").unwrap() + 1;
    let expected = ["timeline ended", "histogram", "dump", "end", "start", "histogram", "end"];
    assert_eq!(calls[behind..], expected);
    assert!(!calls[..behind].contains(&"histogram"));
    let trial = &made.trial;
    let objects = trial.objects.as_ref().unwrap();
    // The simulated JVM has one more object for each query.
    assert_eq!((objects.total.instances, objects.at_start.unwrap().instances), (1, 2));
    assert_eq!(trial.heap_dump.as_ref().unwrap().path, "/x/a.hprof");
    assert_eq!(trial.outcome, Outcome::Completed);
    let without = carry_out_in(Script::default(), &TrialPlan { marks: MarkPoint::ALL.to_vec(), ..plan(LOAD) });
    let shown = |made: &MadeTrial| format!("{:?} {:?}", made.trial.marks, made.trial.phases);
    assert_eq!(shown(&made), shown(&without), "listing objects must not change any other figure");
}

#[test]
fn only_the_first_trial_dumps_and_a_search_does_not() {
    let second = carry_out_in(Script::default(), &TrialPlan { index: 1, ..asking() });
    assert!(second.trial.heap_dump.is_none() && second.trial.objects.is_some());
    let outside = carry_out_in(Script::default(), &TrialPlan { look: Look::Outside, ..asking() });
    assert!(outside.trial.objects.is_none() && outside.trial.heap_dump.is_none());
}

#[test]
fn a_rejected_command_is_a_doubt_and_the_trial_counts() {
    for script in [
        Script { asked: JvmReply::Refuses("no"), ..Script::default() },
        Script { asked: JvmReply::IsDeaf, ..Script::default() },
    ] {
        let plan = TrialPlan { marks: vec![MarkPoint::Start], ..asking() };
        let made = carry_out_in(script, &plan);
        let trial = &made.trial;
        assert_eq!(
            (trial.outcome, trial.objects.is_none(), trial.heap_dump.is_none()),
            (Outcome::Completed, true, true)
        );
        let texts: Vec<&str> = trial.doubts.iter().map(|doubt| doubt.text.as_str()).collect();
        for what in ["no live objects by class", "no heap dump"] {
            assert!(texts.iter().any(|text| text.contains(what)), "{texts:?}");
        }
        assert_eq!(made.calls.iter().filter(|call| *call == "start").count(), 1, "{:?}", made.calls);
    }
}
