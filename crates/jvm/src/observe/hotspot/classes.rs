//! Loaders and classes, and static fields by name: `ClassLoaderDataGraph`, `ClassLoaderData`, `Klass`, `InstanceKlass`
//! (JDK 11–27). All of it is in metaspace and does not move. Lists may grow at their heads during a walk, which then
//! misses only the newest entries. Unloading may end a walk; a caller that needs all classes starts over.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::loaders::LOADER;
use super::thread_buffers::{BUFFER, CACHE};
use super::thread_names::STRING;
use super::thread_variables::{ENTRY, MAP, THREAD};
use super::{SOURCE, Tables};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of class loaders walked: each hidden class may have its own loader data.
const LOADERS_MAX: usize = 1 << 20;
/// Maximum number of classes of all loaders.
const CLASSES_MAX: usize = 1 << 22;
/// Maximum number of superclasses up to `java.lang.Object`.
const SUPERS_MAX: usize = 64;
/// Maximum number of fields in a class: a class file counts them with 16 bits.
const FIELDS_MAX: u64 = 1 << 16;
/// Bytes of a field stream: at most seven numbers of at most five bytes per field.
const STREAM_MAX: u64 = FIELDS_MAX * 35;
const STATIC: u64 = 8;

/// The classes that readers look for by name; a single walk finds all of them.
const SOUGHT: [&str; 7] = [LOADER, STRING, THREAD, MAP, ENTRY, CACHE, BUFFER];

/// The addresses and offsets for reading this JVM's loaders and classes.
#[derive(Debug, Clone)]
pub struct Classes {
    loaders_at: u64,
    loader_next: u64,
    loader_classes: u64,
    class_next: u64,
    class_name: u64,
    symbol_length: u64,
    symbol_body: u64,
    constants: u64,
    /// Distance from the address of a constant pool to its first entry.
    pool: u64,
    fields: FieldsForm,
    /// The classes found by name, shared by readers: classes of the JDK's own loader do not move.
    found: Arc<Mutex<HashMap<&'static str, u64>>>,
}

#[derive(Debug, Clone)]
enum FieldsForm {
    /// Up to JDK 20: six 16-bit numbers per field.
    Array { fields: u64, count: u64, data: u64 },
    /// JDK 21 and later: numbers of one to five bytes.
    Stream { stream: u64, length: u64, data: u64, extra: [u64; 3] },
}

/// A field of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Offset in an object or, for a static field, in the class's mirror.
    pub offset: u64,
    /// Its type as in a class file: `J`, `Ljava/util/concurrent/atomic/AtomicLong;`.
    pub descriptor: String,
    /// Whether it is static.
    pub is_static: bool,
}

impl Classes {
    /// Looks up where this JVM stores loaders and classes.
    pub fn of(tables: &Tables) -> Result<Self, Unavailable> {
        let offset = |field: &str| tables.offset(&[field]);
        let fields = match offset("InstanceKlass::_fields") {
            Ok(fields) => FieldsForm::Array {
                fields,
                count: offset("InstanceKlass::_java_fields_count")?,
                data: offset("Array<u2>::_data")?,
            },
            Err(_) => {
                let bit = |name: &str| {
                    let bit = tables.constant(&format!("FieldInfo::FieldFlags::_ff_{name}"))?;
                    Ok(1u64.checked_shl(bit as u32).unwrap_or(0))
                };
                FieldsForm::Stream {
                    stream: offset("InstanceKlass::_fieldinfo_stream")?,
                    length: offset("Array<int>::_length")?,
                    data: offset("Array<u1>::_data")?,
                    extra: [bit("initialized")?, bit("generic")?, bit("contended")?],
                }
            }
        };
        Ok(Self {
            loaders_at: tables.address(&["ClassLoaderDataGraph::_head"])?,
            loader_next: offset("ClassLoaderData::_next")?,
            loader_classes: offset("ClassLoaderData::_klasses")?,
            class_next: offset("Klass::_next_link")?,
            class_name: offset("Klass::_name")?,
            symbol_length: offset("Symbol::_length")?,
            symbol_body: offset("Symbol::_body[0]")?,
            constants: offset("InstanceKlass::_constants")?,
            pool: tables.size("ConstantPool")?,
            fields,
            found: Arc::default(),
        })
    }

    /// Calls `each` with the addresses of each class and its loader's data. Fails if memory cannot be read, or the
    /// lists do not end.
    pub fn walk(&self, memory: &dyn Memory, each: impl FnMut(u64, u64)) -> Result<(), Unavailable> {
        self.walk_new(memory, &mut NewestClasses::default(), each)
    }

