//! A service's result: its line, compared with the previous line and with the production limit.

use crate::doubt::{ClockSlip, Merging};
use crate::record::{
    DoubtRecord, EntryOutcome, EntryResult, FindOutcome, LineRecord, LineVerdict, PlanEntry, PlanHeader, ServiceRecord,
    Task, to_set,
};
use crate::scenario::{Last, PAST_MAX, PastLine};
use crate::units::{Bytes, growth, several, trimmed, unix_s};

/// NTP-synchronized clocks differ by milliseconds, and times are recorded in whole seconds.
const SLIP_S: i64 = 5;
/// Limits are whole pages, so two limits a step apart may differ by this much more.
const PAGES_BYTES: u64 = 8 << 10;
/// The text for an entry without a result.
const MISSING: &str = "there is no result";

/// The times of the plan and of the merge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) plan: &'a PlanHeader,
    pub(super) now_unix_s: i64,
}

/// The service of an entry; `result` is the one that counts, if any.
pub(super) fn service(entry: &PlanEntry, result: Option<&EntryResult>, around: Around<'_>) -> ServiceRecord {
    let last = entry.last.as_ref();
    let before = ServiceRecord {
        name: entry.name.clone(),
        index: entry.index,
        declared_bytes: entry.declared_bytes,
        last_bytes: last.map(|last| last.limit_bytes),
        last: entry.last.clone(),
        past: last.map(past).unwrap_or_default(),
        ..ServiceRecord::default()
    };
    let Some(result) = result else {
        return ServiceRecord { verdict: LineVerdict::Missing, text: MISSING.to_owned(), ..before };
    };
    let now = result.line.as_ref().filter(|_| result.outcome == EntryOutcome::Answered);
    let limit_bytes = now.map(|now| limit_to_set(entry, result, now));
    let other = now.and_then(|now| other_cpu(last?, result, now));
    let own = doubts_of(entry, result, around).into_iter().chain(other.clone()).map(record);
    let mut service = ServiceRecord {
        verdict: verdict(entry, result, now),
        line: now.map(|now| line(now, result)),
        limit_bytes,
        options: result.find.iter().filter(|_| now.is_some()).flat_map(|find| find.options.clone()).collect(),
        wasted_bytes: entry.declared_bytes.zip(limit_bytes).map(|(declared, limit)| growth(limit, declared)),
        last: now.map(|now| next(entry, now, result, &before.past)).or_else(|| entry.last.clone()),
        node: result.node.name.clone(),
        other_cpu: other.is_some(),
        trials: result.find.as_ref().map_or(0, |find| find.trials),
        seconds: result.seconds,
        doubts: result.doubts.iter().cloned().chain(own).collect(),
        ..before
    };
    service.text = text(&service, entry, result);
    service
}

fn verdict(entry: &PlanEntry, result: &EntryResult, now: Option<&Last>) -> LineVerdict {
    let ended = match result.outcome {
        EntryOutcome::SubjectFailed | EntryOutcome::NodeUnfit => return LineVerdict::Failed,
        EntryOutcome::OutOfTime => return LineVerdict::Unknown,
        EntryOutcome::Answered => result.find.as_ref().map(|find| find.outcome),
    };
    match (now, &entry.last, ended) {
        (None, _, Some(FindOutcome::NotHeld | FindOutcome::Never)) => LineVerdict::NotHeld,
        (None, ..) => LineVerdict::Unknown,
        (Some(_), None, _) => LineVerdict::First,
        (Some(now), Some(last), _) => match (result.task == Task::Prove, now.limit_bytes, last.limit_bytes) {
            (true, now, last) if is_same(now, last, 0.0) => LineVerdict::Proved,
            (_, now, last) if is_same(now, last, step(entry, result)) => LineVerdict::Same,
            (_, now, last) if now < last => LineVerdict::Lower,
            _ => LineVerdict::Higher,
        },
    }
}

fn step(entry: &PlanEntry, result: &EntryResult) -> f64 {
    result.find.as_ref().map_or(entry.scenario.find.step, |find| find.step).clamp(0.0, 1.0)
}

/// Whether two lines are at most a step apart.
fn is_same(now: u64, last: u64, step: f64) -> bool {
    let (less, more) = (now.min(last), now.max(last));
    more - less <= (less as f64 * step) as u64 + PAGES_BYTES
}

