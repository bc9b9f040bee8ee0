//! Loaders with their classes, fields in both forms, mirrors, and objects with references in all four forms.

use super::super::classes::Field;
use super::super::direct::DirectCounters;
use super::super::flags::{Flag, Flags};
use super::super::objects::Objects;
use super::super::tables::Tables;
use super::super::{HotSpot, loaders};
use super::tables::{Says, describe};
use super::{MadeUpMemory, PlanBytes, halves};
use crate::observe::Unavailable;
use crate::observe::class_loaders::ClassLoader;
use std::collections::BTreeMap;

/// The size of a class, with room for its fields.
const CLASS_BYTES: u64 = 128;
pub(super) const MIRROR_BYTES: u64 = 256;
/// The field `parent` of every loader.
const PARENT_AT: u64 = 24;
/// Objects start at this address; their addresses fit in 32 bits after shifting.
pub(super) const HEAP: u64 = 0x7_0000_0000;
const LOADER: &[u8] = b"java/lang/ClassLoader";
const ATOMIC: &[u8] = b"java/util/concurrent/atomic/AtomicLong";
/// Plausible names, and names that no programmer would write.
const NAMES: [&[u8]; 8] = [
    b"java/nio/Bits",
    b"<img src=x onerror=alert(1)>",
    b"a\"b'c&d/e",
    b"\xc0\x80\xff\xfe",
    b"",
    b"[[J",
    b"loadline.Main$$Lambda+0x00007f/0x1",
    b"\x1b[31m\r\n",
];
/// Bit numbers of a field's flags.
const FLAGS: [(&str, i32); 3] = [("initialized", 0), ("generic", 2), ("contended", 4)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum References {
    Narrow {
        base: u64,
        shift: u32,
    },
    Wide,
    /// One of four colors (`bit`), or another one, whose shift is in a variable.
    Coloured {
        bit: Option<u32>,
    },
}

/// How an object's header identifies its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Header {
    Wide,
    Narrow { shift: u32 },
    InMark,
}

/// How a JVM stores fields, references, and headers.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Form {
    pub(in super::super) references: References,
    pub(in super::super) header: Header,
    /// Fields as a stream of numbers (JDK 21 and newer).
    pub(in super::super) stream: bool,
    pub(in super::super) spread: u64,
}

#[derive(Debug, Clone)]
pub(in super::super) struct Planted {
    pub(in super::super) name: String,
    pub(in super::super) field: Field,
    /// Its value; for a reference, the number in the object.
    pub(in super::super) value: u64,
}

#[derive(Debug, Clone)]
pub(in super::super) struct Class {
    pub(in super::super) at: u64,
    pub(in super::super) loader: u64,
    pub(in super::super) name: Vec<u8>,
    pub(in super::super) fields: Vec<Planted>,
}

#[derive(Debug, Clone, Copy)]
struct Loader {
    data: u64,
    object: u64,
    hidden: bool,
}

/// A JVM with classes; offsets are those of [`Self::rows`].
#[derive(Debug, Clone)]
pub(in super::super) struct Loaded {
    pub(in super::super) memory: MadeUpMemory,
    pub(in super::super) form: Form,
    pub(in super::super) classes: Vec<Class>,
    loaders: Vec<Loader>,
    statics: u64,
    class_base: u64,
    heap: u64,
}

impl Form {
    pub(in super::super) fn of(plan: &mut PlanBytes) -> Self {
        let (kind, number) = (plan.next(), plan.next());
        let references = match kind % 5 {
            0 => References::Narrow { base: 0, shift: 3 },
            1 => References::Narrow { base: HEAP - 4096, shift: (number % 4) as u32 },
            2 => References::Wide,
            3 => References::Coloured { bit: Some((number % 4) as u32) },
            _ => References::Coloured { bit: None },
        };
        let header = match number % 3 {
            0 => Header::Wide,
            1 => Header::Narrow { shift: (kind % 4) as u32 },
            _ => Header::InMark,
        };
        Self { references, header, stream: kind / 5 % 2 == 0, spread: kind ^ number }
    }

    /// Whether object headers are described as in JDK 27.
    fn is_newest(self) -> bool {
        self.spread.is_multiple_of(2)
    }

