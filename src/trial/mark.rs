//! A mark of a trial: one full measurement. Before the last marks, the JVM collects or trims.

use super::event::Event;
use super::trialling::Trialling;
use super::world::Stage;

use crate::doubt::Doubt;
use crate::record::{Heap, Mark};
use crate::scenario::{Collect, LIVE_MARK, Look, MarkPoint, Nmt, Phase, PhaseMark};
use crate::units::Span;
use crate::weigh::{AskNmt, MarkSettings, Moment};
use std::collections::BTreeMap;
use std::time::Duration;

/// G1 uncommits in the background, first after 100 ms (`G1UncommitRegionTask`, JDK 16 and later).
const SETTLED_FOR: Duration = Duration::from_millis(400);
/// If the heap is still shrinking after this time, it is measured anyway.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);
/// Cleaner threads free memory of unreachable objects after a collection; the next collection shows it.
const BETWEEN_COLLECTIONS: Duration = Duration::from_millis(100);
/// The interval between RSS readings.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Threads come and go; smaller differences do not count.
const STILL_BYTES: u64 = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeapState {
    /// It is unknown which part of the heap is reachable.
    AsItIs,
    /// A full collection, with the heap's size right after it if the JVM reported it. A server is never fully idle: by
    /// the time its pages are read, it has new garbage.
    Collected {
        live_bytes: Option<u64>,
    },
    Trimmed,
}

/// The preparation before a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Collect(Collect),
    Trim,
}

