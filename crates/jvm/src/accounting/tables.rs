//! Reads the data about a JVM that an account needs from HotSpot's own tables, without querying the JVM or adding to
//! its memory. If its tables cannot be read, `read_vm_state` queries the JVM.

use super::allocation::Allocation;
use crate::account::Said;
use crate::kernel::mapping::Mapping;
use crate::kernel::process::page_size;
use crate::observe::addresses::{JvmAddresses, JvmRange};
use crate::observe::class_loaders::{self, ClassLoader};
use crate::observe::heap_info::Collector;
use crate::observe::hotspot::HotSpot;
use crate::observe::hotspot::classes::Field;
use crate::observe::hotspot::compiling::Compilers;
use crate::observe::hotspot::flags::Flags;
use crate::observe::hotspot::heap::{self, HeapRead};
use crate::observe::hotspot::objects::Objects;
use crate::observe::hotspot::tables::Tables;
use crate::observe::hotspot::threads::Threads;
use crate::observe::hotspot::{code, loaders, metaspace};
use crate::observe::memory::Memory;
use crate::observe::metaspace_nodes::MetaspaceNode;
use crate::observe::procfs::Process;
use crate::observe::untouched::Untouched;
use crate::observe::{Unavailable, maps, thread_stats};
use loadline_base::clock::Clock;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Maximum number of attempts at a reading if the JVM changes during it.
const TRIES: usize = 5;

/// A reader of objects in the heap.
pub type Look<T> = fn(&dyn Memory, &Tables, &Objects) -> Result<T, Unavailable>;

/// The tables of one JVM.
#[derive(Debug)]
pub struct JvmTables {
    hotspot: HotSpot,
    objects: Result<Objects, Unavailable>,
    parent: OnceCell<Field>,
}

impl JvmTables {
    /// Finds the tables, at a one-time cost of about 3 ms. Fails if the JVM has none, or its memory is not readable.
    pub fn find(process: &Process, clock: &Clock) -> Result<Self, Unavailable> {
        let maps = maps::read_of_tables(process, clock)?.value;
        let (hotspot, memory) = (HotSpot::find(process, &maps)?, Untouched::open(process, &maps)?);
        let objects =
            Flags::read(&memory, &hotspot.tables).and_then(|flags| Objects::of(&hotspot.tables, &flags, &memory));
        Ok(Self { hotspot, objects, parent: OnceCell::new() })
    }

    /// The JVM's allocation counters. Fails if it has none, or its memory is not readable.
    pub fn allocation(&self, process: &Process) -> Result<Allocation, Unavailable> {
        let HotSpot { tables, exited_allocated_at, .. } = &self.hotspot;
        Allocation::open(process, Threads::of(tables, *exited_allocated_at)?)
    }

    /// Returns how the JVM's objects are read. The error gives the name missing from its tables.
    pub fn objects(&self) -> Result<&Objects, Unavailable> {
        self.objects.as_ref().map_err(Clone::clone)
    }

    fn loaders(&self, memory: &Untouched<'_>, nodes: &[MetaspaceNode]) -> Result<Vec<ClassLoader>, Unavailable> {
        let objects = self.objects()?;
        let parent = match self.parent.get() {
            Some(parent) => parent,
            None => {
                let parent = loaders::parent(memory, objects)?;
                self.parent.get_or_init(|| parent)
            }
        };
        loaders::all(memory, &self.hotspot, (objects, parent), nodes)
    }

    /// Returns the reader of the JIT compilers' current work.
    pub fn compilers(&self) -> Result<Compilers, Unavailable> {
        Compilers::of(&self.hotspot.tables)
    }

    /// The words around the thread-local variables of each compiler thread; none if there are no such threads.
    pub fn compiler_words(&self, process: &Process, clock: &Clock) -> Option<Vec<Vec<u64>>> {
        let mut compilers = self.compilers().ok()?;
        let maps = maps::read_of_tables(process, clock).ok()?.value;
        let memory = Untouched::open(process, &maps).ok()?;
        let names: BTreeMap<u32, String> =
            thread_stats::all(process).ok()?.into_iter().map(|thread| (thread.ns_tid, thread.name)).collect();
        compilers.look(&memory, |tid| names.get(&tid).cloned());
        Some(compilers.thread_words(&memory)).filter(|words| !words.is_empty())
    }

    /// Calls one of the readers of objects, such as `statics::collections` or `thread_names::read`. Fails if the
    /// objects, or the path to them, cannot be read.
    pub fn look<T>(&self, process: &Process, clock: &Clock, read: Look<T>) -> Result<T, Unavailable> {
        let maps = maps::read_of_tables(process, clock)?.value;
        read(&Untouched::open(process, &maps)?, &self.hotspot.tables, self.objects()?)
    }