    /// Returns the field in which an object's header identifies its class, if the tables have one.
    fn header_row(self) -> Option<&'static str> {
        match self.header {
            Header::Wide => Some("oopDesc::_metadata._klass"),
            Header::Narrow { .. } if self.is_newest() => Some("oopDesc::_compressed_klass"),
            Header::Narrow { .. } => Some("oopDesc::_metadata._compressed_klass"),
            Header::InMark => None,
        }
    }

    fn flags(self) -> Flags {
        let references = match self.references {
            References::Narrow { .. } => "UseCompressedOops",
            References::Wide => "UseParallelGC",
            References::Coloured { .. } => "UseZGC",
        };
        let header = match self.header {
            Header::Wide => ("UseCompressedClassPointers", "false"),
            // JDK 27 no longer has this flag.
            Header::Narrow { .. } if self.is_newest() => ("UseSerialGC", "true"),
            Header::Narrow { .. } => ("UseCompressedClassPointers", "true"),
            Header::InMark => ("UseCompactObjectHeaders", "true"),
        };
        let flag = |(name, value): (&str, &str)| Flag { name: name.to_owned(), value: value.to_owned(), origin: None };
        Flags { list: [(references, "true"), header].map(flag).into() }
    }
}

impl Loaded {
    /// A JVM without classes.
    pub(in super::super) fn of(form: Form) -> Self {
        Self::within(MadeUpMemory::default(), form)
    }

    fn within(mut memory: MadeUpMemory, form: Form) -> Self {
        let statics = memory.place(128, 8);
        let class_base = memory.place(8, 4096);
        let mut loaded =
            Self { memory, form, classes: Vec::new(), loaders: Vec::new(), statics, class_base, heap: HEAP };
        let (base, shift) = match form.references {
            References::Narrow { base, shift } => (base, u64::from(shift)),
            _ => (0, 0),
        };
        let words = [0, base, shift, class_base, u64::from(loaded.class_shift())];
        for (n, word) in (0..).zip(words) {
            loaded.memory.word(statics + 8 * n, word);
        }
        loaded.memory.half(statics + 64, loaded.at(3) as u32);
        loaded
    }

    /// An offset that depends on the spread and differs from the other offsets.
    pub(super) fn at(&self, n: u64) -> u64 {
        8 * ((n + self.form.spread) % 7)
    }

    fn class_shift(&self) -> u32 {
        match self.form.header {
            Header::Wide => 0,
            Header::Narrow { shift } => shift,
            Header::InMark => 10,
        }
    }

    fn rows(&self) -> Vec<(&'static str, Says)> {
        let (at, of) = (|n| Says::Offset(self.at(n)), |n: u64| Says::Address(self.statics + 8 * n));
        let mut rows = vec![
            ("ClassLoaderDataGraph::_head", of(0)),
            ("CompressedOops::_base", of(1)),
            ("CompressedOops::_shift", of(2)),
            ("CompressedKlassPointers::_base", of(3)),
            ("CompressedKlassPointers::_shift", of(4)),
            ("ZGlobalsForVMStructs::_instance_p", of(9)),
            ("java_lang_Class::_klass_offset", of(8)),
            ("ClassLoaderData::_next", at(0)),
            ("ClassLoaderData::_klasses", at(1)),
            ("ClassLoaderData::_has_class_mirror_holder", at(2)),
            ("ClassLoaderData::_class_loader", Says::Offset(64)),
            ("Klass::_next_link", at(0)),
            ("Klass::_name", at(1)),
            ("Klass::_java_mirror", at(2)),
            ("Klass::_super", at(6)),
            ("InstanceKlass::_constants", at(3)),
            ("InstanceKlass::_java_fields_count", at(4)),
            ("Symbol::_length", Says::Offset(4)),
            ("Symbol::_body[0]", Says::Offset(6)),
            ("ConstantPool", Says::Size(24 + self.at(5))),
            ("Array<int>::_length", Says::Offset(0)),
            ("Array<u1>::_data", Says::Offset(4)),
            ("Array<u2>::_data", Says::Offset(4)),
        ];
        match self.form.stream {
            true => rows.extend([
                ("InstanceKlass::_fieldinfo_stream", at(5)),
                ("FieldInfo::FieldFlags::_ff_initialized", Says::Int(FLAGS[0].1)),
                ("FieldInfo::FieldFlags::_ff_generic", Says::Int(FLAGS[1].1)),
                ("FieldInfo::FieldFlags::_ff_contended", Says::Int(FLAGS[2].1)),
            ]),
            false => rows.push(("InstanceKlass::_fields", at(5))),
        }
        rows.extend(self.form.header_row().map(|name| (name, Says::Offset(8))));
        if let References::Coloured { .. } = self.form.references {
            rows.push(("ZGlobalsForVMStructs::_ZPointerLoadShift", Says::Offset(16)));
        }
        rows
    }

