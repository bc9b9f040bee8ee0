//! A mark of a trial: one full weighing at a moment. Before the last ones, the JVM is asked to change what is weighed.

use super::conductor::Trialling;
use super::event::Event;
use crate::doubt::Doubt;
use crate::observe::heap_info::HeapInfo;
use crate::scenario::{Collect, Look, MarkPoint, Nmt, Phase, PhaseMark};
use crate::weigh::{AskNmt, DirectMemory, Gate, Moment, Watched, Weigh};
use std::collections::BTreeMap;
use std::time::Duration;

/// G1 gives memory back in the background, the first time after 100 ms (`G1UncommitRegionTask`, JDK 16 and newer).
const SETTLED_FOR: Duration = Duration::from_millis(400);
/// A heap that is still given back after this is weighed as it is.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);
/// What a collection finds unreachable, cleaners free on a thread of their own; the next collection shows it.
const BETWEEN_COLLECTIONS: Duration = Duration::from_millis(100);
/// Between two looks at RSS.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Threads come and go; less than this is no change.
const STILL_BYTES: u64 = 256 << 10;

/// What was done before a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prepared {
    /// Nothing that tells what of the heap is reachable.
    AsItIs,
    /// A full collection; what the heap held right after it, where the JVM said so. A server is never quite still: by
    /// the time its pages are read there is garbage again.
    Collected {
        live_bytes: Option<u64>,
    },
    Trimmed,
}

/// What the JVM is asked to do before a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Collect(Collect),
    Trim,
}

