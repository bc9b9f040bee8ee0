//! Reads a running HotSpot JVM from outside it, through its tables. Loadline asks nothing of it, adds nothing to it,
//! and pauses none of its threads. HotSpot describes its fields for debuggers (`vmStructs.cpp`, JDK 11–27). Names,
//! offsets, and sizes come from the running JVM and are never assumed. If this JVM lacks a name, only the readings that
//! need it are unavailable.
//!
//! | file | what it reads |
//! |---|---|
//! | [`tables`] | names → offsets, sizes, constants |
//! | [`threads`] | bytes that threads have allocated in the heap |
//! | [`flags`] | every flag with its value |
//! | [`classes`] | loaders, classes, and their fields by name |
//! | [`objects`] | static fields, and the heap objects that they refer to |
//! | [`direct`] | direct buffers and those of mapped files |
//! | [`statics`] | the largest collections that static fields refer to |
//! | [`thread_names`] | full thread names |
//! | [`thread_values`] | objects that thread-local variables refer to |
//! | [`thread_buffers`] | direct buffers that the JDK caches per thread |
//! | [`netty_pools`] | chunks of Netty's direct memory pools |
//! | [`heap`] | bounds, spaces, and regions of the Java heap |
//! | [`code`] | code heaps, and how full they are |
//! | [`compiling`] | compilations in progress |
//! | [`loaders`] | class loaders, their classes, and their metaspace |
//! | [`metaspace`] | the address ranges of class metadata |

pub mod classes;
pub mod code;
pub mod compiling;
pub mod direct;
mod fields;
pub mod flags;
pub mod heap;
pub mod loaders;
#[cfg(any(test, fuzzing))]
pub(super) mod made_up;
pub mod metaspace;
pub mod netty_pools;
pub mod objects;
mod reach;
mod regions;
pub mod statics;
pub mod tables;
pub mod thread_buffers;
pub mod thread_names;
pub mod thread_values;
mod thread_variables;
pub mod threads;

use super::Unavailable;
use super::elf::{self, Names};
use super::memory::Memory;
use super::procfs::Process;
use super::untouched::{Untouched, open_mapped};
use crate::kernel::mapping::Mapping;
use tables::Tables;

/// The name of the tables in errors.
pub const SOURCE: &str = "HotSpot's tables";

/// The tables and addresses of a running HotSpot, valid while its library stays mapped.
#[derive(Debug)]
pub struct HotSpot {
    /// The names that its library describes.
    pub tables: Tables,
    /// Address of the total allocated by ended threads; `None` if the library was stripped or is too old.
    pub exited_allocated_at: Option<u64>,
    /// Addresses of the variables for metaspace's class space and non-class space; `None` if the library was stripped
    /// or is too old.
    pub metaspace_at: [Option<u64>; 2],
}

/// Not described by HotSpot; exists in 11.0.23, 17.0.11, 21, and newer.
const EXITED_ALLOCATED: &str = "_ZN13ThreadService23_exited_allocated_bytesE";

impl HotSpot {
    /// Finds a JVM's tables, at a one-time cost of about 2 ms for reading files. Fails if there is no HotSpot, its
    /// library describes nothing, or its memory is not readable.
    pub fn find(process: &Process, maps: &[Mapping]) -> Result<Self, Unavailable> {
        let unavailable = |why: &str| Unavailable::new(SOURCE, why);
        let mut parts = maps.iter().filter(|mapping| mapping.file_name() == "libjvm.so" && mapping.offset == 0);
        let library = parts.next().ok_or_else(|| unavailable("no libjvm.so is mapped"))?;
        let file = open_mapped(process, library).map_err(Unavailable::io(SOURCE))?;
        let place = |offset: u64| library.start.checked_add(offset);
        let exported = elf::symbols(&file, Names::Exported, tables::EXPORTED).map_err(Unavailable::io(SOURCE))?;
        let [class_space, others] = metaspace::CONTEXTS;
        let all = elf::symbols(&file, Names::All, [EXITED_ALLOCATED, class_space, others]);
        let [exited, class_space, others] = all.map_err(Unavailable::io(SOURCE))?;
        let memory = Untouched::open(process, maps)?;
        let tables = Tables::read(&memory, exported.map(|offset| offset.and_then(place)))?;
        let metaspace_at = [class_space, others].map(|offset| offset.and_then(place));
        Ok(Self { tables, exited_allocated_at: exited.and_then(place), metaspace_at })
    }
}

/// The JVM's version, such as `17.0.15+6-Debian-1deb12u1`; `None` if its tables lack it.
pub fn version(memory: &dyn Memory, tables: &Tables) -> Option<String> {
    let text = memory.u64(tables.address(&["Abstract_VM_Version::_s_vm_release"]).ok()?)?;
    memory.text(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "made_up_tests.rs"]
mod tests;
