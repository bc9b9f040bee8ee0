//! Objects that the `ThreadLocal` variables of threads refer to, with what these lead to: held as long as the thread
//! lives, once for each thread (JDK 11–27). `JavaThread` → `Thread.threadLocals` → `ThreadLocalMap.table` →
//! `Entry.value`. A thread whose objects move meanwhile is left out.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::objects::Objects;
use super::reach::Reach;
use super::threads::Threads;
use super::{SOURCE, Tables};
use std::collections::HashMap;

/// A thread has some ten variables; their table grows to twice as many and more.
const VARIABLES_MAX: u32 = 1 << 16;
/// Threads that are looked at.
const THREADS_MAX: usize = 2000;
/// Less behind the variables of a thread is what any thread has.
const BYTES_MIN: u64 = 256 << 10;
const THREAD: &str = "java/lang/Thread";
const MAP: &str = "java/lang/ThreadLocal$ThreadLocalMap";
const ENTRY: &str = "java/lang/ThreadLocal$ThreadLocalMap$Entry";

/// The memory that variables of threads hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadValues {
    /// Threads whose variables hold much.
    pub threads: u64,
    /// Bytes of what they hold, at least.
    pub bytes: u64,
    /// The class of the value that holds most, `[B`.
    pub class: String,
    /// Bytes of that one.
    pub largest: u64,
}

/// Reads the memory that variables of live threads hold.
///
/// # Errors
/// If this JVM does not describe its threads or their variables.
pub fn read(memory: &dyn Memory, tables: &Tables, objects: &Objects) -> Result<ThreadValues, Unavailable> {
    let classes = objects.classes();
    let mut known = HashMap::new();
    classes.walk(memory, |_, class| {
        let Some(name) = classes.name_of(memory, class) else { return };
        if let Some(wanted) = [THREAD, MAP, ENTRY].into_iter().find(|wanted| name.is(memory, wanted)) {
            known.entry(wanted).or_insert(class);
        }
    })?;
    let missing = |what: &str| Unavailable::new(SOURCE, format!("there is no `{what}`"));
    let class = |name: &'static str| known.get(name).copied().ok_or_else(|| missing(name));
    let field = |of: &'static str, name: &str| classes.field(memory, class(of)?, name).ok_or_else(|| missing(name));
    let (locals, table, value) = (field(THREAD, "threadLocals")?, field(MAP, "table")?, field(ENTRY, "value")?);
    let (map_class, entry_class) = (class(MAP)?, class(ENTRY)?);
    let object_at = tables.offset(&["JavaThread::_threadObj"])?;
    let threads = Threads::of(tables, None)?.addresses(memory);
    let threads = threads.ok_or_else(|| Unavailable::new(SOURCE, "its list of threads could not be read"))?;
    let mut reach = Reach::new(memory, objects, tables.offset(&["Klass::_super"])?);
    let mut found = ThreadValues::default();
    for thread in threads.into_iter().take(THREADS_MAX) {
        let values = || {
            let handle = memory.u64(thread.checked_add(object_at)?)?;
            let map = objects.follow(memory, objects.of_handle(memory, handle)?, &locals)?;
            (objects.class_of(memory, map)? == map_class).then_some(())?;
            let entries = objects.elements(memory, objects.follow(memory, map, &table)?, VARIABLES_MAX)?;
            let own = entries.into_iter().filter(|entry| objects.class_of(memory, *entry) == Some(entry_class));
            Some(own.filter_map(|entry| objects.follow(memory, entry, &value)).collect::<Vec<u64>>())
        };
        let mut held = 0u64;
        for value in values().unwrap_or_default() {
            let bytes = reach.bytes(value);
            held = held.saturating_add(bytes);
            if bytes > found.largest {
                let name = objects.class_of(memory, value).and_then(|class| classes.name(memory, class));
                (found.largest, found.class) = (bytes, name.unwrap_or_default().replace('/', "."));
            }
        }
        if held >= BYTES_MIN {
            found.threads += 1;
            found.bytes = found.bytes.saturating_add(held);
        }
    }
    Ok(found)
}