    /// Writes the tables of names and reads them as a reader does.
    pub(in super::super) fn hotspot(&mut self) -> HotSpot {
        let globals = self.memory.place(32, 8);
        let variable = self.memory.place(8, 8);
        self.memory.word(self.statics + 72, globals);
        self.memory.word(globals + 16, variable);
        self.memory.word(variable, 21);
        let (rows, spread) = (self.rows(), self.form.spread);
        let exported = describe(&mut self.memory, &rows, spread);
        let tables = Tables::read(&self.memory, exported).unwrap_or_else(|why| panic!("{why}"));
        HotSpot { tables, exited_allocated_at: None, metaspace_at: [None; 2] }
    }

    pub(in super::super) fn objects(&self, hotspot: &HotSpot) -> Objects {
        Objects::of(&hotspot.tables, &self.form.flags(), &self.memory).unwrap_or_else(|why| panic!("{why}"))
    }

    pub(in super::super) fn all(&self, hotspot: &HotSpot) -> Result<Vec<ClassLoader>, Unavailable> {
        let objects = Objects::of(&hotspot.tables, &self.form.flags(), &self.memory)?;
        let parent = loaders::parent(&self.memory, &objects)?;
        loaders::all(&self.memory, hotspot, (&objects, &parent), &[])
    }

    fn symbol(&mut self, text: &[u8]) -> u64 {
        let at = self.memory.place(6 + text.len() as u64, 8);
        self.memory.put(at + 4, &(text.len() as u16).to_le_bytes());
        self.memory.put(at + 6, text);
        at
    }

    /// The eight-byte word that refers to an object, as in a handle.
    fn word_of(&self, object: u64) -> u64 {
        match self.form.references {
            References::Coloured { bit: Some(bit) } => object << (13 + bit) | 1 << (12 + bit) | 0x5a0,
            References::Coloured { bit: None } => object << 21 | 0x3_05a0,
            _ => object,
        }
    }

    /// Makes a field refer to an object, or to none.
    pub(super) fn refer(&mut self, at: u64, object: u64) {
        match self.form.references {
            References::Narrow { .. } if object == 0 => self.memory.half(at, 0),
            References::Narrow { base, shift } => self.memory.half(at, ((object - base) >> shift) as u32),
            _ => self.memory.word(at, self.word_of(object)),
        }
    }

    fn handle(&mut self, object: u64) -> u64 {
        let (at, word) = (self.memory.place(8, 8), self.word_of(object));
        self.memory.word(at, word);
        at
    }

    pub(super) fn object(&mut self, class: u64, len: u64) -> u64 {
        let at = self.heap;
        self.heap += len.next_multiple_of(8);
        self.memory.put(at, &vec![0; len as usize]);
        let narrow = (class - self.class_base) >> self.class_shift();
        match self.form.header {
            Header::Wide => self.memory.word(at + 8, class),
            Header::Narrow { .. } => self.memory.half(at + 8, narrow as u32),
            Header::InMark => self.memory.word(at, narrow << 42 | 1),
        }
        at
    }

    pub(in super::super) fn loader_object(&mut self, class: u64, parent: u64) -> u64 {
        let object = self.object(class, 64);
        self.refer(object + PARENT_AT, parent);
        object
    }

    /// Adds a loader's data before all others: that of a hidden class, or of the loader's other classes.
    pub(in super::super) fn loader(&mut self, object: u64, hidden: bool) -> u64 {
        let data = self.memory.place(CLASS_BYTES, 8);
        if object != 0 {
            let handle = self.handle(object);
            self.memory.word(data + 64, handle);
        }
        let next = self.loaders.last().map_or(0, |loader| loader.data);
        self.memory.word(data + self.at(0), next);
        self.memory.put(data + self.at(2), &[u8::from(hidden)]);
        self.memory.word(self.statics, data);
        self.loaders.push(Loader { data, object, hidden });
        data
    }