    /// Every flag in effect. Fails if this JVM stores its flags differently.
    pub fn flags(&self, process: &Process, clock: &Clock) -> Result<Flags, Unavailable> {
        let maps = maps::read_of_tables(process, clock)?.value;
        Flags::read(&Untouched::open(process, &maps)?, &self.hotspot.tables)
    }

    /// The collector table that no diagnostic command reports, for a JVM that answered all other queries.
    pub fn region_table(&self, process: &Process, clock: &Clock) -> Option<JvmRange> {
        let maps = maps::read(process, clock).ok()?.value;
        let memory = Untouched::open(process, &maps).ok()?;
        let flags = Flags::read(&memory, &self.hotspot.tables).ok()?;
        heap::read(&memory, &self.hotspot.tables, &flags, &maps).ok()?.addresses.ranges.pop()
    }

    /// Reads everything, and starts over if the JVM was changing it. Fails if not even the JVM's mappings or flags can
    /// be read.
    pub fn read(&self, process: &Process, clock: &Clock) -> Result<TablesRead, Unavailable> {
        let mut read = self.once(process, clock)?;
        for _ in 1..TRIES {
            if !read.missing.as_ref().is_some_and(|why| why.is_early) {
                break;
            }
            read = self.once(process, clock)?;
        }
        Ok(read)
    }

    fn once(&self, process: &Process, clock: &Clock) -> Result<TablesRead, Unavailable> {
        let maps = maps::read(process, clock)?.value;
        let (memory, tables) = (Untouched::open(process, &maps)?, &self.hotspot.tables);
        let (flags, mut missing) = (Flags::read(&memory, tables)?, None);
        let mut note = |why: Unavailable| missing = missing.take().or(Some(why));
        let heap = heap::read(&memory, tables, &flags, &maps).map_err(&mut note).ok();
        let code = code::heaps(&memory, tables).map_err(&mut note).unwrap_or_default();
        let (code, full): (Vec<_>, Vec<_>) = code.into_iter().unzip();
        let nodes = metaspace::nodes(&memory, self.hotspot.metaspace_at).map_err(&mut note).unwrap_or_default();
        let loaders = self.loaders(&memory, &nodes).map_err(&mut note).ok();
        let unloadable = loaders.as_ref().map(|loaders| class_loaders::leaves(loaders));
        let (info, code_heaps) = (addresses(heap.as_ref(), code, &maps), full.into_iter().flatten().collect());
        let humongous = heap.as_ref().and_then(|heap| heap.humongous);
        let heap = heap.map(|heap| heap.info);
        let said = Said { info, nodes, unloadable, loaders, code_heaps, heap, humongous, ..Said::default() };
        Ok(TablesRead { flags, said, missing })
    }
}

/// The values that were read, and the first failure.
#[derive(Debug)]
pub struct TablesRead {
    /// Every flag in effect.
    pub flags: Flags,
    /// The ranges and figures that an account needs.
    pub said: Said,
    /// The first thing that could not be read.
    pub missing: Option<Unavailable>,
}

impl TablesRead {
    /// Whether Native Memory Tracking is on, which makes querying it worthwhile.
    pub fn tracks(&self) -> bool {
        self.flags.get("NativeMemoryTracking").is_none_or(|level| level != "off")
    }
}

/// The ranges of heap and code; `None` if neither was read.
fn addresses(heap: Option<&HeapRead>, code: Vec<JvmRange>, maps: &[Mapping]) -> Option<JvmAddresses> {
    if heap.is_none() && code.is_empty() {
        return None;
    }
    let mut addresses = heap.map(|heap| heap.addresses.clone()).unwrap_or_default();
    addresses.ranges.extend(code);
    let is_shenandoah = heap.is_some_and(|heap| heap.info.collector == Collector::Shenandoah);
    let map = addresses.heap_reserved.zip(addresses.region_size).filter(|_| is_shenandoah);
    let page = page_size().0;
    let map = map.and_then(|((_, end), region)| collection_set_map(maps, end, region.0, page));
    Some(JvmAddresses::of(addresses, map, page))
}

/// Finds the map in which Shenandoah keeps a byte per region that would fit below the end of its heap. It is at the
/// first free power of two, up to 1 GiB (`shenandoahHeap.cpp`), and is recognized by its length and by the mapping that
/// starts at this address.
fn collection_set_map(maps: &[Mapping], heap_end: u64, region: u64, page: u64) -> Option<u64> {
    let length = heap_end.checked_div(region)?.checked_next_multiple_of(page).filter(|length| *length > 0)?;
    (12..=30).map(|bit| 1u64 << bit).find(|start| {
        let from = maps.iter().skip_while(|mapping| mapping.start != *start);
        let anonymous = from.take_while(|mapping| mapping.inode == 0 && mapping.path.is_empty());
        super::end_of(*start, anonymous) == start + length
    })
}
