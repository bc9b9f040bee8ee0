//! Finds the code that holds the memory. After the measurement, it restarts the same command with the same load, a
//! profiler of native memory, and a heap dump at the end. This start is not measured, because a profiler and a dump
//! cost memory.

use super::description::describe_requests;
use super::ending::Conducted;
use super::event::{Event, Sink};
use crate::clock::Clock;
use crate::explain::{COLLECTIONS, Profiler, enter_heap, enter_recorded, live_growth, profiler};
use crate::record::{ExplanationRecord, LiveGrowthRecord, Trial};
use crate::scenario::{Explain, MarkPoint, Objects, TrialPlan};
use crate::subject::WorkFolder;
use crate::units::Span;
use std::path::Path;
use std::time::Duration;

/// Runs another trial of a plan.
pub(super) type Again<'a> = &'a mut dyn FnMut(&TrialPlan, &mut dyn Sink) -> Conducted;

/// The heap dump's file name.
const DUMP: &str = "heap.hprof";

/// Restarts a plan's command, and finds the code and objects that hold memory. The record names missing parts.
pub(super) fn explain(
    plan: &TrialPlan,
    asked: &Explain,
    weighed: &Trial,
    clock: Clock,
    again: Again<'_>,
    sink: &mut dyn Sink,
) -> ExplanationRecord {
    let mut found = ExplanationRecord::default();
    let folder = match WorkFolder::create() {
        Ok(folder) => folder,
        Err(error) => {
            found.missing.push(format!("The server was not started again: {}", error.what));
            return found;
        }
    };
    sink.receive(&Event::Note("  starting the server again under a profiler to find the code that holds memory"));
    let profiler = profiler(asked.profiler.as_deref(), &mut found);
    let mut told = Told { next: sink, clock, load_ended: None };
    let second =
        |profiler: Option<&Profiler>| second_start(plan, profiler.map(|of| of.argument.as_str()), folder.path());
    let mut conducted = again(&second(profiler.as_ref()), &mut told);
    if profiler.is_some() && conducted.trial.ready_s.is_none() {
        // This JVM may have rejected the profiler; its objects can still be read.
        let why = conducted.error.map_or_else(String::new, |error| format!(": {}", error.what));
        found.missing.push(format!("The server did not start under the profiler{why}."));
        conducted = again(&second(None), &mut told);
    } else if let Some(profiler) = &profiler {
        enter_recorded(profiler, told.load_ended, &mut found);
    }
    let is_through = conducted.error.is_none();
    if let Some(error) = conducted.error {
        found.missing.push(format!("The second start did not finish its load: {}.", error.what));
    }
    let doubts = conducted.trial.doubts.iter().filter(|doubt| doubt.text.contains("heap dump"));
    found.missing.extend(doubts.map(|doubt| doubt.text.clone()));
    enter_heap(&folder.path().join(DUMP), conducted.trial.jvm.as_ref(), &mut found);
    if is_through {
        let why = match third_start(plan, weighed) {
            Some(plan) => {
                let note = "  starting the server a third time, with full GCs under the same load, to measure live \
                    heap growth";
                told.next.receive(&Event::Note(note));
                let load = plan.load.last().and_then(|phase| phase.kind.work()).map(describe_requests);
                let grown = live_growth(&again(&plan, &mut told).trial);
                found.live_growth = grown.map(|grown| LiveGrowthRecord { load: load.unwrap_or_default(), ..grown });
                "no full GC ran under load"
            }
            None => "this requires load that Loadline generates itself",
        };
        let unmeasured = format!("Live heap growth was not measured: {why}.");
        found.missing.extend(found.live_growth.is_none().then_some(unmeasured));
    }
    found
}

/// A start with collections during its last load, as many as a verdict on growth needs; `None` for an external load.
fn third_start(plan: &TrialPlan, weighed: &Trial) -> Option<TrialPlan> {
    let last = plan.load.last_work()?;
    plan.load[last].kind.work()?;
    let load_s = weighed.phases.iter().rfind(|phase| phase.works())?.seconds;
    let every = Span(Duration::from_secs_f64(load_s / f64::from(COLLECTIONS)));
    let title = format!("{}, collected", plan.title);
    let mut plan =
        TrialPlan { title, index: 0, explain: None, objects: Objects::Unread, heap_dump: None, ..plan.clone() };
    plan.load.truncate(last + 1);
    Some(TrialPlan { marks: Vec::new(), live_every: Some(every), ..plan })
}

/// The plan of the second start: the same load, a collection, a heap dump.
fn second_start(plan: &TrialPlan, option: Option<&str>, folder: &Path) -> TrialPlan {
    let mut plan = plan.clone();
    plan.title = format!("{}, explained", plan.title);
    plan.configuration.jvm.extend(option.map(str::to_owned));
    (plan.index, plan.explain, plan.objects) = (0, None, Objects::Unread);
    plan.heap_dump = Some(folder.join(DUMP));
    // The pause after a collection lets threads free the native memory of dead objects.
    plan.marks = vec![MarkPoint::Loaded, MarkPoint::Collected];
    plan
}

/// Forwards messages about the second start to the user, but no trial events.
struct Told<'a> {
    next: &'a mut dyn Sink,
    clock: Clock,
    /// The end of the last work phase, since the Unix epoch.
    load_ended: Option<Duration>,
}

