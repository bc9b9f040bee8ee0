//! What reading HotSpot's own tables takes, in microseconds, each the median of many readings.

use super::Costs;
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
use serde_json::{Value, json};

pub(super) fn observe(pid: u32) -> Result<Value, Unavailable> {
    let clock = Clock::start();
    let process = Process::open(pid)?;
    let mut costs = Costs::default();
    let maps = maps::read(&process, &clock)?.value;
    costs.read("maps", &clock, || maps::read(&process, &clock))?;
    costs.read("find", &clock, || HotSpot::find(&process, &maps))?;
    let hotspot = HotSpot::find(&process, &maps)?;
    let tables = &hotspot.tables;
    let memory = || Untouched::open(&process, &maps);
    let flags = Flags::read(&memory()?, tables)?;
    costs.read("flags", &clock, || Flags::read(&memory()?, tables))?;
    let mut threads = Threads::of(tables, hotspot.exited_allocated_at)?.reader();
    let direct = ProcessMemory::open(&process)?;
    let living = threads.by_thread(&direct)?.len();
    costs.read("allocated", &clock, || threads.read(&direct))?;
    let objects = Objects::of(tables, &flags, &memory()?)?;
    let mut classes = 0;
    objects.classes().walk(&memory()?, |_, _| classes += 1)?;
    costs.read("walk", &clock, || objects.classes().walk(&memory()?, |_, _| {}))?;
    costs.read("direct_first", &clock, || DirectCounters::of(objects.clone()).look(&memory()?))?;
    let mut counters = DirectCounters::of(objects.clone());
    costs.read("direct_look", &clock, || counters.look(&memory()?))?;
    costs.read("direct", &clock, || counters.read(&direct))?;
    costs.read("heap", &clock, || heap::read(&memory()?, tables, &flags, &maps))?;
    costs.read("code", &clock, || code::heaps(&memory()?, tables))?;
    let nodes = metaspace::nodes(&memory()?, hotspot.metaspace_at)?;
    costs.read("metaspace", &clock, || metaspace::nodes(&memory()?, hotspot.metaspace_at))?;
    let parent = loaders::parent(&memory()?, &objects)?;
    costs.read("loaders", &clock, || loaders::all(&memory()?, &hotspot, (&objects, &parent), &nodes))?;
    let mut found = costs.medians();
    found.extend([("threads".to_owned(), json!(living)), ("classes".to_owned(), json!(classes))]);
    Ok(Value::Object(found))
}
