//! The objects that threads' `ThreadLocal` variables refer to, with everything reachable from them: retained as long as
//! the thread lives, once per thread (JDK 11–27). `JavaThread` → `Thread.threadLocals` → `ThreadLocalMap.table` →
//! `Entry.value`. A thread whose objects move is skipped.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::Tables;
use super::objects::Objects;
use super::reach::Reach;
use super::thread_variables::{ENTRY, LOCALS, MAP, THREAD, Variables};
use super::threads::Threads;
use serde::{Deserialize, Serialize};

const THREADS_MAX: usize = 2000;
/// Thread variables that retain fewer bytes are normal.
const BYTES_MIN: u64 = 256 << 10;

/// Objects reachable from `ThreadLocal` variables, counted once per thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadValuesRecord {
    /// Number of threads whose variables hold at least 256 KiB.
    pub threads: u64,
    /// Lower bound on the size of these objects.
    pub bytes: u64,
    /// Class of the largest value, in the JVM's spelling.
    pub class: String,
    /// Size of that value.
    pub largest_bytes: u64,
}

/// Reads the memory retained by the variables of live threads. Fails if this JVM does not describe its threads or their
/// variables.
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
