//! Class loaders, and the metaspace of those that may be garbage (`ClassLoaderData`, JDK 17–25): what
//! `VM.classloader_stats` is asked for, which lists loaders by their classes, too.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::super::metaspace_nodes::MetaspaceNode;
use super::classes::Walk;
use super::fields::{Fields, absurd};
use super::flags::Flags;
use super::metaspace::Chunks;
use super::objects::Objects;
use super::{HotSpot, SOURCE};
use crate::units::Bytes;
use std::collections::{BTreeMap, HashSet};

const LOADER: &str = "java/lang/ClassLoader";
const PARENT: &str = "parent";
/// Prefix of the JVM's own loaders, which live as long as the JVM.
const BUILT_IN: &str = "jdk/internal/loader/ClassLoaders$";

/// Loaders of one class.
#[derive(Debug, Default)]
struct OfClass {
    bytes: u64,
    parents: HashSet<u64>,
}

/// What the loaders hold that may be garbage: neither the JVM's own nor the parents of others, by their classes. In
/// bytes of chunks of metaspace, committed or not.
///
/// # Errors
/// Where loaders are being moved, this JVM does not describe them, or what it has contradicts itself.
pub fn may_be_garbage(
    memory: &dyn Memory,
    hotspot: &HotSpot,
    flags: &Flags,
    nodes: &[MetaspaceNode],
) -> Result<Bytes, Unavailable> {
    let tables = &hotspot.tables;
    let (fields, objects) = (Fields { memory, tables }, Objects::of(tables, flags, memory)?);
    let chunks = Chunks::of(memory, hotspot.metaspace_at, nodes);
    let (mut loaders, mut classes) = (Vec::new(), HashSet::new());
    objects.classes().walk(memory, |loader, class| {
        if loaders.last() != Some(&loader) {
            loaders.push(loader);
        }
        classes.insert(class);
        Walk::On
    })?;
    let class = objects.classes().find(memory, &[LOADER])?.get(LOADER).copied();
    let parent = class.and_then(|class| objects.classes().field(memory, class, PARENT));
    let parent = parent.ok_or_else(|| Unavailable::new(SOURCE, format!("`{LOADER}` has no field `{PARENT}`")))?;
    let mut by_class: BTreeMap<u64, OfClass> = BTreeMap::new();
    for data in loaders {
        let handle = fields.word(data, &["ClassLoaderData::_class_loader"])?;
        // The boot loader is no object.
        if handle == 0 {
            continue;
        }
        let linked = objects.class_by_handle(memory, handle, &parent)?;
        let Some(class) = linked.class else { continue };
        if !classes.contains(&class) || linked.other.is_some_and(|other| !classes.contains(&other)) {
            return Err(absurd("a class loader"));
        }
        // The field behind the loader is where its metaspace is.
        let metaspace = fields.place(data, &["ClassLoaderData::_class_loader"])?.checked_add(8);
        let metaspace = metaspace.and_then(|at| memory.u64(at)).unwrap_or(0);
        let one = by_class.entry(class).or_default();
        one.parents.extend(linked.other);
        one.bytes += if metaspace == 0 { 0 } else { chunks.bytes(metaspace)? };
    }
    let is_parent = |class: u64| by_class.iter().any(|(other, one)| *other != class && one.parents.contains(&class));
    let built_in = |class: u64| objects.classes().name(memory, class).is_some_and(|name| name.starts_with(BUILT_IN));
    let leaves = by_class.iter().filter(|(class, _)| !built_in(**class) && !is_parent(**class));
    Ok(Bytes(leaves.map(|(_, one)| one.bytes).fold(0, u64::saturating_add)))
}
