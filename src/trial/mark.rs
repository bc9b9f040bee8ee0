//! A mark: one full weighing at a moment. What does not touch the JVM is read first, then what asks it.

use super::conductor::Trialling;
use super::event::Event;
use super::watched::Watched;
use crate::doubt::Doubt;
use crate::observe::heap_info::HeapInfo;
use crate::observe::nmt::{Category, NativeMemory};
use crate::observe::smaps;
use crate::record::{Heap, Mark, NmtCategory, NmtRecord};
use crate::scenario::{MarkPoint, Nmt};
use crate::units::Growth;

/// Reads that failed at a mark, in words.
type Failed = Vec<String>;

impl Trialling<'_> {
    /// Weighs the subject if this mark was asked for.
    pub(super) fn mark(&mut self, point: MarkPoint) {
        if !self.setup.scenario.marks.contains(&point) {
            return;
        }
        let mut failed = Failed::new();
        if point == MarkPoint::Collected && !self.collect(&mut failed) {
            return self.doubt_reads(point, failed);
        }
        let begin_ns = self.setup.clock.now_ns();
        let mut mark = Mark { name: point.word().to_owned(), at_s: self.seconds(begin_ns), ..Mark::default() };
        self.weigh_from_outside(&mut mark, &mut failed);
        self.watched.attach(&mut self.trial.observer, self.doubts);
        mark.heap = heap(&mut self.watched, point, &mut failed);
        if self.setup.configuration.nmt == Nmt::Summary {
            mark.nmt = native_memory(&mut self.watched, &mut failed);
        }
        mark.took_ms = (self.setup.clock.now_ns() - begin_ns) as f64 / 1e6;
        if mark.rss_bytes > 0 {
            (self.emit)(Event::Marked(&mark));
            self.trial.marks.push(mark);
        }
        self.doubt_reads(point, failed);
    }

    fn doubt_reads(&mut self, point: MarkPoint, failed: Failed) {
        let doubt = |why| Doubt::ReadFailed { mark: point.word().to_owned(), why };
        self.doubts.extend(failed.into_iter().map(doubt));
    }

    /// A full collection; false where the JVM cannot be asked for one.
    fn collect(&mut self, failed: &mut Failed) -> bool {
        self.watched.attach(&mut self.trial.observer, self.doubts);
        if let Some(why) = self.watched.collects_not {
            failed.push(format!("no full GC: {why}"));
            return false;
        }
        match self.watched.ask("GC.run") {
            Some(Ok(_)) => true,
            Some(Err(why)) => {
                failed.push(format!("no full GC: {why}"));
                false
            }
            None => {
                failed.push("no full GC, because the JVM cannot be asked for one".to_owned());
                false
            }
        }
    }

    fn weigh_from_outside(&mut self, mark: &mut Mark, failed: &mut Failed) {
        let (process, clock) = (&self.watched.process, &self.setup.clock);
        match process.status(clock) {
            Ok(status) => {
                let status = status.value;
                mark.rss_bytes = status.rss.0;
                mark.anon_bytes = Some(status.rss_anon.0);
                mark.file_bytes = Some(status.rss_file.0 + status.rss_shmem.0);
                mark.swap_bytes = Some(status.swap.0);
                mark.threads = Some(status.threads);
                self.trial.rss_bytes_peak = self.trial.rss_bytes_peak.max(Some(status.rss_peak.0));
            }
            Err(cause) => failed.push(cause.to_string()),
        }
        match smaps::read(process, clock) {
            Ok(smaps) => {
                // `smaps` counts pages; the kernel's running counters behind `status` may lag by some pages a thread.
                let total = smaps.value.total();
                mark.rss_bytes = total.rss.0;
                mark.pss_bytes = Some(total.pss.0);
                self.allocator = Some(smaps.value.allocator().name().to_owned());
            }
            Err(cause) => failed.push(cause.to_string()),
        }
        let charge = self.watched.cgroup.as_ref().and_then(|cgroup| cgroup.usage(clock).ok());
        mark.charge_bytes = charge.map(|usage| usage.value.0);
    }
}

/// `GC.heap_info` is of this moment; the counters are as of the last collection and stand in where it is missing.
fn heap(watched: &mut Watched, point: MarkPoint, failed: &mut Failed) -> Heap {
    let asked = watched.ask("GC.heap_info").and_then(|reply| {
        let parsed = reply.and_then(|text| HeapInfo::parse(&text).map_err(|cause| cause.to_string()));
        parsed.map_err(|why| failed.push(why)).ok()
    });
    if let Some(info) = asked {
        let used = Some(info.used.0);
        let live_bytes = if point == MarkPoint::Collected { used } else { None };
        return Heap { used_bytes: used, committed_bytes: Some(info.committed.0), live_bytes };
    }
    let sample = watched.counters.as_mut().and_then(|counters| counters.sample(&watched.clock).ok());
    let sample = sample.map(|reading| reading.value);
    Heap {
        used_bytes: sample.map(|sample| sample.heap_used.0),
        committed_bytes: sample.map(|sample| sample.heap_committed.0),
        live_bytes: None,
    }
}

/// The first mark sets the JVM's own baseline; later marks show the growth since.
fn native_memory(watched: &mut Watched, failed: &mut Failed) -> Option<NmtRecord> {
    let command = match watched.baseline {
        true => "VM.native_memory summary.diff scale=KB",
        false => "VM.native_memory summary scale=KB",
    };
    let mut ask = |command: &str| watched.ask(command)?.map_err(|why| failed.push(why)).ok();
    let text = ask(command)?;
    let since_baseline = watched.baseline;
    let baseline = watched.baseline || ask("VM.native_memory baseline").is_some();
    watched.baseline = baseline;
    match NativeMemory::parse(&text) {
        Ok(memory) => Some(record(&memory, since_baseline)),
        Err(cause) => {
            failed.push(cause.to_string());
            None
        }
    }
}

/// The reply as it is recorded. A difference that the JVM leaves out is none, which is 0 once there is a baseline.
fn record(memory: &NativeMemory, since_baseline: bool) -> NmtRecord {
    let growth = |growth: Option<Growth>| growth.map(|growth| growth.0).or(since_baseline.then_some(0));
    let category = |category: &Category| NmtCategory {
        name: category.name.clone(),
        committed_bytes: category.amount.committed.0,
        reserved_bytes: category.amount.reserved.0,
        growth_bytes: growth(category.amount.committed_growth),
    };
    NmtRecord {
        total_committed_bytes: memory.total.committed.0,
        total_reserved_bytes: memory.total.reserved.0,
        total_growth_bytes: growth(memory.total.committed_growth),
        categories: memory.categories.iter().map(category).collect(),
    }
}