/// The line as searched or confirmed; values that only a search provides may be missing.
fn line(now: &Last, result: &EntryResult) -> LineRecord {
    let found = result.find.as_ref().and_then(|find| find.line.as_ref());
    found.filter(|line| line.limit_bytes == now.limit_bytes).cloned().unwrap_or_else(|| LineRecord {
        limit_bytes: now.limit_bytes,
        heap_bytes: now.heap_bytes,
        direct_bytes: now.direct_bytes,
        failing_share_max: 1.0,
        ..LineRecord::default()
    })
}

/// The limit to set. A confirmation adds no headroom, so the scenario's is added here.
fn limit_to_set(entry: &PlanEntry, result: &EntryResult, now: &Last) -> u64 {
    let find = result.find.as_ref().filter(|find| find.prove_bytes.is_none());
    let set = find.filter(|find| find.line.as_ref().is_some_and(|line| line.limit_bytes == now.limit_bytes));
    set.and_then(|find| find.limit_bytes)
        .unwrap_or_else(|| to_set(now.limit_bytes, now.heap_bytes, entry.scenario.find.headroom).0)
}

/// The previous lines including the last one; the oldest are dropped.
pub(super) fn past(last: &Last) -> Vec<PastLine> {
    let at = last.proved_at.as_ref().or(last.searched_at.as_ref());
    let line = at.map(|at| PastLine { at: at.clone(), limit_bytes: last.limit_bytes });
    let all: Vec<PastLine> = last.past.iter().cloned().chain(line).collect();
    all[all.len().saturating_sub(PAST_MAX)..].to_vec()
}

/// The line in the form that the next plan needs, completed from other sources.
fn next(entry: &PlanEntry, now: &Last, result: &EntryResult, past: &[PastLine]) -> Last {
    let started = Some(result.started.clone());
    let searched = match result.task {
        Task::Prove => entry.last.as_ref().and_then(|last| last.searched_at.clone()),
        Task::Search { .. } | Task::Block { .. } => started.clone(),
    };
    Last {
        proved_at: now.proved_at.clone().or(started),
        searched_at: now.searched_at.clone().or(searched),
        question: now.question.clone().or_else(|| Some(entry.question.clone())),
        cpu_model: now.cpu_model.clone().or_else(|| result.node.machine.cpu_model.clone()),
        past: past.to_vec(),
        ..now.clone()
    }
}

fn other_cpu(last: &Last, result: &EntryResult, now: &Last) -> Option<Merging> {
    let before = last.cpu_model.clone().filter(|model| !model.is_empty())?;
    let now = now.cpu_model.clone().or_else(|| result.node.machine.cpu_model.clone())?;
    (!now.is_empty() && now != before).then_some(Merging::OtherCpu { before, now })
}

/// Doubts about any kind of result, compared with its plan.
pub(super) fn doubts_of(entry: &PlanEntry, result: &EntryResult, around: Around<'_>) -> Vec<Merging> {
    let node = || result.node.name.clone();
    let began = unix_s(&result.started);
    let made = unix_s(&around.plan.made);
    let slip = |slip, seconds: i64| Merging::ClocksDiffer { node: node(), slip, seconds: seconds as f64 };
    let mut doubts = Vec::new();
    if let Some(early) = made.zip(began).map(|(made, began)| made.saturating_sub(began)).filter(|s| *s > SLIP_S) {
        doubts.push(slip(ClockSlip::BeganBeforeItsPlan, early));
    }
    let late = began.map(|began| began.saturating_add(result.seconds as i64).saturating_sub(around.now_unix_s));
    doubts.extend(late.filter(|late| *late > SLIP_S).map(|late| slip(ClockSlip::EndedInTheFuture, late)));
    let (worked, planned) = (&result.loadline, &around.plan.loadline);
    if !worked.is_empty() && worked != planned {
        doubts.push(Merging::OtherLoadline { node: node(), worked: worked.clone(), planned: planned.clone() });
    }
    if result.name != entry.name {
        let (said, planned) = (result.name.clone(), entry.name.clone());
        doubts.push(Merging::OtherName { index: entry.index, said, planned });
    }
    doubts
}