impl Trialling<'_> {
    /// Measures the subject if this mark was requested. Returns the process's C allocator, if known.
    pub(super) fn mark(&mut self, point: MarkPoint) -> Option<String> {
        if !self.takes(point) {
            return None;
        }
        let before = match point {
            MarkPoint::Collected => Before::Collect(self.plan.collect),
            MarkPoint::Trimmed => Before::Trim,
            MarkPoint::Start | MarkPoint::Warm | MarkPoint::Loaded | MarkPoint::Rested => Before::Nothing,
        };
        self.mark_after(point.word(), before, None, BTreeMap::new())
    }

    pub(super) fn takes(&self, point: MarkPoint) -> bool {
        self.plan.look == Look::Full && self.plan.marks.contains(&point)
    }

    /// Measures the subject unprepared, even after an interrupt.
    pub(super) fn mark_as_it_is(&mut self, name: &str) {
        let gate = self.reports.gate();
        let _quiet = gate.close();
        self.weigh(name, HeapState::AsItIs, BTreeMap::new(), Vec::new());
    }

    /// Measures the subject if this finished phase has a mark with its name.
    pub(super) fn mark_of(&mut self, phase: &Phase) {
        let before = match phase.mark {
            PhaseMark::AsItIs => Before::Nothing,
            PhaseMark::Collected => Before::Collect(self.plan.collect),
            PhaseMark::None => return,
        };
        if self.plan.look == Look::Full {
            self.mark_after(&phase.name, before, None, BTreeMap::new());
        }
    }

    /// Measures the subject at its own marker. If the collection fails, measures without it.
    pub(super) fn mark_at(&mut self, name: &str, collect: Option<Collect>, counters: BTreeMap<String, f64>) {
        if self.plan.look != Look::Outside {
            let before = collect.map_or(Before::Nothing, Before::Collect);
            self.mark_after(name, before, Some(HeapState::AsItIs), counters);
        }
    }

    /// Measures only the live heap under load, if due, because a full mark would disturb the load.
    pub(super) fn mark_live(&mut self) {
        let Some((due, every)) = self.live_due.zip(self.plan.live_every) else { return };
        if self.stage.clock.now() < due {
            return;
        }
        let collect = Collect { settle: Some(Span::default()), ..Collect::default() };
        let mut failed = Vec::new();
        let prepared = self.prepare(Before::Collect(collect), &mut failed);
        self.doubt_reads(LIVE_MARK, failed);
        let now = self.stage.clock.now();
        if let Some(HeapState::Collected { live_bytes }) = prepared {
            let heap = Heap { live_bytes, ..Heap::default() };
            let at_s = self.seconds(self.stage.clock.now_ns());
            self.notes.trial.marks.push(Mark { name: LIVE_MARK.to_owned(), at_s, heap, ..Mark::default() });
        }
        // If a collection takes longer than the interval, the load then runs for as long as the collection took.
        self.live_due = prepared.map(|_| (due + every.0).max(now + (now - due).min(every.0)));
    }

    /// Prepares the subject and measures it. If preparation fails, the heap's state is `otherwise`; without
    /// `otherwise`, there is no mark.
    fn mark_after(
        &mut self,
        name: &str,
        before: Before,
        otherwise: Option<HeapState>,
        counters: BTreeMap<String, f64>,
    ) -> Option<String> {
        let gate = self.reports.gate();
        let _quiet = gate.close();
        let mut failed = Vec::new();
        let prepared = self.prepare(before, &mut failed).or(otherwise);
        // An interrupted phase does not have the state to be measured.
        let Some(prepared) = prepared.filter(|_| !self.stage.interrupted()) else {
            self.doubt_reads(name, failed);
            return None;
        };
        self.weigh(name, prepared, counters, failed)
    }

    fn weigh(
        &mut self,
        name: &str,
        prepared: HeapState,
        counters: BTreeMap<String, f64>,
        mut failed: Vec<String>,
    ) -> Option<String> {
        let at_s = self.seconds(self.stage.clock.now_ns());
        let trial = &mut *self.notes.trial;
        let after_collected = || trial.marks.last().is_some_and(|mark| mark.name == MarkPoint::Collected.word());
        let live = match prepared {
            HeapState::AsItIs => false,
            HeapState::Collected { .. } => true,
            HeapState::Trimmed => after_collected(),
        };
        let weigh = MarkSettings {
            moment: if live { Moment::Collected } else { Moment::Running },
            nmt: if self.plan.configuration.nmt == Nmt::Summary { AskNmt::WithGrowth } else { AskNmt::No },
            stop: true,
            regions: false,
        };
        let weighed = self.scales.weigh(weigh, name, &|| self.subject.processes(), self.notes.doubts);
        failed.extend(weighed.failed);
        trial.rss_bytes_peak = trial.rss_bytes_peak.max(weighed.rss_bytes_peak);
        let mut mark = weighed.mark;
        mark.at_s = at_s;
        mark.counters = counters;
        if let HeapState::Collected { live_bytes: Some(bytes) } = prepared {
            mark.heap.live_bytes = Some(bytes);
        }
        // Last, so that the agent's allocations do not count in this mark.
        let pools = self.scales.survey();
        mark.netty = pools.and_then(|pools| pools.map_err(|why| failed.push(why)).ok());
        if mark.rss_bytes > 0 {
            self.notes.sink.receive(&Event::Marked(&mark));
            trial.marks.push(mark);
        }
        self.doubt_reads(name, failed);
        weighed.allocator
    }

    fn doubt_reads(&mut self, mark: &str, failed: Vec<String>) {
        let doubt = |why| Doubt::ReadFailed { mark: mark.to_owned(), why };
        self.notes.doubts.extend(failed.into_iter().map(doubt));
    }

    /// Prepares the heap for a mark; `None` on failure.
    fn prepare(&mut self, before: Before, failed: &mut Vec<String>) -> Option<HeapState> {
        let (command, what, times) = match before {
            Before::Nothing => return Some(HeapState::AsItIs),
            Before::Collect(collect) => ("GC.run", "no full GC", collect.times),
            Before::Trim => ("System.trim_native_heap", "no native trim", 1),
        };
        if let Some(why) = self.scales.collects_not().filter(|_| before != Before::Trim) {
            failed.push(format!("{what}: {why}"));
            return None;
        }
        for time in 0..times {
            if time > 0 {
                self.wait(BETWEEN_COLLECTIONS);
            }
            let why = match self.scales.tell(command, self.notes.doubts, failed) {
                Some(Ok(())) => continue,
                Some(Err(why)) => format!("{what}: {why}"),
                None => format!("{what}, because the JVM cannot be asked for one"),
            };
            failed.push(why);
            return None;
        }
        let collects = before != Before::Trim;
        let live_bytes = if collects { self.scales.heap_left() } else { None };
        match before {
            Before::Collect(Collect { settle: Some(span), .. }) => self.wait(span.0),
            _ => self.settle(),
        }
        Some(if collects { HeapState::Collected { live_bytes } } else { HeapState::Trimmed })
    }

    /// Waits, unless the user interrupts or the subject dies.
    fn wait(&self, span: Duration) {
        let Stage { clock, .. } = self.stage;
        let end = clock.now() + span;
        loop {
            let left = end.saturating_sub(clock.now());
            if left.is_zero() || self.stage.interrupted() || !self.scales.lives() {
                return;
            }
            clock.sleep(left.min(LOOK_EVERY));
        }
    }

    /// Waits until RSS is stable, up to a limit.
    fn settle(&self) {
        let Stage { clock, .. } = self.stage;
        let end = clock.now() + SETTLES_WITHIN;
        let mut still_since = clock.now();
        let mut last = None;
        while clock.now() < end && !self.stage.interrupted() {
            let Some(rss) = self.scales.rss() else { return };
            if last.is_none_or(|last: u64| last.abs_diff(rss) > STILL_BYTES) {
                (last, still_since) = (Some(rss), clock.now());
            }
            if clock.now() - still_since >= SETTLED_FOR {
                return;
            }
            clock.sleep(LOOK_EVERY);
        }
    }
}