    /// Adds a class before all others of the last loader.
    pub(in super::super) fn class(&mut self, name: &[u8], mut fields: Vec<Planted>) -> u64 {
        let step = 1 << self.class_shift().max(3);
        let at = self.memory.place(CLASS_BYTES, step);
        let loader = self.loaders.last().map_or(0, |loader| loader.data);
        let before = self.classes.last().filter(|class| class.loader == loader).map_or(0, |class| class.at);
        self.memory.word(at + self.at(0), before);
        let symbol = self.symbol(name);
        self.memory.word(at + self.at(1), symbol);
        self.memory.word(loader + self.at(1), at);
        let mirror = self.mirror(at, &mut fields);
        let handle = self.handle(mirror);
        self.memory.word(at + self.at(2), handle);
        self.fields(at, &fields);
        self.classes.push(Class { at, loader, name: name.to_owned(), fields });
        at
    }

    fn mirror(&mut self, class: u64, fields: &mut [Planted]) -> u64 {
        let mirror = self.heap;
        self.heap += MIRROR_BYTES;
        self.memory.put(mirror, &[0; MIRROR_BYTES as usize]);
        self.memory.word(mirror + self.at(3), class);
        for planted in fields.iter_mut().filter(|planted| planted.field.is_static) {
            let (at, value) = (mirror + planted.field.offset, planted.value);
            match planted.field.descriptor.as_str() {
                "J" => self.memory.word(at, value),
                "I" => self.memory.half(at, value as u32),
                _ => {
                    let atomic = self.classes.iter().find(|class| class.name == ATOMIC).map(|class| class.at);
                    let object = atomic.map_or(0, |atomic| self.object(atomic, 32));
                    if object != 0 {
                        self.memory.word(object + 16, value);
                    }
                    self.refer(at, object);
                }
            }
        }
        mirror
    }

    /// Writes the constant pool of a class and its fields, in this JVM's form.
    fn fields(&mut self, class: u64, fields: &[Planted]) {
        let size = 24 + self.at(5);
        let pool = self.memory.place(size + 16 * (fields.len() as u64 + 1), 8);
        self.memory.word(class + self.at(3), pool);
        let mut numbers: Vec<[u32; 4]> = Vec::new();
        for (n, planted) in (0..).zip(fields) {
            let texts = [self.symbol(planted.name.as_bytes()), self.symbol(planted.field.descriptor.as_bytes())];
            for (m, text) in (0..).zip(texts) {
                self.memory.word(pool + size + 8 * (2 * n + 1 + m), text);
            }
            let access = if planted.field.is_static { 8 | 0x10 } else { 2 };
            numbers.push([2 * n as u32 + 1, 2 * n as u32 + 2, planted.field.offset as u32, access]);
        }
        let bytes = if self.form.stream { stream(&numbers) } else { array(&numbers) };
        let at = self.memory.place(4 + bytes.len() as u64, 8);
        let length = if self.form.stream { bytes.len() } else { bytes.len() / 2 };
        self.memory.half(at, length as u32);
        self.memory.put(at + 4, &bytes);
        self.memory.word(class + self.at(5), at);
        self.memory.put(class + self.at(4), &(fields.len() as u16).to_le_bytes());
    }
}

/// A JVM whose classes are in this process's memory, for readers that take a process.
#[cfg(test)]
pub(crate) struct Resident {
    pub(crate) objects: Objects,
    _memory: Vec<u8>,
}

#[cfg(test)]
impl Resident {
    /// With this many classes, whose names are as long as one that is searched for.
    pub(crate) fn with_classes(classes: u64) -> Self {
        let mut bytes = vec![0; (classes * 512 + 64 * super::PAGE) as usize];
        let own = bytes.as_ptr() as u64;
        let form = Form { references: References::Wide, header: Header::Wide, stream: true, spread: 0 };
        let mut made = Loaded::within(MadeUpMemory::from(own.next_multiple_of(super::PAGE)), form);
        made.loader(0, false);
        (0..classes).for_each(|_| _ = made.class(b"java/nio/Bite", Vec::new()));
        let hotspot = made.hotspot();
        for (start, page) in made.memory.pages.range(own..made.memory.next) {
            bytes[(start - own) as usize..][..page.len()].copy_from_slice(&page[..]);
        }
        Self { objects: made.objects(&hotspot), _memory: bytes }
    }
}

