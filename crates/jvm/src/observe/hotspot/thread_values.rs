//! Objects that the `ThreadLocal` variables of threads refer to, with what these lead to: held as long as the thread
//! lives, once for each thread (JDK 11–27). `JavaThread` → `Thread.threadLocals` → `ThreadLocalMap.table` →
//! `Entry.value`. A thread whose objects move meanwhile is left out.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::Tables;
use super::objects::Objects;
use super::reach::Reach;
use super::thread_variables::{ENTRY, LOCALS, MAP, THREAD, Variables};
use super::threads::Threads;
use serde::{Deserialize, Serialize};

/// Threads that are looked at.
const THREADS_MAX: usize = 2000;
/// Less behind the variables of a thread is what any thread has.
const BYTES_MIN: u64 = 256 << 10;

/// Objects that `ThreadLocal` variables refer to, once for each thread, and what these lead to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadValuesRecord {
    /// Threads whose variables hold 256 KiB and more.
    pub threads: u64,
    /// Bytes of what these hold, at least.
    pub bytes: u64,
    /// The class of the value that holds most, as the JVM spells it.
    pub class: String,
    /// Bytes of that value.
    pub largest_bytes: u64,
}

/// Reads the memory that variables of live threads hold.
///
/// # Errors
/// If this JVM does not describe its threads or their variables.
pub fn read(memory: &dyn Memory, tables: &Tables, objects: &Objects) -> Result<ThreadValuesRecord, Unavailable> {
    let classes = objects.classes();
    let found = classes.find(memory, &[THREAD, MAP, ENTRY])?;
    let (variables, locals) = (Variables::of(memory, objects, &found)?, found.field(THREAD, LOCALS)?);
    let mut reach = Reach::new(memory, objects, tables.offset(&["Klass::_super"])?);
    let mut found = ThreadValuesRecord::default();
    for (_, thread) in Threads::with_objects(memory, tables, objects, THREADS_MAX)? {
        let entries = objects.follow(memory, thread, &locals).and_then(|map| variables.entries(map));
        let mut held = 0u64;
        for value in entries.into_iter().flatten().filter_map(|entry| variables.value(entry)) {
            let bytes = reach.bytes(value);
            held = held.saturating_add(bytes);
            if bytes > found.largest_bytes {
                let class = objects.class_of(memory, value).and_then(|class| classes.spelled(memory, class));
                (found.largest_bytes, found.class) = (bytes, class.unwrap_or_default());
            }
        }
        if held >= BYTES_MIN {
            found.threads += 1;
            found.bytes = found.bytes.saturating_add(held);
        }
    }
    Ok(found)
}
