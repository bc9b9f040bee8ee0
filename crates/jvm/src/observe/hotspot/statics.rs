//! The largest collections that static fields refer to, by number of entries: they stay until their class is unloaded.
//! Supports `java.util` and `java.util.concurrent` of JDK 11–27, arrays, and subclasses; collections reachable only
//! through an instance are not found. The JVM is not queried; an object that moves in the meantime is skipped.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::classes::{Field, supers};
use super::objects::Objects;
use super::reach::Reach;
use super::{SOURCE, Tables};
use loadline_base::java_names::is_of_jdk;
use loadline_base::order::Order as _;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Collections with fewer entries and fewer bytes are tables that any program has.
const ENTRIES_MIN: u64 = 1000;
const BYTES_MIN: u64 = 4 << 20;
/// Maximum number of collections whose objects are counted.
const COUNTED_MAX: usize = 300;
/// Maximum number of collections listed.
const KEPT_MAX: usize = 10;
/// Views, wrappers, and sets lead to a collection within this many steps.
const STEPS_MAX: usize = 5;

/// A collection that a static field keeps until the field's class is unloaded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StaticCollectionRecord {
    /// Class that declares the field, such as `java.io.DeleteOnExitHook`.
    pub class: String,
    /// The field.
    pub field: String,
    /// Class of the collection, such as `java.util.LinkedHashSet`.
    pub collection: String,
    /// Number of entries.
    pub entries: u64,
    /// Lower bound on the size of the objects reachable from it; 0 if not counted.
    #[serde(default)]
    pub bytes: u64,
}

/// How to get the number of entries from a collection's field.
#[derive(Clone, Copy)]
enum Way {
    /// The field is a number of 32 or 64 bits.
    Counts,
    /// The field refers to another collection.
    Wraps,
}

const KNOWN: [(&str, Way, &str); 20] = [
    ("java/util/HashMap", Way::Counts, "size"),
    ("java/util/HashSet", Way::Wraps, "map"),
    ("java/util/TreeMap", Way::Counts, "size"),
    ("java/util/TreeSet", Way::Wraps, "m"),
    ("java/util/ArrayList", Way::Counts, "size"),
    ("java/util/LinkedList", Way::Counts, "size"),
    ("java/util/Vector", Way::Counts, "elementCount"),
    ("java/util/Hashtable", Way::Counts, "count"),
    ("java/util/Properties", Way::Wraps, "map"),
    ("java/util/IdentityHashMap", Way::Counts, "size"),
    ("java/util/WeakHashMap", Way::Counts, "size"),
    ("java/util/PriorityQueue", Way::Counts, "size"),
    ("java/util/concurrent/ConcurrentHashMap", Way::Counts, "baseCount"),
    ("java/util/concurrent/ConcurrentHashMap$KeySetView", Way::Wraps, "map"),
    ("java/util/concurrent/CopyOnWriteArrayList", Way::Wraps, "array"),
    ("java/util/Collections$SetFromMap", Way::Wraps, "m"),
    ("java/util/Collections$SynchronizedCollection", Way::Wraps, "c"),
    ("java/util/Collections$SynchronizedMap", Way::Wraps, "m"),
    ("java/util/Collections$UnmodifiableCollection", Way::Wraps, "c"),
    ("java/util/Collections$UnmodifiableMap", Way::Wraps, "m"),
];

/// Finds the largest collections: first those with the most known reachable bytes, then those with the most entries.
/// Fails if this JVM does not describe its classes.
pub fn collections(
    memory: &dyn Memory,
    tables: &Tables,
    objects: &Objects,
) -> Result<Vec<StaticCollectionRecord>, Unavailable> {
    let (classes, super_class) = (objects.classes(), tables.offset(&["Klass::_super"])?);
    let (mut all, mut known) = (Vec::new(), HashMap::new());
    classes.walk(memory, |_, class| {
        all.push(class);
        let Some(name) = classes.name_of(memory, class) else { return };
        let Some((_, way, field)) = KNOWN.into_iter().find(|(known, ..)| name.is(memory, known)) else { return };
        known.extend(classes.field(memory, class, field).map(|field| (class, (way, field))));
    })?;
    if known.is_empty() {
        return Err(Unavailable::new(SOURCE, "no class of `java.util` was found"));
    }
    let counting = Counting { memory, objects, known, super_class };
    let mut found = Vec::new();
    let mut reach = Reach::new(memory, objects, super_class);
    for class in all {
        for (field, name) in classes.static_references(memory, class).unwrap_or_default() {
            let collection = || {
                let object = objects.static_object(memory, class, &field)?;
                let entries = counting.entries(object).filter(|entries| *entries > 0)?;
                let collection = classes.spelled(memory, objects.class_of(memory, object)?)?;
                let (class, field) = (classes.spelled(memory, class)?, name.read(memory)?);
                let of = StaticCollectionRecord { class, field, collection, entries, bytes: 0 };
                Some((object, of))
            };
            found.extend(collection());
        }
    }
    // The program's collections come first, because the JDK's may lead to them.
    found.order_by_key(|(_, of)| (is_of_jdk(&of.class), std::cmp::Reverse(of.entries)));
    for (object, of) in found.iter_mut().take(COUNTED_MAX) {
        of.bytes = reach.bytes(*object);
    }
    let mut found: Vec<StaticCollectionRecord> = found.into_iter().map(|(_, of)| of).collect();
    found.retain(|of| of.entries >= ENTRIES_MIN || of.bytes >= BYTES_MIN);
    found.largest_first(|of| (of.bytes, of.entries));
    found.truncate(KEPT_MAX);
    Ok(found)
}

struct Counting<'a> {
    memory: &'a dyn Memory,
    objects: &'a Objects,
    /// The known collection classes, with the size field.
    known: HashMap<u64, (Way, Field)>,
    super_class: u64,
}

impl Counting<'_> {
    /// The number of entries in a collection or object array; `None` for any other object.
    fn entries(&self, mut object: u64) -> Option<u64> {
        for _ in 0..STEPS_MAX {
            let class = self.objects.class_of(self.memory, object)?;
            match self.known_of(class) {
                None => return self.objects.references_in(self.memory, object),
                Some((Way::Counts, field)) => return self.objects.number_in(self.memory, object, field),
                Some((Way::Wraps, field)) => object = self.objects.follow(self.memory, object, field)?,
            }
        }
        None
    }

    /// Looks up the known collection class that a class is or extends.
    fn known_of(&self, class: u64) -> Option<&(Way, Field)> {
        supers(self.memory, self.super_class, class).find_map(|class| self.known.get(&class))
    }
}
