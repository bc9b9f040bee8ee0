//! What reading HotSpot's own tables costs, for `bench/inside.sh`: `inside PID` prints one JSON object, times in µs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's own output")]

use loadline::clock::Clock;
use loadline::observe::hotspot::HotSpot;
use loadline::observe::hotspot::direct::DirectCounters;
use loadline::observe::hotspot::flags::Flags;
use loadline::observe::hotspot::objects::Objects;
use loadline::observe::hotspot::threads::Threads;
use loadline::observe::hotspot::{code, heap, loaders, metaspace};
use loadline::observe::memory::ProcessMemory;
use loadline::observe::procfs::Process;
use loadline::observe::untouched::Untouched;
use loadline::observe::{Unavailable, maps};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Odd, so that the median is one of them.
const READINGS: usize = 101;

fn main() -> ExitCode {
    let pid = std::env::args().nth(1).and_then(|pid| pid.parse().ok());
    let Some(pid) = pid else {
        eprintln!("usage: inside PID");
        return ExitCode::FAILURE;
    };
    match inside(pid) {
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

/// The median time of one reading.
fn median_us<T>(mut read: impl FnMut() -> Result<T, Unavailable>) -> Result<Value, Unavailable> {
    let clock = Clock::start();
    let mut times = Vec::new();
    for _ in 0..READINGS {
        let begin_ns = clock.now_ns();
        read()?;
        times.push(clock.now_ns() - begin_ns);
    }
    times.sort_unstable();
    Ok(json!((times[READINGS / 2] / 100) as f64 / 10.0))
}

fn inside(pid: u32) -> Result<Value, Unavailable> {
    let clock = Clock::start();
    let process = Process::open(pid)?;
    let mut found = Map::new();
    let mut add = |name: &str, value: Value| found.insert(name.to_owned(), value);
    let maps = maps::read(&process, &clock)?.value;
    add("maps", median_us(|| maps::read(&process, &clock))?);
    add("find", median_us(|| HotSpot::find(&process, &maps))?);
    let hotspot = HotSpot::find(&process, &maps)?;
    let tables = &hotspot.tables;
    let memory = || Untouched::open(&process, &maps);
    let flags = Flags::read(&memory()?, tables)?;
    add("flags", median_us(|| Flags::read(&memory()?, tables))?);
    let mut threads = Threads::of(tables, hotspot.exited_allocated_at)?.reader();
    let direct = ProcessMemory::open(&process)?;
    add("threads", json!(threads.by_thread(&direct)?.len()));
    add("allocated", median_us(|| threads.read(&direct))?);
    let objects = Objects::of(tables, &flags, &memory()?)?;
    let mut classes = 0;
    objects.classes().walk(&memory()?, |_, _| classes += 1)?;
    add("classes", json!(classes));
    add("walk", median_us(|| objects.classes().walk(&memory()?, |_, _| {}))?);
    add("direct_first", median_us(|| DirectCounters::of(objects.clone()).look(&memory()?))?);
    let mut counters = DirectCounters::of(objects.clone());
    add("direct_look", median_us(|| counters.look(&memory()?))?);
    add("direct", median_us(|| counters.read(&direct))?);
    add("heap", median_us(|| heap::read(&memory()?, tables, &flags, &maps))?);
    add("code", median_us(|| code::heaps(&memory()?, tables))?);
    let nodes = metaspace::nodes(&memory()?, hotspot.metaspace_at)?;
    add("metaspace", median_us(|| metaspace::nodes(&memory()?, hotspot.metaspace_at))?);
    let parent = loaders::parent(&memory()?, &objects)?;
    add("loaders", median_us(|| loaders::all(&memory()?, &hotspot, (&objects, &parent), &nodes))?);
    Ok(Value::Object(found))
}