/// Six 16-bit numbers per field (`fieldInfo.hpp` until JDK 20); the lowest bits of an offset tag it. Unnamed fields
/// injected by the JVM come after all counted ones.
fn array(fields: &[[u32; 4]]) -> Vec<u8> {
    let injected = [[1, 1, 12, 0]];
    let numbers = fields.iter().chain(&injected).flat_map(|[name, descriptor, offset, access]| {
        let packed = offset << 2 | 1;
        [*access, *name, *descriptor, 0, packed & 0xffff, packed >> 16].map(|number| number as u16)
    });
    numbers.flat_map(u16::to_le_bytes).collect()
}

/// Numbers of one to five bytes (`fieldInfo.hpp` since JDK 21). The first are the number of fields and of injected
/// ones. Each field then has a name, descriptor, offset, access, flags, and the values that the flags announce. A zero
/// byte ends the stream.
fn stream(fields: &[[u32; 4]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_number(&mut bytes, fields.len() as u32);
    write_number(&mut bytes, 0);
    for (n, field) in fields.iter().enumerate() {
        field.iter().for_each(|number| write_number(&mut bytes, *number));
        let set: Vec<i32> = FLAGS.iter().map(|(_, bit)| *bit).filter(|bit| n >> (bit / 2) & 1 == 1).collect();
        write_number(&mut bytes, set.iter().map(|bit| 1 << bit).sum());
        set.iter().for_each(|bit| write_number(&mut bytes, 70_000 * (*bit as u32 + 1)));
    }
    bytes.push(0);
    bytes
}

/// Same as `UNSIGNED5::write_uint`.
fn write_number(bytes: &mut Vec<u8>, number: u32) {
    const LOW: u32 = 191;
    let mut rest = number;
    for n in 0..5 {
        if rest < LOW || n == 4 {
            return bytes.push(1 + rest as u8);
        }
        rest -= LOW;
        bytes.push((1 + LOW + rest % 64) as u8);
        rest /= 64;
    }
}

pub(in super::super) fn planted(name: &str, descriptor: &str, offset: u64, is_static: bool, value: u64) -> Planted {
    Planted { name: name.to_owned(), field: Field { offset, descriptor: descriptor.to_owned(), is_static }, value }
}

pub(in super::super) fn loaded(plan: &mut PlanBytes) -> Loaded {
    let mut loaded = Loaded::of(Form::of(plan));
    loaded.loader(0, false);
    loaded.class(ATOMIC, vec![planted("value", "J", 16, false, 0)]);
    let mut of = loaded.class(
        LOADER,
        vec![
            planted("name", "Ljava/lang/String;", 16, false, 0),
            planted("parent", "Ljava/lang/ClassLoader;", PARENT_AT, false, 0),
        ],
    );
    while !plan.is_over() {
        let (kind, number) = (plan.next(), plan.next());
        if kind % 4 == 0 {
            let parent = loaded.loaders[number as usize % loaded.loaders.len()].object;
            let hidden = number % 5 == 0;
            let object = if hidden { parent } else { loaded.loader_object(of, parent) };
            loaded.loader(object, hidden);
            continue;
        }
        let fields = (0..plan.next() % 9).map(|n| {
            let value = number << (8 * (n % 4)) | kind;
            let offset = 64 + 16 * n;
            match (number + n) % 4 {
                0 => planted(&format!("f{n}"), "J", offset, true, value),
                1 => planted(&format!("count{n}"), "I", offset, true, value),
                2 => planted(&format!("COUNTER{n}"), "Ljava/util/concurrent/atomic/AtomicLong;", offset, true, value),
                _ => planted(&format!("own{n}"), "J", offset << 8, false, value),
            }
        });
        let class = loaded.class(NAMES[number as usize % NAMES.len()], fields.collect());
        of = if kind % 3 == 0 { class } else { of };
    }
    loaded
}

/// Checks that the readers find the classes of an unchanged JVM as planted.
pub(in super::super) fn laws(loaded: &Loaded, hotspot: &HotSpot) {
    let (memory, objects) = (&loaded.memory, loaded.objects(hotspot));
    let classes = objects.classes();
    let mut walked = Vec::new();
    let all = classes.walk(memory, |loader, class| walked.push((loader, class)));
    assert_eq!(all, Ok(()));
    // Loaders come newest first, and so do the classes of each loader.
    let mut expected: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    for (n, class) in loaded.classes.iter().enumerate() {
        let loader = loaded.loaders.iter().position(|loader| loader.data == class.loader).unwrap_or_default();
        expected.insert((loader, n), (class.loader, class.at));
    }
    assert_eq!(walked, expected.into_values().rev().collect::<Vec<_>>());
    let mut all = walked.iter().map(|(_, class)| *class);
    let atomic = all.find(|class| classes.name(memory, *class).is_some_and(|name| name.as_bytes() == ATOMIC));
    for class in &loaded.classes {
        assert_eq!(classes.name(memory, class.at).as_deref(), Some(&*String::from_utf8_lossy(&class.name)));
        assert_eq!(classes.field(memory, class.at, "nobody"), None);
        for planted in &class.fields {
            assert_eq!(classes.field(memory, class.at, &planted.name).as_ref(), Some(&planted.field));
            let number = objects.number(memory, class.at, &planted.field).ok();
            let refers = objects.refers(memory, class.at, &planted.field).ok();
            let inner = atomic.and_then(|atomic| Some((atomic, classes.field(memory, atomic, "value")?)));
            let within = inner.and_then(|(atomic, value)| {
                objects.number_within(memory, (class.at, &planted.field), (atomic, &value)).ok()
            });
            match (planted.field.is_static, planted.field.descriptor.as_str()) {
                (false, _) => assert_eq!((number, refers, within), (None, None, None)),
                (true, "J") => assert_eq!(number, Some(planted.value)),
                (true, "I") => assert_eq!(number, Some(u64::from(planted.value as u32))),
                (true, _) => assert_eq!((number, refers, within), (None, Some(true), Some(planted.value))),
            }
        }
    }
    loader_laws(loaded, hotspot);
}

/// Each loader with classes has as many as were planted, and a planted parent.
fn loader_laws(loaded: &Loaded, hotspot: &HotSpot) {
    let read = loaded.all(hotspot).unwrap_or_else(|why| panic!("{why}"));
    let mut expected: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for class in &loaded.classes {
        let Some(loader) = loaded.loaders.iter().find(|loader| loader.data == class.loader) else { continue };
        let counts = expected.entry(loader.object).or_default();
        *counts = (counts.0 + 1, counts.1 + u64::from(loader.hidden));
    }
    let read: Vec<(u64, u64)> = read.iter().map(|loader| (loader.classes, loader.hidden_classes)).collect();
    assert_eq!(read, expected.into_values().collect::<Vec<_>>());
}

/// For fuzzing and tests: reads a JVM made from the first half of the input, and again after the second half has
/// changed some words. Panics if the result differs from the plan, or reading does not end.
pub(crate) fn check(input: &[u8]) {
    const ASKED_MAX: u64 = 1 << 30;
    let (plan, changes) = halves(input);
    let mut loaded = loaded(&mut PlanBytes::of(plan));
    let hotspot = loaded.hotspot();
    laws(&loaded, &hotspot);
    let before = loaded.memory.asked();
    if loaded.memory.damage(changes) {
        let _ = loaded.all(&hotspot);
        if let Ok(objects) = Objects::of(&hotspot.tables, &loaded.form.flags(), &loaded.memory) {
            read_all(&loaded, &objects);
        }
    }
    let asked = loaded.memory.asked() - before;
    assert!(asked < ASKED_MAX, "{asked} bytes");
}

/// Reads everything that was planted, whatever is there by now.
fn read_all(loaded: &Loaded, objects: &Objects) {
    let (memory, classes) = (&loaded.memory, objects.classes());
    let mut counters = DirectCounters::of(objects.clone());
    let _ = counters.look(memory);
    let _ = counters.read(memory);
    for class in &loaded.classes {
        let fields = class.fields.iter().filter_map(|planted| classes.field(memory, class.at, &planted.name));
        for field in fields {
            let _ = objects.number(memory, class.at, &field);
            let _ = objects.refers(memory, class.at, &field);
            let _ = objects.number_within(memory, (class.at, &field), (class.at, &field));
        }
    }
}
