//! Marks: the commands before them, their effect, and their time limits.

use super::super::made_up::{JvmReply, WEIGHING};
use super::*;
use crate::record::{Mark, NettyPools};
use crate::scenario::Collect;
use crate::units::{MIB, Span};
use std::time::Duration;

fn at_the_end(collect: Collect) -> TrialPlan {
    TrialPlan { marks: vec![MarkPoint::Collected, MarkPoint::Trimmed], collect, ..plan(LOAD) }
}

fn mark<'a>(made: &'a MadeTrial, name: &str) -> &'a Mark {
    made.trial.mark(name).unwrap_or_else(|| panic!("{:?}", marks(made)))
}

fn failed_reads(made: &MadeTrial) -> Vec<(String, String)> {
    let of = |doubt: &Doubt| match doubt {
        Doubt::ReadFailed { mark, why } => Some((mark.clone(), why.clone())),
        _ => None,
    };
    made.trial.doubts.iter().filter_map(|doubt| of(&doubt.doubt)).collect()
}

/// From the first command to the start of the following measurement.
fn settling(script: Script) -> Duration {
    let plan = at_the_end(Collect::default());
    let without = made(script.clone(), &TrialPlan { marks: Vec::new(), ..plan.clone() });
    let with = made(script, &TrialPlan { marks: vec![MarkPoint::Collected], ..plan });
    with.took - without.took - WEIGHING
}

#[test]
fn the_live_set_is_read_right_after_the_collection() {
    let made = made(Script::default(), &at_the_end(Collect::default()));
    // The simulated heap has one more MiB at the measurement: garbage, because a server is never fully idle.
    assert_eq!(mark(&made, "collected").heap.live_bytes, Some(7 * MIB));
    assert_eq!(mark(&made, "trimmed").heap.live_bytes, Some(8 * MIB));
    assert_eq!(mark(&made, "collected").rss_bytes, 100 * MIB, "RSS is read after it has settled");
    let silent = Script { live_bytes: None, ..Script::default() };
    assert_eq!(mark(&super::made(silent, &at_the_end(Collect::default())), "collected").heap.live_bytes, None);
}

#[test]
fn a_trim_without_a_prior_collection_leaves_the_live_set_unknown() {
    let plan = TrialPlan { marks: vec![MarkPoint::Trimmed], ..plan(LOAD) };
    assert_eq!(mark(&made(Script::default(), &plan), "trimmed").heap.live_bytes, None);
}

#[test]
fn the_requested_collections_run_with_a_pause_between_them() {
    let settle = Some(Span(ms(2000)));
    let calls = |times| {
        let made = made(Script::default(), &at_the_end(Collect { times, settle }));
        let asked = made.calls.iter().filter(|call| *call == "GC.run").count();
        (asked, made.took)
    };
    let ((one, short), (three, long)) = (calls(1), calls(3));
    assert_eq!((one, three), (1, 3));
    assert_eq!(long - short, 2 * (ms(100) + ms(5)));
}

#[test]
fn a_rejected_or_disabled_collection_makes_no_mark() {
    let why = |script: Script| {
        let made = made(script, &at_the_end(Collect::default()));
        assert_eq!((marks(&made), kind(&made)), (Vec::<&str>::new(), None));
        failed_reads(&made)
    };
    let both = |gc: &str, trim: &str| {
        [("collected", gc), ("trimmed", trim)].map(|(mark, why)| (mark.to_owned(), why.to_owned())).to_vec()
    };
    let refuses = Script { asked: JvmReply::Refuses("no"), ..Script::default() };
    assert_eq!(why(refuses), both("no full GC: no", "no native trim: no"));
    let deaf = Script { asked: JvmReply::IsDeaf, ..Script::default() };
    let cannot = "because the JVM cannot be asked for one";
    assert_eq!(why(deaf), both(&format!("no full GC, {cannot}"), &format!("no native trim, {cannot}")));
    let epsilon = Script { collects_not: Some("Epsilon never collects"), ..Script::default() };
    let made = made(epsilon, &at_the_end(Collect::default()));
    assert_eq!((marks(&made), made.calls.iter().any(|call| call == "GC.run")), (vec!["trimmed"], false));
    assert_eq!(failed_reads(&made), both("no full GC: Epsilon never collects", "")[..1]);
    assert_eq!(mark(&made, "trimmed").heap.live_bytes, None, "the live set is unknown without a prior collection");
}

#[test]
fn a_mark_waits_a_limited_time_for_stable_rss() {
    let settles = |span_ms| settling(Script { settles: ms(span_ms), ..Script::default() });
    // 50 MiB in this time; less than 256 KiB in 50 ms does not count as a change.
    assert!((ms(400)..ms(700)).contains(&settles(1)), "{:?}", settles(1));
    assert!((ms(1400)..ms(1600)).contains(&settles(1000)), "{:?}", settles(1000));
    assert_eq!(settles(9000), ms(5) + ms(3000));
}

#[test]
fn a_requested_pause_does_not_depend_on_rss() {
    let took = |ms_asked| {
        let settle = Some(Span(ms(ms_asked)));
        made(Script::default(), &at_the_end(Collect { times: 1, settle })).took
    };
    assert_eq!(took(5000) - took(1000), ms(4000));
}

#[test]
fn a_failed_agent_affects_only_the_list_of_pools() {
    let plan = TrialPlan { marks: vec![MarkPoint::Start, MarkPoint::Loaded], ..plan(LOAD) };
    let failing = Script { survey: Some(Err("Netty's pools: no answer".to_owned())), ..Script::default() };
    let made = made(failing, &plan);
    assert_eq!((marks(&made), mark(&made, "start").netty.is_none()), (vec!["start", "loaded"], true));
    let each = ["start", "loaded"].map(|mark| (mark.to_owned(), "Netty's pools: no answer".to_owned()));
    assert_eq!(failed_reads(&made), each);
    let listing = Script { survey: Some(Ok(NettyPools::default())), ..Script::default() };
    assert!(mark(&super::made(listing, &plan), "loaded").netty.is_some());
}

#[test]
fn a_dead_subject_gets_no_more_marks() {
    let script = Script::default().with(ms(7650), Happening::Dies(crate::subject::Exit::Code(1)));
    let plan = TrialPlan { marks: MarkPoint::ALL.to_vec(), ..plan(LOAD) };
    let made = made(script, &plan);
    assert_eq!((marks(&made), phases(&made).len()), (vec!["start", "warm", "loaded", "rested"], 3));
    assert_eq!(kind(&made), Some(ErrorKind::Subject));
    let error = made.error.as_ref().unwrap();
    assert!(format!("{error:?}").contains("at the last mark"), "{error:?}");
}
