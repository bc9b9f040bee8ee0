//! The largest collections that static fields refer to, by the number of their entries: what stays until its class is
//! unloaded. `java.util` and `java.util.concurrent` of JDK 11–27, arrays, and classes that extend them; what only an
//! instance refers to is not found. Nothing is asked of the JVM; an object that moves meanwhile is left out.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::classes::Field;
use super::objects::Objects;
use super::{SOURCE, Tables};
use std::collections::HashMap;

/// Fewer entries are in many a table of a program.
const ENTRIES_MIN: u64 = 1000;
/// Collections that are listed.
const KEPT_MAX: usize = 10;
/// Views, wrappers and sets lead to a collection within so many steps.
const STEPS_MAX: usize = 5;
/// Classes between one that is known and the one of an object.
const SUPERS_MAX: usize = 16;

/// A collection, and the class that has the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticCollection {
    /// The class that declares the field, `java.io.DeleteOnExitHook`.
    pub class: String,
    /// The field.
    pub field: String,
    /// The class of the collection, `java.util.LinkedHashSet`.
    pub collection: String,
    /// How many entries it has.
    pub entries: u64,
}

/// How a collection tells how many entries it has.
#[derive(Clone, Copy)]
enum Way {
    /// By a number of 32 or 64 bits.
    Counts(&'static str),
    /// By another collection that it wraps.
    Wraps(&'static str),
}

const KNOWN: [(&str, Way); 20] = [
    ("java/util/HashMap", Way::Counts("size")),
    ("java/util/HashSet", Way::Wraps("map")),
    ("java/util/TreeMap", Way::Counts("size")),
    ("java/util/TreeSet", Way::Wraps("m")),
    ("java/util/ArrayList", Way::Counts("size")),
    ("java/util/LinkedList", Way::Counts("size")),
    ("java/util/Vector", Way::Counts("elementCount")),
    ("java/util/Hashtable", Way::Counts("count")),
    ("java/util/Properties", Way::Wraps("map")),
    ("java/util/IdentityHashMap", Way::Counts("size")),
    ("java/util/WeakHashMap", Way::Counts("size")),
    ("java/util/PriorityQueue", Way::Counts("size")),
    ("java/util/concurrent/ConcurrentHashMap", Way::Counts("baseCount")),
    ("java/util/concurrent/ConcurrentHashMap$KeySetView", Way::Wraps("map")),
    ("java/util/concurrent/CopyOnWriteArrayList", Way::Wraps("array")),
    ("java/util/Collections$SetFromMap", Way::Wraps("m")),
    ("java/util/Collections$SynchronizedCollection", Way::Wraps("c")),
    ("java/util/Collections$SynchronizedMap", Way::Wraps("m")),
    ("java/util/Collections$UnmodifiableCollection", Way::Wraps("c")),
    ("java/util/Collections$UnmodifiableMap", Way::Wraps("m")),
];

/// A known class of collections, with the field that tells.
struct Known {
    field: Field,
    counts: bool,
}

/// The largest ones, the one with most entries first.
///
/// # Errors
/// Where this JVM does not describe its classes.
pub fn collections(
    memory: &dyn Memory,
    tables: &Tables,
    objects: &Objects,
) -> Result<Vec<StaticCollection>, Unavailable> {
    let (classes, super_class) = (objects.classes(), tables.offset(&["Klass::_super"])?);
    let (mut all, mut known) = (Vec::new(), HashMap::new());
    classes.walk(memory, |_, class| {
        all.push(class);
        let Some(name) = classes.name_of(memory, class) else { return };
        let Some((_, way)) = KNOWN.into_iter().find(|(known, _)| name.is(memory, known)) else { return };
        let (field, counts) = match way {
            Way::Counts(field) => (field, true),
            Way::Wraps(field) => (field, false),
        };
        if let Some(field) = classes.field(memory, class, field) {
            known.insert(class, Known { field, counts });
        }
    })?;
    if known.is_empty() {
        return Err(Unavailable::new(SOURCE, "no class of `java.util` was found"));
    }
    let counting = Counting { memory, objects, known, super_class };
    let mut found = Vec::new();
    for class in all {
        for (field, name) in classes.static_references(memory, class).unwrap_or_default() {
            let collection = || {
                let object = objects.static_object(memory, class, &field)?;
                let entries = counting.entries(object).filter(|entries| *entries >= ENTRIES_MIN)?;
                let spelled = |class: u64| Some(classes.name(memory, class)?.replace('/', "."));
                let collection = spelled(objects.class_of(memory, object)?)?;
                Some(StaticCollection { class: spelled(class)?, field: name.read(memory)?, collection, entries })
            };
            found.extend(collection());
        }
    }
    found.sort_by_key(|of| std::cmp::Reverse(of.entries));
    found.truncate(KEPT_MAX);
    Ok(found)
}

struct Counting<'a> {
    memory: &'a dyn Memory,
    objects: &'a Objects,
    known: HashMap<u64, Known>,
    super_class: u64,
}

impl Counting<'_> {
    /// How many entries a collection or an array of objects has; `None` for any other object.
    fn entries(&self, mut object: u64) -> Option<u64> {
        for _ in 0..STEPS_MAX {
            let class = self.objects.class_of(self.memory, object)?;
            let Some(known) = self.known_of(class) else { return self.objects.references_in(self.memory, object) };
            if known.counts {
                return self.objects.number_in(self.memory, object, &known.field);
            }
            object = self.objects.follow(self.memory, object, &known.field)?;
        }
        None
    }

    /// What is known of a class or of one that it extends.
    fn known_of(&self, class: u64) -> Option<&Known> {
        let above = |class: &u64| self.memory.u64(class.checked_add(self.super_class)?).filter(|class| *class != 0);
        std::iter::successors(Some(class), above).take(SUPERS_MAX).find_map(|class| self.known.get(&class))
    }
}
