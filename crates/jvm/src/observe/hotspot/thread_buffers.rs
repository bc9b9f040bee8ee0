//! The direct buffers that the JDK caches per thread when it reads or writes a channel with a heap buffer:
//! `sun.nio.ch.Util.bufferCache`, a `ThreadLocal` whose value is a `BufferCache` (JDK 11–27). A buffer lives as long as
//! its thread, unless it is larger than `-Djdk.nio.maxCachedBufferSize`.
//!
//! `JavaThread` → `Thread.threadLocals`, or, since JDK 24, `Thread.holder.terminatingThreadLocals` →
//! `ThreadLocalMap.table` → `Entry.value` → `BufferCache.buffers` → `Buffer.capacity`. The class of each object is
//! verified before it is read; a thread whose objects move is skipped.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::Tables;
use super::classes::Field;
use super::objects::Objects;
use super::thread_variables::{ENTRY, LOCALS, MAP, THREAD, Variables};
use super::threads::Threads;
use serde::{Deserialize, Serialize};

/// Maximum number of buffers per thread (`Util.TEMP_BUF_POOL_SIZE` is `IOUtil.IOV_MAX`: 1,024 on Linux).
const BUFFERS_MAX: u32 = 4096;
/// Maximum number of variables in all threads.
const VARIABLES_ALL_MAX: usize = 1 << 20;

/// The thread's holder field, the holder's class, and its field with the variables that end with the thread (JDK 24 and
/// newer).
const HOLDER: (&str, &str, &str) = ("holder", "java/lang/Thread$FieldHolder", "terminatingThreadLocals");
pub(super) const CACHE: &str = "sun/nio/ch/Util$BufferCache";
pub(super) const BUFFER: &str = "java/nio/Buffer";

/// Direct buffers that the JDK caches for each thread that reads or writes channels (`sun.nio.ch.Util`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadBuffersRecord {
    /// Number of threads with such buffers.
    pub threads: u64,
    /// Number of buffers.
    pub buffers: u64,
    /// Total size.
    pub bytes: u64,
    /// Size of the largest buffer.
    pub largest_bytes: u64,
}

/// The fields on the path, and the class that keeps buffers.
struct Way<'a> {
    memory: &'a dyn Memory,
    objects: &'a Objects,
    variables: Variables<'a>,
    cache: u64,
    locals: Field,
    /// The holder field of a thread, and the holder's field; `None` in older releases.
    ending: Option<(Field, Field)>,
    buffers: Field,
    capacity: Field,
}

/// Reads the buffers cached for all live threads; none if no thread has used such a buffer yet. Fails if this JVM does
/// not describe its threads, or stores their variables differently.
pub fn read(memory: &dyn Memory, tables: &Tables, objects: &Objects) -> Result<ThreadBuffersRecord, Unavailable> {
    let mut found = ThreadBuffersRecord::default();
    let Some(way) = Way::find(memory, objects)? else { return Ok(found) };
    let mut left = VARIABLES_ALL_MAX;
    for (_, thread) in Threads::with_objects(memory, tables, objects, usize::MAX)? {
        let buffers = way.buffers(thread, &mut left).unwrap_or_default();
        found.threads += u64::from(!buffers.is_empty());
        found.buffers += buffers.len() as u64;
        found.bytes = buffers.iter().fold(found.bytes, |sum, bytes| sum.saturating_add(*bytes));
        found.largest_bytes = buffers.into_iter().fold(found.largest_bytes, u64::max);
    }
    Ok(found)
}

impl<'a> Way<'a> {
    /// `None` if no thread has used such a buffer: the class that keeps them is not loaded.
    fn find(memory: &'a dyn Memory, objects: &'a Objects) -> Result<Option<Self>, Unavailable> {
        let found = objects.classes().find(memory, &[THREAD, MAP, ENTRY, CACHE, BUFFER, HOLDER.1])?;
        let Ok(cache) = found.class(CACHE) else { return Ok(None) };
        Ok(Some(Self {
            memory,
            objects,
            variables: Variables::of(memory, objects, &found)?,
            cache,
            locals: found.field(THREAD, LOCALS)?,
            ending: found.field(THREAD, HOLDER.0).ok().zip(found.field(HOLDER.1, HOLDER.2).ok()),
            buffers: found.field(CACHE, "buffers")?,
            capacity: found.field(BUFFER, "capacity")?,
        }))
    }

    /// The bytes of each buffer of a thread; `None` if a reference on the path is null, or its object is being moved.
    fn buffers(&self, thread: u64, left: &mut usize) -> Option<Vec<u64>> {
        let Self { memory, objects, .. } = *self;
        let mut cache_in = |map: Option<u64>| {
            let entries = self.variables.entries(map?)?;
            *left = left.checked_sub(entries.len())?;
            let mut values = entries.into_iter().filter_map(|entry| self.variables.value(entry));
            values.find(|value| objects.class_of(memory, *value) == Some(self.cache))
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