impl Trialling<'_> {
    /// Weighs the subject if this mark was asked for.
    pub(super) fn mark(&mut self, point: MarkPoint) {
        if self.plan.look == Look::Outside || !self.plan.marks.contains(&point) {
            return;
        }
        let before = match point {
            MarkPoint::Collected => Before::Collect(self.plan.collect),
            MarkPoint::Trimmed => Before::Trim,
            MarkPoint::Start | MarkPoint::Warm | MarkPoint::Loaded | MarkPoint::Rested => Before::Nothing,
        };
        self.mark_after(point.word(), before);
    }

    /// Weighs the subject if this phase, which has ended, ends in a mark of its name.
    pub(super) fn mark_of(&mut self, phase: &Phase) {
        match phase.mark {
            _ if self.plan.look == Look::Outside => {}
            PhaseMark::None => {}
            PhaseMark::AsItIs => self.mark_after(&phase.name, Before::Nothing),
            PhaseMark::Collected => self.mark_after(&phase.name, Before::Collect(self.plan.collect)),
        }
    }

    /// Weighs the subject at a marker of its own. Where it cannot be collected, it is weighed as it is.
    pub(super) fn mark_at(&mut self, name: &str, collect: Option<Collect>, counters: BTreeMap<String, f64>) {
        if self.plan.look == Look::Outside {
            return;
        }
        let gate = self.direct.as_ref().map(DirectMemory::gate);
        let _quiet = gate.as_ref().map(Gate::close);
        let mut failed = Vec::new();
        let collected = collect.and_then(|collect| self.prepare(Before::Collect(collect), &mut failed));
        self.weigh_as(name, collected.unwrap_or(Prepared::AsItIs), counters, failed);
    }

    /// A mark that is none where what belongs before it cannot be done.
    fn mark_after(&mut self, name: &str, before: Before) {
        let gate = self.direct.as_ref().map(DirectMemory::gate);
        let _quiet = gate.as_ref().map(Gate::close);
        let mut failed = Vec::new();
        match self.prepare(before, &mut failed) {
            Some(prepared) => self.weigh_as(name, prepared, BTreeMap::new(), failed),
            None => self.doubt_reads(name, failed),
        }
    }

    fn weigh_as(&mut self, name: &str, prepared: Prepared, counters: BTreeMap<String, f64>, mut failed: Vec<String>) {
        let after_collected = || self.trial.marks.last().is_some_and(|mark| mark.name == MarkPoint::Collected.word());
        let live = match prepared {
            Prepared::AsItIs => false,
            Prepared::Collected { .. } => true,
            Prepared::Trimmed => after_collected(),
        };
        let weigh = Weigh {
            moment: if live { Moment::Collected } else { Moment::Running },
            nmt: if self.plan.configuration.nmt == Nmt::Summary { AskNmt::WithGrowth } else { AskNmt::No },
            stop: true,
            regions: false,
        };
        let at_s = self.seconds(self.tools.clock.now_ns());
        let weighed = self.weigh(weigh, name);
        failed.extend(weighed.failed);
        self.allocator = weighed.allocator.or(self.allocator.take());
        self.trial.rss_bytes_peak = self.trial.rss_bytes_peak.max(weighed.rss_bytes_peak);
        let mut mark = weighed.mark;
        mark.at_s = at_s;
        mark.counters = counters;
        if let Prepared::Collected { live_bytes: Some(bytes) } = prepared {
            mark.heap.live_bytes = Some(bytes);
        }
        if self.watched.agent.is_some() {
            // Last: what the agent allocates is not in the weight of this mark.
            mark.netty = self.watched.survey().map_err(|why| failed.push(why)).ok();
        }
        if mark.rss_bytes > 0 {
            self.sink.take(&Event::Marked(&mark));
            self.trial.marks.push(mark);
        }
        self.doubt_reads(name, failed);
    }

    fn doubt_reads(&mut self, mark: &str, failed: Vec<String>) {
        let doubt = |why| Doubt::ReadFailed { mark: mark.to_owned(), why };
        self.doubts.extend(failed.into_iter().map(doubt));
    }

    /// What a mark needs to be done before it; `None` where it cannot be.
    fn prepare(&mut self, before: Before, failed: &mut Vec<String>) -> Option<Prepared> {
        let (command, what, times) = match before {
            Before::Nothing => return Some(Prepared::AsItIs),
            Before::Collect(collect) => ("GC.run", "no full GC", collect.times),
            Before::Trim => ("System.trim_native_heap", "no native trim", 1),
        };
        self.watched.attach(&mut self.trial.observer, self.doubts);
        if let Some(why) = self.watched.collects_not.filter(|_| before != Before::Trim) {
            failed.push(format!("{what}: {why}"));
            return None;
        }
        for time in 0..times {
            if time > 0 {
                self.wait(BETWEEN_COLLECTIONS);
            }
            match self.watched.ask(command) {
                Some(Ok(_)) => {
                    if let Some(others) = &mut self.others {
                        others.tell(command, self.doubts, failed);
                    }
                }
                Some(Err(why)) => {
                    failed.push(format!("{what}: {why}"));
                    return None;
                }
                None => {
                    failed.push(format!("{what}, because the JVM cannot be asked for one"));
                    return None;
                }
            }
        }
        // Of several processes each has a heap of its own; they are asked when they are weighed.
        let one = self.others.is_none() && before != Before::Trim;
        let live_bytes = one.then(|| heap_used(&self.watched)).flatten();
        match before {
            Before::Collect(Collect { settle: Some(span), .. }) => self.wait(span.0),
            _ => self.settle(),
        }
        Some(if before == Before::Trim { Prepared::Trimmed } else { Prepared::Collected { live_bytes } })
    }

    /// Lets time pass, unless the user or the subject's death ends it.
    fn wait(&self, span: Duration) {
        let end = self.tools.clock.now() + span;
        loop {
            let left = end.saturating_sub(self.tools.clock.now());
            if left.is_zero() || self.tools.interrupted() || !self.watched.lives() {
                return;
            }
            self.tools.clock.sleep(left.min(LOOK_EVERY));
        }
    }

    /// Waits until RSS stands still, within bounds.
    fn settle(&self) {
        let clock = self.tools.clock;
        let end_ns = clock.now_ns() + SETTLES_WITHIN.as_nanos() as u64;
        let mut still_since_ns = clock.now_ns();
        let mut last = None;
        while clock.now_ns() < end_ns && !self.tools.interrupted() {
            let Ok(statm) = self.watched.process.statm(&clock) else { return };
            let rss = statm.value.resident.0;
            if last.is_none_or(|last: u64| last.abs_diff(rss) > STILL_BYTES) {
                (last, still_since_ns) = (Some(rss), clock.now_ns());
            }
            if clock.now_ns() - still_since_ns >= SETTLED_FOR.as_nanos() as u64 {
                return;
            }
            clock.sleep(LOOK_EVERY);
        }
    }
}

/// What the heap holds now, live or not; `None` where the JVM does not say it.
fn heap_used(watched: &Watched) -> Option<u64> {
    let info = HeapInfo::parse(&watched.ask("GC.heap_info")?.ok()?).ok()?;
    Some(info.used.0)
}