    /// Same, but only for classes added since the last call. Errors: as for [`Self::walk`]; the next call then repeats
    /// the classes of this one.
    pub fn walk_new(
        &self,
        memory: &dyn Memory,
        seen: &mut NewestClasses,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), Unavailable> {
        let read = |at: Option<u64>| at.and_then(|at| memory.u64(at)).ok_or_else(changed);
        let (mut loader, mut classes, mut now) = (read(Some(self.loaders_at))?, 0, HashMap::new());
        while loader != 0 {
            let newest = read(loader.checked_add(self.loader_classes))?;
            let before = seen.newest.get(&loader).copied().unwrap_or(0);
            let (mut class, mut circle) = (newest, Circle::from(newest));
            while class != 0 && class != before {
                each(loader, class);
                class = read(class.checked_add(self.class_next))?;
                classes += 1;
                if classes > CLASSES_MAX || circle.is_closed_by(class) {
                    return Err(changed());
                }
            }
            // A list that returns to one of its loaders never ends.
            if now.insert(loader, newest).is_some() || now.len() > LOADERS_MAX {
                return Err(changed());
            }
            loader = read(loader.checked_add(self.loader_next))?;
        }
        seen.newest = now;
        Ok(())
    }

    /// Looks for these classes of `java.base`, which only the boot loader loads.
    pub(super) fn find<'a>(
        &'a self,
        memory: &'a dyn Memory,
        wanted: &[&'static str],
    ) -> Result<FoundClasses<'a>, Unavailable> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.iter().any(|name| !found.contains_key(name)) {
            let sought: BTreeSet<&'static str> = SOUGHT.iter().chain(wanted).copied().collect();
            self.walk_first(memory, |class| {
                if let Some(name) = self.name_of(memory, class)
                    && let Some(sought) = sought.iter().find(|sought| name.is(memory, sought))
                {
                    found.entry(*sought).or_insert(class);
                }
                sought.iter().any(|name| !found.contains_key(name))
            })?;
        }
        Ok(FoundClasses { memory, classes: self, found: found.clone() })
    }

    /// Passes the boot loader's classes to `wants_more` while it returns true. This loader was created first, so it is
    /// the last in the list (`ClassLoaderDataGraph::add_to_graph`, JDK 11–27).
    fn walk_first(&self, memory: &dyn Memory, mut wants_more: impl FnMut(u64) -> bool) -> Result<(), Unavailable> {
        let read = |at: Option<u64>| at.and_then(|at| memory.u64(at)).ok_or_else(changed);
        let (mut loader, mut next) = (0, read(Some(self.loaders_at))?);
        let (mut circle, mut loaders) = (Circle::from(next), 0);
        while next != 0 {
            (loader, loaders) = (next, loaders + 1);
            next = read(loader.checked_add(self.loader_next))?;
            if loaders > LOADERS_MAX || circle.is_closed_by(next) {
                return Err(changed());
            }
        }
        if loader == 0 {
            return Ok(());
        }
        let (mut class, mut classes) = (read(loader.checked_add(self.loader_classes))?, 0);
        let mut circle = Circle::from(class);
        while class != 0 && wants_more(class) {
            class = read(class.checked_add(self.class_next))?;
            classes += 1;
            if classes > CLASSES_MAX || circle.is_closed_by(class) {
                return Err(changed());
            }
        }
        Ok(())
    }

    /// A class name in the JVM's form: `java/nio/Bits`, `[J`.
    pub fn name(&self, memory: &dyn Memory, class: u64) -> Option<String> {
        self.name_of(memory, class)?.read(memory)
    }

    /// A class name in Java's form: `java.nio.Bits`.
    pub(super) fn spelled(&self, memory: &dyn Memory, class: u64) -> Option<String> {
        Some(self.name(memory, class)?.replace('/', "."))
    }

    /// A class name whose text has not been read yet.
    pub fn name_of(&self, memory: &dyn Memory, class: u64) -> Option<Name> {
        self.symbol(memory, memory.u64(class.checked_add(self.class_name)?)?)
    }

    /// The field with this name declared by the class itself.
    pub fn field(&self, memory: &dyn Memory, class: u64, name: &str) -> Option<Field> {
        let pool = self.constants(memory, class)?;
        self.declared(memory, class)?.into_iter().find_map(|field| self.named(memory, pool, name, field))
    }

    /// Its static fields of reference type: location in the mirror, and name.
    pub(super) fn static_references(&self, memory: &dyn Memory, class: u64) -> Option<Vec<(Field, Name)>> {
        let pool = self.constants(memory, class)?;
        let named = |[name, _, offset, _]: [u64; 4]| {
            let field = Field { offset, descriptor: String::new(), is_static: true };
            Some((field, self.constant(memory, pool, name)?))
        };
        Some(self.references(memory, class, true)?.into_iter().filter_map(named).collect())
    }

    /// Returns the object offsets of the reference fields that the class itself declares.
    pub(super) fn instance_references(&self, memory: &dyn Memory, class: u64) -> Option<Vec<u64>> {
        Some(self.references(memory, class, false)?.into_iter().map(|[_, _, offset, _]| offset).collect())
    }

    /// Returns the declared fields of reference type: either the static or the instance fields.
    fn references(&self, memory: &dyn Memory, class: u64, are_static: bool) -> Option<Vec<[u64; 4]>> {
        let pool = self.constants(memory, class)?;
        let is_reference = |[_, descriptor, _, access]: &[u64; 4]| {
            // The first byte is enough to distinguish objects and arrays from primitives.
            let mut first = [0];
            let descriptor = || self.constant(memory, pool, *descriptor);
            (access & STATIC != 0) == are_static
                && descriptor().is_some_and(|text| memory.read(text.at, &mut first))
                && matches!(first, [b'L' | b'['])
        };
        Some(self.declared(memory, class)?.into_iter().filter(is_reference).collect())
    }

    /// Reads each field that a class declares: the indices of its name and descriptor, its offset, and its access
    /// flags.
    fn declared(&self, memory: &dyn Memory, class: u64) -> Option<Vec<[u64; 4]>> {
        match &self.fields {
            FieldsForm::Array { fields, count, data } => {
                let count = memory.u16(class.checked_add(*count)?)?;
                let array = memory.u64(class.checked_add(*fields)?)?.checked_add(*data)?;
                let mut numbers = vec![0; 12 * usize::from(count)];
                (numbers.is_empty() || memory.read(array, &mut numbers)).then_some(())?;
                let number = |field: &[u8], n: usize| u64::from(u16::from_le_bytes([field[2 * n], field[2 * n + 1]]));
                let of = |field: &[u8]| {
                    let offset = (number(field, 5) << 16 | number(field, 4)) >> 2;
                    [number(field, 1), number(field, 2), offset, number(field, 0)]
                };
                Some(numbers.chunks_exact(12).map(of).collect())
            }
            FieldsForm::Stream { stream, length, data, extra } => {
                let stream = memory.u64(class.checked_add(*stream)?)?;
                let length = u64::from(memory.u32(stream.checked_add(*length)?)?);
                (length <= STREAM_MAX).then_some(())?;
                let mut bytes = vec![0; length as usize];
                memory.read(stream.checked_add(*data)?, &mut bytes).then_some(())?;
                let mut numbers = Numbers { bytes: &bytes, at: 0 };
                let (count, _injected) = (numbers.next()?, numbers.next()?);
                let mut declared = Vec::new();
                for _ in 0..count.min(FIELDS_MAX) {
                    let [name, descriptor, offset, access] =
                        [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
                    let flags = numbers.next()?;
                    for _ in extra.iter().filter(|bit| flags & **bit != 0) {
                        numbers.next()?;
                    }
                    declared.push([name, descriptor, offset, access]);
                }
                Some(declared)
            }
        }
    }

    fn constants(&self, memory: &dyn Memory, class: u64) -> Option<u64> {
        memory.u64(class.checked_add(self.constants)?)
    }

    /// The symbol at an index of a constant pool.
    pub(super) fn constant(&self, memory: &dyn Memory, pool: u64, index: u64) -> Option<Name> {
        let first = pool.checked_add(self.pool)?;
        self.symbol(memory, memory.u64(first.checked_add(8 * index)?)?)
    }

    /// The field, if it has this name.
    fn named(&self, memory: &dyn Memory, pool: u64, wanted: &str, field: [u64; 4]) -> Option<Field> {
        let [name, descriptor, offset, access] = field;
        self.constant(memory, pool, name)?.is(memory, wanted).then_some(())?;
        let descriptor = self.constant(memory, pool, descriptor)?.read(memory)?;
        Some(Field { offset, descriptor, is_static: access & STATIC != 0 })
    }

    fn symbol(&self, memory: &dyn Memory, at: u64) -> Option<Name> {
        let length = memory.u16(at.checked_add(self.symbol_length)?)?;
        Some(Name { at: at.checked_add(self.symbol_body)?, length: length.into() })
    }
}

