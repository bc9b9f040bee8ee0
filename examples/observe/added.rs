//! RSS of the JVM: before anything, after a while untouched, after attaching, after sampling, after weighings.

use super::Costs;
use loadline::clock::Clock;
use loadline::observe::attach::Attach;
use loadline::observe::hsperfdata::HsPerf;
use loadline::observe::procfs::Process;
use loadline::observe::{Unavailable, smaps};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

/// Long enough for an idle JVM to have settled between steps.
const UNTOUCHED: Duration = Duration::from_secs(10);
/// 10 Hz for ten seconds.
const SAMPLES: u32 = 100;
const SAMPLE_PERIOD: Duration = Duration::from_millis(100);
/// As many marks as a trial has.
const MARKS: u32 = 5;
/// What a trial asks, at its first mark and at each.
const QUESTIONS: [&str; 5] = ["VM.version", "VM.flags", "GC.heap_info", "Compiler.codecache", "VM.metaspace vslist"];

pub(super) fn observe(pid: u32) -> Result<Value, Unavailable> {
    let clock = Clock::start();
    let process = Process::open(pid)?;
    let rss_kib = || process.statm(&clock).map(|statm| statm.value.resident.0 >> 10);
    let mut costs = Costs::default();
    let first = rss_kib()?;
    sleep(UNTOUCHED);
    let untouched = rss_kib()?;
    let attached = Attach::connect(&process, &clock)?;
    let after_attach = rss_kib()?;
    let mut counters = HsPerf::open(&process, &clock)?;
    for _ in 0..SAMPLES {
        costs.add("statm", process.statm(&clock)?.cost_ns);
        costs.add("status", process.status(&clock)?.cost_ns);
        costs.add("hsperfdata", counters.sample(&clock)?.cost_ns);
        sleep(SAMPLE_PERIOD);
    }
    let after_samples = rss_kib()?;
    for _ in 0..MARKS {
        costs.add("smaps", smaps::read(&process, &clock)?.cost_ns);
        for command in QUESTIONS {
            costs.add(command, attached.value.jcmd(command)?.cost_ns);
        }
        sleep(SAMPLE_PERIOD);
    }
    let after_marks = rss_kib()?;
    Ok(json!({
        "rss_kib": {"first": first, "untouched": untouched, "after_attach": after_attach,
            "after_samples": after_samples, "after_marks": after_marks},
        "added_kib": after_marks as i64 - untouched as i64,
        "handshake_ms": attached.cost_ns as f64 / 1e6,
        "median_us": costs.medians(),
    }))
}
