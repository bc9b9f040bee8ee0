//! What reading an idle JVM costs it and us, for `bench/observer.sh`: `observe PID` prints one JSON object.
//! RSS of the JVM: before anything, after a while untouched, after attaching, after sampling, after weighings.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's own output")]

use loadline::clock::Clock;
use loadline::observe::attach::Attach;
use loadline::observe::hsperfdata::HsPerf;
use loadline::observe::procfs::Process;
use loadline::observe::{Read, Unavailable, smaps};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
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

fn main() -> ExitCode {
    let pid = std::env::args().nth(1).and_then(|pid| pid.parse().ok());
    let Some(pid) = pid else {
        eprintln!("usage: observe PID");
        return ExitCode::FAILURE;
    };
    match observe(pid) {
        Ok(found) => {
            println!("{found}");
            ExitCode::SUCCESS
        }
        Err(cause) => {
            eprintln!("error: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn observe(pid: u32) -> Result<Value, Unavailable> {
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
        costs.add("statm", process.statm(&clock))?;
        costs.add("status", process.status(&clock))?;
        costs.add("hsperfdata", counters.sample(&clock))?;
        sleep(SAMPLE_PERIOD);
    }
    let after_samples = rss_kib()?;
    for _ in 0..MARKS {
        costs.add("smaps", smaps::read(&process, &clock))?;
        for command in QUESTIONS {
            costs.add(command, attached.value.jcmd(command))?;
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

/// What each source cost, in the order of first use.
#[derive(Default)]
struct Costs(Vec<(&'static str, Vec<u64>)>);

impl Costs {
    fn add<T>(&mut self, name: &'static str, read: Read<T>) -> Result<(), Unavailable> {
        let cost_ns = read?.cost_ns;
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, costs)) => costs.push(cost_ns),
            None => self.0.push((name, vec![cost_ns])),
        }
        Ok(())
    }

    fn medians(mut self) -> Value {
        let median = |costs: &mut Vec<u64>| {
            costs.sort_unstable();
            costs[costs.len() / 2] as f64 / 1e3
        };
        Value::Object(
            self.0.iter_mut().map(|(name, costs)| ((*name).to_owned(), json!(median(costs)))).collect::<Map<_, _>>(),
        )
    }
}