impl Sink for Told<'_> {
    fn receive(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(_) | Event::Warning(_) | Event::PhaseStarted { .. } => self.next.receive(event),
            Event::PhaseEnded(phase) if phase.works() => {
                self.load_ended = Some(self.clock.since_epoch(self.clock.now_ns()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Heap, Mark, PhaseRecord};
    use crate::scenario::{LIVE_MARK, Model, Scenario, parse};

    fn plan() -> TrialPlan {
        let text = "name: x\nsubject: {command: [java, '{jvm}', -jar, x.jar, '{port}'], ready: {http: /}}\n\
                    classes: true\nload:\n  - steady: {closed: {connections: 2, duration: 4s}, get: /}\n";
        let mut scenario: Scenario = parse(text, Path::new("/x"), &[17]).unwrap_or_else(|error| panic!("{error}"));
        scenario.explain(Explain::default()).unwrap();
        TrialPlan { index: 7, ..TrialPlan::of(&scenario, &scenario.configurations[0]) }
    }

    #[derive(Default)]
    struct EventNames(Vec<String>);

    impl Sink for EventNames {
        fn receive(&mut self, event: &Event<'_>) {
            self.0.push(format!("{event:?}").split(['(', ' ']).next().unwrap_or_default().to_owned());
        }

        fn log(&self) -> Option<std::path::PathBuf> {
            panic!("the second start must not write to a file of the trial")
        }
    }

    #[test]
    fn the_second_start_adds_a_profiler_and_a_dump_to_the_same_load() {
        let plan = plan();
        let second = second_start(&plan, Some("-agentpath:/x/lib.so=start"), Path::new("/x"));
        assert_eq!((&second.load, &second.subject), (&plan.load, &plan.subject));
        assert_eq!(second.configuration.jvm, ["-agentpath:/x/lib.so=start"]);
        assert_eq!((second.explain, second.objects, second.index), (None, Objects::Unread, 0));
        assert_eq!(
            (second.marks, second.heap_dump),
            (vec![MarkPoint::Loaded, MarkPoint::Collected], Some("/x/heap.hprof".into()))
        );
    }

    #[test]
    fn the_last_load_gets_collections_only_if_loadline_sends_it() {
        let phase = PhaseRecord { model: Model::Closed, seconds: 12.0, ..PhaseRecord::default() };
        let weighed = Trial { phases: vec![phase], ..Trial::new("x", 0, 0) };
        let every = |plan: &TrialPlan| third_start(plan, &weighed)?.live_every;
        let mut plan = plan();
        assert_eq!(every(&plan), Some(Span(Duration::from_millis(500))));
        plan.load.truncate(0);
        assert_eq!(every(&plan), None);
    }

    #[test]
    fn only_events_for_users_are_passed_on() {
        let (mut seen, clock) = (EventNames::default(), Clock::made_up());
        let mut told = Told { next: &mut seen, clock, load_ended: None };
        let (work, rest) = (PhaseRecord { model: Model::Closed, ..PhaseRecord::default() }, PhaseRecord::default());
        told.receive(&Event::Warning("a warning"));
        told.receive(&Event::TrialFinished(&Trial::new("x", 0, 0)));
        clock.sleep(Duration::from_secs(3));
        told.receive(&Event::PhaseEnded(&work));
        let ended = told.load_ended;
        clock.sleep(Duration::from_secs(5));
        told.receive(&Event::PhaseEnded(&PhaseRecord { model: Model::Idle, ..rest }));
        assert_eq!((told.load_ended, told.log()), (ended, None));
        assert!(ended.is_some());
        assert_eq!(seen.0, ["Warning"]);
    }

    #[test]
    fn live_growth_counts_the_requests_sent() {
        let mark = |at_s| Mark {
            name: LIVE_MARK.to_owned(),
            at_s,
            heap: Heap { live_bytes: Some(1), ..Heap::default() },
            ..Mark::default()
        };
        let phase = PhaseRecord { model: Model::Closed, seconds: 12.0, ok: 60, ..PhaseRecord::default() };
        let weighed = Trial { phases: vec![phase], marks: vec![mark(1.0), mark(2.0)], ..Trial::new("x", 0, 0) };
        let again: Again<'_> = &mut |_, _| Conducted { trial: weighed.clone(), error: None };
        let asked = Explain { profiler: Some("/nowhere/libasyncProfiler.so".into()) };
        let found = explain(&plan(), &asked, &weighed, Clock::made_up(), again, &mut EventNames::default());
        assert_eq!(found.live_growth.unwrap().load, "GET /");
    }

    #[test]
    fn a_failed_start_leaves_a_reason_for_each_part() {
        let asked = Explain { profiler: Some("/nowhere/libasyncProfiler.so".into()) };
        let again: Again<'_> = &mut |plan, _| Conducted {
            trial: Trial::new(&plan.configuration.name, 0, 0),
            error: Some(crate::error::Error::subject("it ended before it was ready")),
        };
        let weighed = Trial::new("x", 0, 0);
        let found = explain(&plan(), &asked, &weighed, Clock::made_up(), again, &mut EventNames::default());
        assert_eq!((found.profiler, found.sites.len(), found.heap), (None, 0, None));
        let missing = found.missing.join("\n");
        for what in [
            "Native memory is not broken down by code: ",
            "did not finish its load: it ended",
            "No objects by what keeps",
        ] {
            assert!(missing.contains(what), "{missing}");
        }
    }
}
