//! Full names of Java threads, by kernel thread id. The kernel itself keeps only 15 bytes of a name, which merges or
//! truncates pool names. `JavaThread` → `Thread.name` → `String.value` (JDK 11–27). A thread whose objects move is
//! skipped.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::Tables;
use super::objects::Objects;
use super::thread_variables::THREAD;
use super::threads::Threads;
use std::collections::BTreeMap;

const NAME_MAX: usize = 512;
const THREADS_MAX: usize = 20_000;
pub(super) const STRING: &str = "java/lang/String";

/// Reads the names of the live threads, by their ids in the JVM's own pid namespace. Fails if this JVM does not
/// describe its threads or their names.
pub fn read(memory: &dyn Memory, tables: &Tables, objects: &Objects) -> Result<BTreeMap<u32, String>, Unavailable> {
    let found = objects.classes().find(memory, &[THREAD, STRING])?;
    let (name, string) = (found.field(THREAD, "name")?, found.class(STRING)?);
    let (value, coder) = (found.field(STRING, "value")?, found.field(STRING, "coder")?);
    let list = Threads::of(tables, None)?;
    let named = |(thread, object): (u64, u64)| {
        let tid = list.tid(memory, thread)?;
        let text = objects.follow(memory, object, &name)?;
        (objects.class_of(memory, text)? == string).then_some(())?;
        let mut wide = [0];
        memory.read(text.checked_add(coder.offset)?, &mut wide).then_some(())?;
        let bytes = objects.bytes_of(memory, objects.follow(memory, text, &value)?, NAME_MAX)?;
        Some((tid, spelled(&bytes, wide[0] != 0)))
    };
    Ok(Threads::with_objects(memory, tables, objects, THREADS_MAX)?.filter_map(named).collect())
}

/// Decodes a string's bytes: one per Latin-1 character, or UTF-16.
fn spelled(bytes: &[u8], is_wide: bool) -> String {
    let pair = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
    match is_wide {
        true => String::from_utf16_lossy(&bytes.chunks_exact(2).map(pair).collect::<Vec<u16>>()),
        false => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_with_one_or_two_bytes_per_character_are_decoded() {
        assert_eq!(spelled(b"order-export-worker-7", false), "order-export-worker-7");
        assert_eq!(spelled(&[0xe4], false), "ä");
        assert_eq!(spelled(&[0x2d, 0x4e, 0x31, 0], true), "中1");
        assert_eq!(spelled(&[0x2d], true), "");
    }
}
