//! JIT compilations during which memory grew: each one that spans several samples, with its RSS growth.

use crate::observe::hotspot::compiling::{Compilers, Task};
use crate::observe::memory::ProcessMemory;
use crate::observe::procfs::Process;
use crate::observe::thread_stats;
use crate::record::CompilationRecord;
use loadline_base::order::Order as _;
use std::collections::BTreeMap;

/// Any compilation can grow memory by less.
const GROWTH_LEAST: u64 = 4 << 20;
/// The number of compilations to keep: those with the largest growth.
const KEPT_MAX: usize = 10;

impl RunningCompilation {
    fn growth_bytes(&self) -> u64 {
        self.rss_most.saturating_sub(self.rss_before)
    }
}

pub(super) struct Compilations {
    compilers: Compilers,
    memory: ProcessMemory,
    running: Vec<RunningCompilation>,
    ended: Vec<CompilationRecord>,
    /// RSS at the last sample, before newer compilations began.
    rss_before: u64,
}

struct RunningCompilation {
    task: Task,
    name: Option<String>,
    began_s: f64,
    last_s: f64,
    rss_before: u64,
    rss_most: u64,
}

impl Compilations {
    /// `None` if memory is unreadable.
    pub(super) fn open(process: &Process, compilers: Compilers) -> Option<Self> {
        let memory = ProcessMemory::open(process).ok()?;
        Some(Self { compilers, memory, running: Vec::new(), ended: Vec::new(), rss_before: u64::MAX })
    }

    /// Updates the list of compiler threads.
    pub(super) fn look(&mut self, process: &Process) {
        let names: std::cell::OnceCell<BTreeMap<u32, String>> = std::cell::OnceCell::new();
        let name = |tid: u32| {
            let all = || thread_stats::all(process).unwrap_or_default();
            names.get_or_init(|| all().into_iter().map(|of| (of.ns_tid, of.name)).collect()).get(&tid).cloned()
        };
        self.compilers.look(&self.memory, name);
    }

    pub(super) fn sample(&mut self, at_s: f64, rss: u64) {
        let tasks = self.compilers.tasks(&self.memory);
        let (going_on, over) = std::mem::take(&mut self.running)
            .into_iter()
            .partition(|running: &RunningCompilation| tasks.contains(&running.task));
        self.running = going_on;
        over.into_iter().for_each(|running| self.end(running));
        let rss_before = self.rss_before.min(rss);
        for task in tasks {
            if !self.running.iter().any(|running| running.task == task) {
                let begun =
                    RunningCompilation { task, name: None, began_s: at_s, last_s: at_s, rss_before, rss_most: rss };
                self.running.push(begun);
            }
        }
        for running in &mut self.running {
            (running.last_s, running.rss_most) = (at_s, running.rss_most.max(rss));
            // Most compilations are small, so their names are not read.
            if running.name.is_none() && running.growth_bytes() >= GROWTH_LEAST {
                running.name = self.compilers.name(&self.memory, running.task.method);
            }
        }
        self.rss_before = rss;
    }

    fn end(&mut self, running: RunningCompilation) {
        let rss_growth_bytes = running.growth_bytes();
        // Only compilations with significant growth have a name.
        let Some(method) = running.name else { return };
        self.ended.push(CompilationRecord {
            method,
            tier: running.task.level,
            at_s: running.began_s,
            seconds: running.last_s - running.began_s,
            rss_growth_bytes,
        });
        self.ended.largest_first(|record| record.rss_growth_bytes);
        self.ended.truncate(KEPT_MAX);
    }

    /// The compilations sorted by growth, largest first.
    pub(super) fn finish(mut self) -> Vec<CompilationRecord> {
        std::mem::take(&mut self.running).into_iter().for_each(|running| self.end(running));
        self.ended
    }
}