pub(super) struct FoundClasses<'a> {
    memory: &'a dyn Memory,
    classes: &'a Classes,
    found: HashMap<&'static str, u64>,
}

impl FoundClasses<'_> {
    pub(super) fn class(&self, name: &str) -> Result<u64, Unavailable> {
        self.found.get(name).copied().ok_or_else(|| Unavailable::new(SOURCE, format!("no class is named `{name}`")))
    }

    /// The field with this name declared by the class itself. Fails if there is none, or the class is not loaded.
    pub(super) fn field(&self, of: &str, name: &str) -> Result<Field, Unavailable> {
        let field = self.found.get(of).and_then(|class| self.classes.field(self.memory, *class, name));
        field.ok_or_else(|| Unavailable::new(SOURCE, format!("`{of}` has no field `{name}`")))
    }
}

/// A class and its superclasses; `super_class` is the offset of the pointer to the superclass.
pub(super) fn supers(memory: &dyn Memory, super_class: u64, class: u64) -> impl Iterator<Item = u64> {
    let above = move |class: &u64| memory.u64(class.checked_add(super_class)?).filter(|class| *class != 0);
    std::iter::successors(Some(class), above).take(SUPERS_MAX)
}

/// A symbol that was found but not read: at most 65,535 bytes of modified UTF-8. Few of 100,000 names are wanted, and
/// their lengths rule out nearly all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    at: u64,
    length: usize,
}