pub(super) fn record(doubt: Merging) -> DoubtRecord {
    DoubtRecord::from(crate::doubt::Doubt::from(doubt))
}

/// Describes how the line changed, with numbers; a production limit that is too small comes first.
fn text(service: &ServiceRecord, entry: &PlanEntry, result: &EntryResult) -> String {
    let became = became(service, entry, result);
    let Some((declared, wasted)) = service.declared_bytes.zip(service.wasted_bytes) else { return became };
    let (of, apart) = (Bytes(declared), Bytes(wasted.unsigned_abs()));
    let line = service.line.as_ref().map_or(0, |line| line.limit_bytes);
    match wasted {
        0 => format!("{became}; its limit is already right"),
        1.. => format!("{became}; its limit of {of} is {apart} larger than needed"),
        _ if service.is_below_line() => {
            format!("its limit of {of} is {} below its load line: {became}", Bytes(line.saturating_sub(declared)))
        }
        _ => format!("its limit of {of} is {apart} below the limit to set: {became}"),
    }
}

fn became(service: &ServiceRecord, entry: &PlanEntry, result: &EntryResult) -> String {
    let why = |what: &str| match result.why.join("; ") {
        said if said.is_empty() => what.to_owned(),
        said => format!("{what}: {said}"),
    };
    let told = |otherwise: &str| result.find.as_ref().map_or_else(|| why(otherwise), |find| find.text.clone());
    let now = service.line.as_ref().map_or(0, |line| line.limit_bytes);
    let last = service.last_bytes.unwrap_or(0);
    let (line, before, apart) = (Bytes(now), Bytes(last), Bytes(now.abs_diff(last)));
    let held = service.line.as_ref().filter(|line| line.held > 0);
    let held = held.map(|line| format!(" ({} of {} passed)", line.held, several(u64::from(line.tried()), "start")));
    let held = held.unwrap_or_default();
    match service.verdict {
        LineVerdict::Proved => format!("the load line of {line} was confirmed{held}"),
        LineVerdict::First => format!("the load line is {line}{held}"),
        LineVerdict::Same => {
            let percent = step(entry, result) * 100.0;
            format!(
                "the load line is {line}, the same as the previous {before} within a step of \
                {}%",
                trimmed(percent, 2)
            )
        }
        LineVerdict::Lower => format!("the load line is {line}, {apart} lower than the previous {before}"),
        LineVerdict::Higher => format!("the load line is {line}, {apart} higher than the previous {before}"),
        LineVerdict::NotHeld => told("the target is missed"),
        LineVerdict::Unknown if result.outcome == EntryOutcome::OutOfTime => {
            why("time ran out before a load line was found")
        }
        LineVerdict::Unknown => told("no load line was found"),
        LineVerdict::Failed if result.outcome == EntryOutcome::NodeUnfit => why("the node could not measure it"),
        LineVerdict::Failed => why("it could not be run"),
        LineVerdict::Missing => MISSING.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Plan, layout};
    use crate::record::{FLEET_ENTRY_SCHEMA, FindRecord, Machine, NodeRecord, Why};
    use crate::units::MIB;

    const MADE: &str = "2026-11-23T01:00:00Z";

    fn last(mib: u64) -> Last {
        Last {
            proved_at: Some("2026-11-22T02:00:00Z".to_owned()),
            searched_at: Some("2026-11-20T02:00:00Z".to_owned()),
            question: Some("before".to_owned()),
            ..Last::of(Bytes::mib(mib))
        }
    }

    /// A plan with one service that has a limit of 200 MiB.
    fn plan(before: Option<Last>) -> Plan {
        let entry = PlanEntry {
            name: "shop".to_owned(),
            task: Task::Prove,
            declared_bytes: Some(200 * MIB),
            last: before,
            question: "now".to_owned(),
            ..layout::tests::plan("x", 1).entries.remove(0)
        };
        Plan::new("nightly", MADE.to_owned(), vec![entry]).unwrap()
    }

    fn find(outcome: FindOutcome, text: &str) -> FindRecord {
        FindRecord { step: 0.02, outcome, text: text.to_owned(), ..FindRecord::default() }
    }

    fn answered(task: Task, line: Option<u64>) -> EntryResult {
        EntryResult {
            schema: FLEET_ENTRY_SCHEMA.to_owned(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            plan: String::new(),
            index: 0,
            name: "shop".to_owned(),
            task,
            outcome: EntryOutcome::Answered,
            why: Vec::new(),
            node: NodeRecord {
                name: "n1".to_owned(),
                machine: Machine { cpu_model: Some("B".to_owned()), ..Machine::default() },
                ..NodeRecord::default()
            },
            started: "2026-11-23T02:00:00Z".to_owned(),
            seconds: 600.0,
            find: None,
            line: line.map(|mib| Last { proved_at: None, searched_at: None, question: None, ..last(mib) }),
            archives: Vec::new(),
            doubts: Vec::new(),
        }
    }

    const SEARCH: Task = Task::Search { why: Why::LongAgo };

    /// The service's record, merged half an hour after the entry ended.
    fn told(before: Option<Last>, result: Option<&EntryResult>) -> ServiceRecord {
        let plan = plan(before);
        let around = Around { plan: &plan.header, now_unix_s: unix_s("2026-11-23T02:40:00Z").unwrap() };
        service(&plan.entries[0], result, around)
    }

    #[test]
    fn a_line_is_compared_with_the_previous_one_and_the_declared_limit() {
        let check = |task: &Task, before: Option<u64>, line: u64, verdict: LineVerdict, text: &str| {
            let told = told(before.map(last), Some(&answered(task.clone(), Some(line))));
            assert_eq!((told.verdict, told.text.as_str()), (verdict, text));
        };
        let more = "; its limit of 200.0 MiB is 90.0 MiB larger than needed";
        let of = |text: &str| format!("{text}{more}");
        check(&Task::Prove, Some(100), 100, LineVerdict::Proved, &of("the load line of 100.0 MiB was confirmed"));
        check(&SEARCH, None, 100, LineVerdict::First, &of("the load line is 100.0 MiB"));
        let same = of("the load line is 100.0 MiB, the same as the previous 102.0 MiB within a step of 2%");
        check(&SEARCH, Some(102), 100, LineVerdict::Same, &same);
        let lower = of("the load line is 100.0 MiB, 3.0 MiB lower than the previous 103.0 MiB");
        check(&SEARCH, Some(103), 100, LineVerdict::Lower, &lower);
        let higher = of("the load line is 100.0 MiB, 3.0 MiB higher than the previous 97.0 MiB");
        check(&SEARCH, Some(97), 100, LineVerdict::Higher, &higher);
        check(&Task::Prove, Some(97), 100, LineVerdict::Higher, &higher);
        let little = "its limit of 200.0 MiB is 9.0 MiB below the limit to set: the load line of 190.0 MiB was \
            confirmed";
        check(&Task::Prove, Some(190), 190, LineVerdict::Proved, little);
        let below = "its limit of 200.0 MiB is 50.0 MiB below its load line: the load line of 250.0 MiB was confirmed";
        check(&Task::Prove, Some(250), 250, LineVerdict::Proved, below);
    }

    #[test]
    fn a_missing_line_is_explained() {
        let check = |result: Option<EntryResult>, verdict: LineVerdict, text: &str| {
            let told = told(Some(last(100)), result.as_ref());
            assert_eq!((told.verdict, told.text.as_str()), (verdict, text));
            assert_eq!((told.line, told.limit_bytes, told.wasted_bytes), (None, None, None));
            assert_eq!(told.last, Some(last(100)), "the next plan gets the line unchanged");
        };
        let none =
            |outcome, why: &str| Some(EntryResult { outcome, why: vec![why.to_owned()], ..answered(SEARCH, None) });
        let found = |outcome| Some(EntryResult { find: Some(find(outcome, "the reason")), ..answered(SEARCH, None) });
        check(None, LineVerdict::Missing, "there is no result");
        check(none(EntryOutcome::SubjectFailed, "no jar"), LineVerdict::Failed, "it could not be run: no jar");
        check(
            none(EntryOutcome::NodeUnfit, "no cgroup"),
            LineVerdict::Failed,
            "the node could not measure it: no cgroup",
        );
        let up = "time ran out before a load line was found: 9 trials";
        check(none(EntryOutcome::OutOfTime, "9 trials"), LineVerdict::Unknown, up);
        check(found(FindOutcome::NotHeld), LineVerdict::NotHeld, "the reason");
        check(found(FindOutcome::Never), LineVerdict::NotHeld, "the reason");
        check(found(FindOutcome::GivenUp), LineVerdict::Unknown, "the reason");
        check(Some(answered(SEARCH, None)), LineVerdict::Unknown, "no load line was found");
        // A line without a completed confirmation does not count.
        let unproved = EntryResult { outcome: EntryOutcome::OutOfTime, ..answered(Task::Prove, Some(100)) };
        check(Some(unproved), LineVerdict::Unknown, "time ran out before a load line was found");
    }

    #[test]
    fn a_proof_has_the_same_headroom_as_a_search() {
        let proved =
            FindRecord { limit_bytes: Some(100 * MIB), prove_bytes: Some(100 * MIB), ..find(FindOutcome::Found, "") };
        let of_proof = EntryResult { find: Some(proved), ..answered(Task::Prove, Some(100)) };
        assert_eq!(told(Some(last(100)), Some(&of_proof)).limit_bytes, Some(110 * MIB));
        assert_eq!(told(Some(last(100)), Some(&answered(SEARCH, Some(100)))).limit_bytes, Some(110 * MIB));
    }

    #[test]
    fn the_next_plan_gets_the_line_with_its_history() {
        let before = Last { past: vec![PastLine { at: "x".to_owned(), limit_bytes: 1 }; 40], ..last(97) };
        let next = told(Some(before.clone()), Some(&answered(SEARCH, Some(100)))).last.unwrap();
        assert_eq!((next.limit_bytes, next.past.len(), next.question.as_deref()), (100 * MIB, PAST_MAX, Some("now")));
        let newest = PastLine { at: "2026-11-22T02:00:00Z".to_owned(), limit_bytes: 97 * MIB };
        assert_eq!(next.past.last(), Some(&newest));
        assert_eq!(next.searched_at.as_deref(), Some("2026-11-23T02:00:00Z"));
        assert_eq!((next.proved_at.as_deref(), next.cpu_model.as_deref()), (Some("2026-11-23T02:00:00Z"), Some("B")));
        // A confirmation is not a search.
        let next = told(Some(before), Some(&answered(Task::Prove, Some(97)))).last.unwrap();
        assert_eq!(next.searched_at.as_deref(), Some("2026-11-20T02:00:00Z"));
    }

    #[test]
    fn a_different_cpu_clock_or_loadline_raises_a_doubt() {
        let said = |before: Option<Last>, result: EntryResult| {
            let told = told(before, Some(&result));
            let texts: Vec<String> = told.doubts.iter().map(|doubt| doubt.text.clone()).collect();
            (told.other_cpu, texts)
        };
        let on = |model: &str| Some(Last { cpu_model: Some(model.to_owned()), ..last(100) });
        let result = || answered(Task::Prove, Some(100));
        assert_eq!(said(on("B"), result()), (false, vec![]));
        assert_eq!(said(on(""), result()), (false, vec![]));
        let cpu = "different CPU: the load line was found on B, but the last one on A".to_owned();
        assert_eq!(said(on("A"), result()), (true, vec![cpu]));
        let at = |started: &str| EntryResult { started: started.to_owned(), ..result() };
        assert_eq!(said(None, at("2026-11-23T00:59:56Z")).1, [] as [&str; 0], "times have a resolution of one second");
        assert_eq!(
            said(None, at("2026-11-23T00:30:00Z")).1,
            ["clocks differ: n1 started 30 min before its plan was made"]
        );
        assert_eq!(said(None, at("2026-11-23T03:00:00Z")).1, ["clocks differ: n1 finished 30 min in the future"]);
        let other = EntryResult { loadline: "0.0.9".to_owned(), ..result() };
        let text = format!("different version: 0.0.9 ran on n1, but {} made the plan", env!("CARGO_PKG_VERSION"));
        assert_eq!(said(None, other).1, [text]);
        assert_eq!(said(None, EntryResult { loadline: String::new(), ..result() }).1, [] as [&str; 0]);
    }
}
