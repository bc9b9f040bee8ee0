//! Reads the contents of the heap after all measurements: live objects by class, and a heap dump. Both trigger a
//! collection. Growth is measured against a fresh JVM, started after the measured one ended, because a collection
//! before the load would change the heap that the load finds.

use super::event::{Event, Sink};
use super::trialling::{Trialling, sources};
use super::world::Stage;
use crate::doubt::Doubt;
use crate::error::{Error, Result};
use crate::observe::class_histogram::ClassHistogram;
use crate::record::ObjectsRecord;
use crate::scenario::{Look, Objects, TrialPlan};
use crate::subject::{Launch, WorkFolder};
use crate::weigh::{live_objects, price_of_dump, price_of_objects};

/// Builds a command line for a fresh JVM like the measured one, with its directory.
pub(super) type Afresh<'a> = &'a dyn Fn() -> Result<(Launch, Option<WorkFolder>)>;

/// The location in doubts about the end of a trial.
const THE_END: &str = "the end";

impl Trialling<'_> {
    /// Makes the requested readings, ordered so that none affects the next.
    pub(super) fn look_inside(&mut self) {
        let plan = self.plan;
        let is_cut_short = self.stage.interrupted() || self.guard.hopeless().is_some();
        if plan.look == Look::Outside || is_cut_short || self.has_died() {
            return;
        }
        let used = self.notes.trial.marks.last().and_then(|mark| mark.heap.used_bytes);
        if plan.objects == Objects::Listed {
            self.notes.sink.receive(&Event::Note(&format!("  {}", price_of_objects(used))));
            let found = self.scales.histogram(self.notes.doubts);
            self.live = self.noted("no live objects by class", found);
        }
        if let Some(path) = plan.heap_dump.as_ref().filter(|_| plan.index == 0) {
            self.notes.sink.receive(&Event::Note(&format!("  {}", price_of_dump(used, path))));
            let dumped = self.scales.dump_heap(path, self.notes.doubts);
            self.notes.trial.heap_dump = self.noted("no heap dump", dumped);
        }
    }

    /// Returns a result; turns an error into a doubt.
    fn noted<T>(&mut self, what: &str, found: std::result::Result<T, String>) -> Option<T> {
        found.map_err(|why| self.notes.doubts.push(failed(what, &why))).ok()
    }
}

fn failed(what: &str, why: &str) -> Doubt {
    Doubt::ReadFailed { mark: THE_END.to_owned(), why: format!("{what}: {why}") }
}

/// The live objects of the measured JVM, compared with a fresh one if possible.
pub(super) fn objects(
    stage: Stage<'_>,
    plan: &TrialPlan,
    (live, afresh): (&ClassHistogram, Option<Afresh<'_>>),
    doubts: &mut Vec<Doubt>,
    sink: &mut dyn Sink,
) -> ObjectsRecord {
    let Some(afresh) = afresh.filter(|_| !stage.interrupted()) else { return live_objects(live, None) };
    sink.receive(&Event::Note("  starting a fresh JVM to count its live objects"));
    match at_start(stage, plan, afresh) {
        Ok(start) => live_objects(live, Some(&start)),
        Err(error) => {
            doubts.push(failed("no class counts at startup", &error.what));
            live_objects(live, None)
        }
    }
}

/// The live objects of a JVM that just became ready.
fn at_start(stage: Stage<'_>, plan: &TrialPlan, afresh: Afresh<'_>) -> Result<ClassHistogram> {
    let (launch, work) = afresh()?;
    let mut running = stage.world.start(&launch, None)?;
    let mut ask = || {
        let ready = running.wait_ready(plan.subject.ready_within.0, &|| stage.interrupted(), &mut |_| {})?;
        let sources = sources(plan, stage, &*running, ready.pid);
        let mut unheard = Vec::new();
        let mut scales = stage.world.scales(&sources, None, &mut unheard)?;
        scales.histogram(&mut unheard).map_err(Error::machine)
    };
    let found = ask();
    let ended = running.end(plan.subject.end_within.0);
    drop(work);
    match ended.left {
        0 => found,
        n => Err(Error::machine(format!("{n} of its processes could not be killed"))),
    }
}