impl Name {
    /// Whether it equals `name`.
    pub fn is(self, memory: &dyn Memory, name: &str) -> bool {
        self.length == name.len() && self.ends_with(memory, name)
    }

    /// Whether it has this suffix; reads only the suffix, and nothing from names longer than any in the JDK.
    pub fn ends_with(self, memory: &dyn Memory, end: &str) -> bool {
        let (mut buffer, Some(before)) = ([0; 128], self.length.checked_sub(end.len())) else { return false };
        let text = buffer.get_mut(..end.len()).zip(self.at.checked_add(before as u64));
        text.is_some_and(|(text, at)| memory.read(at, text) && text == end.as_bytes())
    }

    /// Reads the full name.
    pub fn read(self, memory: &dyn Memory) -> Option<String> {
        let mut text = vec![0; self.length];
        memory.read(self.at, &mut text).then_some(())?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The loaders of a walk, each with its newest class at that time. Newer classes come before it in the list.
#[derive(Debug, Default)]
pub struct NewestClasses {
    newest: HashMap<u64, u64>,
}

impl NewestClasses {
    /// Whether the loader existed.
    pub fn has(&self, loader: u64) -> bool {
        self.newest.contains_key(&loader)
    }
}

/// Detects a cyclic list within three turns (R. P. Brent, 1980): compares each element with an earlier one, which is
/// replaced after each power of two.
struct Circle {
    kept: u64,
    steps: u64,
}

impl Circle {
    fn from(first: u64) -> Self {
        Self { kept: first, steps: 0 }
    }

    fn is_closed_by(&mut self, next: u64) -> bool {
        let is_closed = next != 0 && next == self.kept;
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.kept = next;
        }
        is_closed
    }
}

/// Numbers of one to five bytes (`utilities/unsigned5.hpp`): a byte of 192 or more is followed by another.
struct Numbers<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        const HIGH: u8 = 192;
        let mut sum: u64 = 0;
        for n in 0..5 {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            sum += u64::from(byte.checked_sub(1)?) << (6 * n);
            if byte < HIGH {
                break;
            }
        }
        Some(sum & u64::from(u32::MAX))
    }
}

fn changed() -> Unavailable {
    Unavailable::new(SOURCE, "its classes changed while being read, or could not be read")
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUpMemory;
    use super::*;

    #[test]
    fn numbers_of_one_to_five_bytes_are_decoded() {
        let mut numbers = Numbers { bytes: &[1, 2, 191, 192, 1, 255, 255, 255, 255, 255, 0], at: 0 };
        let read: Vec<_> = std::iter::from_fn(|| numbers.next()).collect();
        // 192 followed by a byte for zero is the first number that does not fit in one byte.
        assert_eq!(read, [0, 1, 190, 191, (254 * (1 + 64 + 4096 + 262_144 + 16_777_216)) & 0xffff_ffff]);
    }

    #[test]
    fn unwanted_names_are_not_read() {
        let mut memory = MadeUpMemory::default();
        let at = memory.write_text(&("x".repeat(65_000) + "java/nio/Bits"));
        let long = Name { at, length: 65_013 };
        assert!(!long.is(&memory, "java/nio/Bits") && memory.asked() == 0);
        assert!(long.ends_with(&memory, "java/nio/Bits") && memory.asked() == 13);
        assert!(!long.ends_with(&memory, "java/nio/bits"));
        let own = Name { at: at + 65_000, length: 13 };
        assert!(own.is(&memory, "java/nio/Bits") && !own.is(&memory, "java/nio/Bit"));
        assert_eq!(own.read(&memory).as_deref(), Some("java/nio/Bits"));
        assert!(!Name { at: u64::MAX, length: 13 }.is(&memory, "java/nio/Bits"), "it has no valid address");
        assert!(!long.ends_with(&memory, &"x".repeat(200)), "a name longer than every wanted one is not read");
    }
}
