//! A mark of a trial: one full weighing at a moment. Before the last ones, the JVM is asked to change what is weighed.

use super::conductor::Trialling;
use super::direct::{DirectMemory, Gate};
use super::event::Event;
use super::weigh::{AskNmt, Moment, Weigh};
use crate::doubt::Doubt;
use crate::scenario::{MarkPoint, Nmt};
use std::time::Duration;

/// G1 gives memory back in the background, the first time after 100 ms (`G1UncommitRegionTask`, JDK 16 and newer).
const SETTLED_FOR: Duration = Duration::from_millis(400);
/// A heap that is still given back after this is weighed as it is.
const SETTLES_WITHIN: Duration = Duration::from_secs(3);
/// Between two looks at RSS.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Threads come and go; less than this is no change.
const STILL_BYTES: u64 = 256 << 10;

impl Trialling<'_> {
    /// Weighs the subject if this mark was asked for.
    pub(super) fn mark(&mut self, point: MarkPoint) {
        if !self.setup.scenario.marks.contains(&point) {
            return;
        }
        let gate = self.direct.as_ref().map(DirectMemory::gate);
        let _quiet = gate.as_ref().map(Gate::close);
        let mut failed = Vec::new();
        if !self.prepare(point, &mut failed) {
            return self.doubt_reads(point, failed);
        }
        let collected = self.trial.marks.last().is_some_and(|mark| mark.name == MarkPoint::Collected.word());
        let live = point == MarkPoint::Collected || point == MarkPoint::Trimmed && collected;
        let weigh = Weigh {
            moment: if live { Moment::Collected } else { Moment::Running },
            nmt: if self.setup.configuration.nmt == Nmt::Summary { AskNmt::WithGrowth } else { AskNmt::No },
            stop: true,
            regions: false,
        };
        let at_s = self.seconds(self.setup.clock.now_ns());
        let weighed = weigh.take(&mut self.watched, point.word(), &mut self.trial.observer, self.doubts);
        failed.extend(weighed.failed);
        self.allocator = weighed.allocator.or(self.allocator.take());
        self.trial.rss_bytes_peak = self.trial.rss_bytes_peak.max(weighed.rss_bytes_peak);
        let mut mark = weighed.mark;
        mark.at_s = at_s;
        if self.watched.agent.is_some() {
            // Last: what the agent allocates is not in the weight of this mark.
            mark.netty = self.watched.survey().map_err(|why| failed.push(why)).ok();
        }
        if mark.rss_bytes > 0 {
            (self.emit)(Event::Marked(&mark));
            self.trial.marks.push(mark);
        }
        self.doubt_reads(point, failed);
    }

    fn doubt_reads(&mut self, point: MarkPoint, failed: Vec<String>) {
        let doubt = |why| Doubt::ReadFailed { mark: point.word().to_owned(), why };
        self.doubts.extend(failed.into_iter().map(doubt));
    }

    /// What a mark needs to be done before it; false where it cannot be.
    fn prepare(&mut self, point: MarkPoint, failed: &mut Vec<String>) -> bool {
        let (command, what) = match point {
            MarkPoint::Collected => ("GC.run", "no full GC"),
            MarkPoint::Trimmed => ("System.trim_native_heap", "no native trim"),
            _ => return true,
        };
        self.watched.attach(&mut self.trial.observer, self.doubts);
        if let Some(why) = self.watched.collects_not.filter(|_| point == MarkPoint::Collected) {
            failed.push(format!("{what}: {why}"));
            return false;
        }
        match self.watched.ask(command) {
            Some(Ok(_)) => {
                self.settle();
                true
            }
            Some(Err(why)) => {
                failed.push(format!("{what}: {why}"));
                false
            }
            None => {
                failed.push(format!("{what}, because the JVM cannot be asked for one"));
                false
            }
        }
    }

    /// Waits until RSS stands still, within bounds.
    fn settle(&self) {
        let clock = self.setup.clock;
        let end_ns = clock.now_ns() + SETTLES_WITHIN.as_nanos() as u64;
        let mut still_since_ns = clock.now_ns();
        let mut last = None;
        while clock.now_ns() < end_ns && !self.setup.interrupted() {
            let Ok(statm) = self.watched.process.statm(&clock) else { return };
            let rss = statm.value.resident.0;
            if last.is_none_or(|last: u64| last.abs_diff(rss) > STILL_BYTES) {
                (last, still_since_ns) = (Some(rss), clock.now_ns());
            }
            if clock.now_ns() - still_since_ns >= SETTLED_FOR.as_nanos() as u64 {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
