//! The direct buffers that the JDK keeps for each thread that reads or writes a channel with a buffer in the heap:
//! `sun.nio.ch.Util.bufferCache`, a `ThreadLocal` whose value is a `BufferCache` (JDK 11–27). A buffer stays as long as
//! its thread unless it is larger than `-Djdk.nio.maxCachedBufferSize`.
//!
//! `JavaThread` → `Thread.threadLocals`, or from JDK 24 on `Thread.holder.terminatingThreadLocals` →
//! `ThreadLocalMap.table` → `Entry.value` → `BufferCache.buffers` → `Buffer.capacity`. Each object proves its class
//! before it is read; a thread whose objects move meanwhile is left out.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::classes::Field;
use super::objects::Objects;
use super::threads::Threads;
use super::{SOURCE, Tables};
use std::collections::HashMap;

/// A thread has some ten variables; their table grows to twice as many and more.
const VARIABLES_MAX: u32 = 1 << 16;
/// Buffers of one thread (`Util.TEMP_BUF_POOL_SIZE` is `IOUtil.IOV_MAX`: 1,024 on Linux).
const BUFFERS_MAX: u32 = 4096;
/// Variables of all threads.
const VARIABLES_ALL_MAX: usize = 1 << 20;

/// The fields of a thread's variables, and, in an object of its own, of those that end with it (JDK 24 and newer).
const LOCALS: &str = "threadLocals";
const HOLDER: (&str, &str, &str) = ("holder", "java/lang/Thread$FieldHolder", "terminatingThreadLocals");
const THREAD: &str = "java/lang/Thread";
const MAP: &str = "java/lang/ThreadLocal$ThreadLocalMap";
const ENTRY: &str = "java/lang/ThreadLocal$ThreadLocalMap$Entry";
const CACHE: &str = "sun/nio/ch/Util$BufferCache";
const BUFFER: &str = "java/nio/Buffer";
const CLASSES: [&str; 6] = [THREAD, MAP, ENTRY, CACHE, BUFFER, HOLDER.1];

/// Direct buffers that the JDK keeps for threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadBuffers {
    /// Threads that have any.
    pub threads: u64,
    /// Buffers.
    pub buffers: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest: u64,
}

/// The fields on the way, and the classes that objects must have.
struct Way<'a> {
    memory: &'a dyn Memory,
    objects: &'a Objects,
    map: u64,
    entry: u64,
    cache: u64,
    locals: Field,
    /// The field of a thread that refers to its holder, and that of the holder; `None` in older releases.
    ending: Option<(Field, Field)>,
    table: Field,
    value: Field,
    buffers: Field,
    capacity: Field,
}

/// Reads the buffers kept for all live threads. There are none if no thread has used such a buffer yet.
///
/// # Errors
/// If this JVM does not describe its threads, or keeps their variables in another way.
pub fn read(memory: &dyn Memory, tables: &Tables, objects: &Objects) -> Result<ThreadBuffers, Unavailable> {
    let mut found = ThreadBuffers::default();
    let Some(way) = Way::find(memory, objects)? else { return Ok(found) };
    let object = tables.offset(&["JavaThread::_threadObj"])?;
    let threads = Threads::of(tables, None)?.addresses(memory);
    let threads = threads.ok_or_else(|| Unavailable::new(SOURCE, "its list of threads could not be read"))?;
    let mut left = VARIABLES_ALL_MAX;
    for thread in threads {
        let buffers = thread.checked_add(object).and_then(|at| way.buffers(memory.u64(at)?, &mut left));
        let buffers = buffers.unwrap_or_default();
        found.threads += u64::from(!buffers.is_empty());
        found.buffers += buffers.len() as u64;
        found.bytes = buffers.iter().fold(found.bytes, |sum, bytes| sum.saturating_add(*bytes));
        found.largest = buffers.into_iter().fold(found.largest, u64::max);
    }
    Ok(found)
}

impl<'a> Way<'a> {
    /// `None` where no thread has used such a buffer: the class that keeps them is not loaded.
    fn find(memory: &'a dyn Memory, objects: &'a Objects) -> Result<Option<Self>, Unavailable> {
        let classes = objects.classes();
        let mut known = HashMap::new();
        classes.walk(memory, |_, class| {
            let Some(name) = classes.name_of(memory, class) else { return };
            if let Some(wanted) = CLASSES.into_iter().find(|wanted| name.is(memory, wanted)) {
                known.entry(wanted).or_insert(class);
            }
        })?;
        if !known.contains_key(CACHE) {
            return Ok(None);
        }
        let class = |name: &'static str| {
            known.get(name).copied().ok_or_else(|| Unavailable::new(SOURCE, format!("there is no class `{name}`")))
        };
        let field = |of: &'static str, name: &str| {
            let field = classes.field(memory, class(of)?, name);
            field.ok_or_else(|| Unavailable::new(SOURCE, format!("`{of}` has no field `{name}`")))
        };
        Ok(Some(Self {
            memory,
            objects,
            map: class(MAP)?,
            entry: class(ENTRY)?,
            cache: class(CACHE)?,
            locals: field(THREAD, LOCALS)?,
            ending: field(THREAD, HOLDER.0).ok().zip(field(HOLDER.1, HOLDER.2).ok()),
            table: field(MAP, "table")?,
            value: field(ENTRY, "value")?,
            buffers: field(CACHE, "buffers")?,
            capacity: field(BUFFER, "capacity")?,
        }))
    }

    /// The bytes of each buffer of a thread; `None` where there is no object of it, or it is being moved.
    fn buffers(&self, handle: u64, left: &mut usize) -> Option<Vec<u64>> {
        let Self { memory, objects, .. } = *self;
        let is = |object: u64, class: u64| objects.class_of(memory, object) == Some(class);
        let thread = objects.of_handle(memory, handle)?;
        let mut cache_in = |map: Option<u64>| {
            let map = map.filter(|map| is(*map, self.map))?;
            let entries = objects.elements(memory, objects.follow(memory, map, &self.table)?, VARIABLES_MAX)?;
            *left = left.checked_sub(entries.len())?;
            let values = entries.into_iter().filter(|entry| is(*entry, self.entry));
            let mut caches = values.filter_map(|entry| objects.follow(memory, entry, &self.value));
            caches.find(|value| is(*value, self.cache))
        };
        let ending = self
            .ending
            .as_ref()
            .and_then(|(holder, locals)| objects.follow(memory, objects.follow(memory, thread, holder)?, locals));
        let cache = cache_in(ending).or_else(|| cache_in(objects.follow(memory, thread, &self.locals)))?;
        let buffers = objects.elements(memory, objects.follow(memory, cache, &self.buffers)?, BUFFERS_MAX)?;
        let capacity = |buffer: u64| memory.u32(buffer.checked_add(self.capacity.offset)?).map(u64::from);
        buffers.into_iter().map(capacity).collect()
    }
}
