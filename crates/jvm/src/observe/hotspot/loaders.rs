//! Class loaders with their classes and metaspace (`ClassLoaderData`, JDK 17–25): the content of
//! `VM.classloader_stats`.

use super::super::Unavailable;
use super::super::class_loaders::{ClassLoader, LoaderClasses};
use super::super::memory::Memory;
use super::super::metaspace_nodes::MetaspaceNode;
use super::HotSpot;
use super::classes::Field;
use super::fields::{Fields, absurd, unread};
use super::metaspace::{Chunks, LoaderSpace};
use super::objects::Objects;
use std::collections::{BTreeMap, HashSet};

pub(super) const LOADER: &str = "java/lang/ClassLoader";
/// Whether the data belongs to a hidden class, which has its own data in addition to that of its loader.
const OF_HIDDEN: [&str; 1] = ["ClassLoaderData::_has_class_mirror_holder"];
const LOADER_FIELD: [&str; 1] = ["ClassLoaderData::_class_loader"];

/// The field of a loader that refers to its parent. Fails if the base class of all loaders is not found, or lacks that
/// field.
pub fn parent(memory: &dyn Memory, objects: &Objects) -> Result<Field, Unavailable> {
    objects.classes().find(memory, &[LOADER])?.field(LOADER, "parent")
}

/// All loaders with classes, with sizes in bytes; hidden classes count toward their loader. Fails if loaders are being
/// moved, this JVM does not describe them, or its values are inconsistent.
pub fn all(
    memory: &dyn Memory,
    hotspot: &HotSpot,
    (objects, parent): (&Objects, &Field),
    nodes: &[MetaspaceNode],
) -> Result<Vec<ClassLoader>, Unavailable> {
    let fields = Fields { memory, tables: &hotspot.tables };
    let chunks = Chunks::of(memory, hotspot.metaspace_at, nodes);
    let (mut each, mut classes) = (Vec::<(u64, u64)>::new(), HashSet::new());
    objects.classes().walk(memory, |loader, class| {
        match each.last_mut() {
            Some((known, count)) if *known == loader => *count += 1,
            _ => each.push((loader, 1)),
        }
        classes.insert(class);
    })?;
    let mut loaders: BTreeMap<u64, ClassLoader> = BTreeMap::new();
    for (data, count) in each {
        // The boot loader is not an object.
        let linked = match fields.word(data, &LOADER_FIELD)? {
            0 => Default::default(),
            handle => objects.class_by_handle(memory, handle, parent)?,
        };
        if [linked.class, linked.other].into_iter().flatten().any(|class| !classes.contains(&class)) {
            return Err(absurd("a class loader"));
        }
        let hidden = memory.u8(fields.place(data, &OF_HIDDEN)?).ok_or_else(unread)? != 0;
        // The loader's metaspace is in the field after the loader.
        let metaspace = fields.place(data, &LOADER_FIELD)?.checked_add(8).and_then(|at| memory.u64(at));
        let taken = match metaspace.ok_or_else(unread)? {
            0 => LoaderSpace::default(),
            metaspace => chunks.of_loader(metaspace)?,
        };
        let of = LoaderClasses { own: linked.class.unwrap_or(0), parent: linked.other.unwrap_or(0) };
        let name = || objects.classes().spelled(memory, of.own).unwrap_or_default();
        let loader = loaders.entry(linked.object).or_insert_with(|| ClassLoader::found(data, of, &name()));
        loader.data = if hidden { loader.data } else { data };
        loader.classes += count;
        loader.hidden_classes += if hidden { count } else { 0 };
        loader.size = loader.size.saturating_add(taken.bytes);
        loader.used = loader.used.saturating_add(taken.used_bytes);
    }
    Ok(loaders.into_values().collect())
}
