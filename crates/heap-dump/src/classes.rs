//! The classes of a dump: names, superclasses, and the positions of references in their instances.

use crate::layout::{FieldNames, Fields, HOLDER, Layout};
use crate::records::{ClassDump, Field, Type, number};
use loadline_base::java_names::java_name;
use std::collections::HashMap;

/// The class of objects whose class is not in the dump.
pub(crate) const UNKNOWN: u32 = 0;
/// The classes of primitive arrays follow, in the order of the format's tags: a class's number is its tag minus 3.
const PRIMITIVES: [&str; 8] = ["boolean[]", "char[]", "float[]", "double[]", "byte[]", "short[]", "int[]", "long[]"];
const FIRST_PRIMITIVE: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Meaning {
    #[default]
    None,
    /// A `java.lang.ref.Reference` that does not hold its referent.
    Weak,
    ClassLoader,
    Thread,
}

/// Classes whose instances belong to one `java.lang.Class`: its members, annotations, and generic signature.
const OF_REFLECTION: [&str; 3] = [
    "java.lang.Class$ReflectionData",
    "java.lang.Class$AnnotationData",
    "sun.reflect.generics.repository.ClassRepository",
];

/// Roles of the classes between a thread and the objects that it holds, and of others that a dump does not explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ClassRole {
    #[default]
    None,
    ThreadLocalMap,
    ThreadLocalTable,
    ThreadLocalEntry,
    /// Objects that only a field of a `java.lang.Class` refers to. Dumps omit these fields.
    Reflection,
}

#[derive(Debug, Default)]
pub(crate) struct Class {
    pub(crate) id: u64,
    /// As in Java: `java.util.HashMap$Node[]`.
    pub(crate) name: String,
    parent_id: u64,
    pub(crate) parent: Option<u32>,
    pub(crate) loader: u64,
    pub(crate) kept: [u64; 2],
    pub(crate) statics: Vec<Field>,
    fields: Vec<Field>,
    /// The positions of the references among the bytes of its own fields.
    references: Vec<u32>,
    /// Size of its own fields in a dump.
    own_bytes: u32,
    /// The nearest superclass with fields.
    next: Option<u32>,
    pub(crate) meaning: Meaning,
    pub(crate) part: ClassRole,
    pub(crate) instance_bytes: u64,
    /// Shallow bytes of the class itself.
    pub(crate) object_bytes: u64,
    /// Whether it stays loaded until the JVM exits, because its loader is one of the JVM's own.
    pub(crate) is_permanent: bool,
}

/// All classes of a dump, starting with [`UNKNOWN`] and the primitive arrays.
#[derive(Default)]
pub(crate) struct Classes {
    all: Vec<Class>,
    by_id: HashMap<u64, u32>,
    id_bytes: u32,
    /// `java.lang.Class`, `Thread`, `String`, `ref.Reference`.
    pub(crate) class: Option<u32>,
    pub(crate) string: Option<u32>,
    thread: Option<u32>,
    reference: Option<u32>,
    /// The position of `referent` among the field bytes of `java.lang.ref.Reference`.
    referent: Option<u32>,
}

#[derive(Default)]
pub(crate) struct Names {
    text: Vec<u8>,
    at: HashMap<u64, (u32, u32)>,
}

impl Names {
    pub(crate) fn insert(&mut self, id: u64, text: &[u8]) {
        if let (Ok(begin), Ok(length)) = (u32::try_from(self.text.len()), u32::try_from(text.len())) {
            self.text.extend_from_slice(text);
            self.at.insert(id, (begin, length));
        }
    }

    /// The approximate memory that this structure uses.
    pub(crate) fn bytes(&self) -> u64 {
        (self.text.capacity() + self.at.capacity() * 17) as u64
    }

    pub(crate) fn is(&self, id: u64, text: &str) -> bool {
        self.raw(id) == Some(text.as_bytes())
    }

    /// The text, or `?` for a name that the dump lacks.
    pub(crate) fn get(&self, id: u64) -> String {
        self.raw(id).map_or_else(|| "?".to_owned(), |text| String::from_utf8_lossy(text).into_owned())
    }

    fn raw(&self, id: u64) -> Option<&[u8]> {
        let (begin, length) = self.at.get(&id)?;
        self.text.get(*begin as usize..*begin as usize + *length as usize)
    }
}

pub(crate) fn class_of_primitives(tag: u8) -> u32 {
    u32::from(tag).saturating_sub(FIRST_PRIMITIVE) + 1
}

impl Classes {
    /// Builds the list from the dump's classes and the names of loaded ones, keyed by class.
    pub(crate) fn new(dumped: Vec<ClassDump>, loaded: &HashMap<u64, u64>, names: &Names, id_bytes: u32) -> Self {
        let unknown = std::iter::once("(class missing from the dump)");
        let fixed = unknown.chain(PRIMITIVES).map(|name| Class { name: name.to_owned(), ..Class::default() });
        let mut classes = Self { all: fixed.collect(), id_bytes, ..Self::default() };
        for dump in dumped {
            classes.add(dump, loaded, names);
        }
        // Loaded classes that are not in the dump.
        let mut rest: Vec<_> = loaded.keys().filter(|id| !classes.by_id.contains_key(id)).copied().collect();
        rest.sort_unstable();
        for id in rest {
            classes.add(ClassDump { id, ..ClassDump::default() }, loaded, names);
        }
        classes
    }

    fn add(&mut self, dump: ClassDump, loaded: &HashMap<u64, u64>, names: &Names) {
        let index = self.all.len() as u32;
        if *self.by_id.entry(dump.id).or_insert(index) != index {
            return;
        }
        let name = loaded
            .get(&dump.id)
            .map_or_else(|| format!("(unnamed class {:#x})", dump.id), |name| java_name(&names.get(*name)));
        match name.as_str() {
            "java.lang.Class" => self.class = Some(index),
            "java.lang.String" => self.string = Some(index),
            "java.lang.Thread" => self.thread = Some(index),
            "java.lang.ref.Reference" => self.reference = Some(index),
            _ => {}
        }
        let mut references = Vec::new();
        let mut own_bytes = 0;
        for field in &dump.fields {
            if self.reference == Some(index) && names.is(field.name, "referent") {
                self.referent = Some(own_bytes);
            }
            if field.kind == Type::Reference {
                references.push(own_bytes);
            }
            own_bytes += field.kind.bytes(self.id_bytes);
        }
        let ClassDump { id, loader, kept, statics, fields, parent } = dump;
        let part = match name.as_str() {
            "java.lang.ThreadLocal$ThreadLocalMap" => ClassRole::ThreadLocalMap,
            "java.lang.ThreadLocal$ThreadLocalMap$Entry[]" => ClassRole::ThreadLocalTable,
            "java.lang.ThreadLocal$ThreadLocalMap$Entry" => ClassRole::ThreadLocalEntry,
            name if OF_REFLECTION.contains(&name) => ClassRole::Reflection,
            _ => ClassRole::None,
        };
        let class = Class { id, name, parent_id: parent, loader, kept, statics, fields, ..Class::default() };
        self.all.push(Class { references, own_bytes, part, ..class });
    }

    /// The number of classes, including the predefined ones.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Class)> {
        (0..).zip(&self.all)
    }

    pub(crate) fn get(&self, index: u32) -> &Class {
        self.all.get(index as usize).unwrap_or(&self.all[UNKNOWN as usize])
    }

    /// The class with an identifier, or [`UNKNOWN`].
    pub(crate) fn find(&self, id: u64) -> u32 {
        self.by_id.get(&id).copied().unwrap_or(UNKNOWN)
    }

    /// Resolves superclasses, sizes, and roles.
    pub(crate) fn resolve(&mut self, layout: Layout, names: &Names) {
        let order = self.parents_first();
        let mut laid: Vec<Option<Fields>> = vec![None; self.all.len()];
        for index in order {
            let parent = self.all[index as usize].parent;
            let above = parent.and_then(|parent| laid[parent as usize]).unwrap_or_else(|| layout.no_fields());
            let class = &self.all[index as usize];
            let fields = layout.with_fields(above, class.fields.iter().map(|field| field.kind));
            let has_holder = class.fields.iter().any(|field| names.is(field.name, HOLDER));
            let own = if has_holder { FieldNames::WithHolder } else { FieldNames::Others };
            let fields = layout.with_injected(fields, &class.name, own);
            laid[index as usize] = Some(fields);
            let (next, meaning) = parent.map_or((None, Meaning::None), |parent| {
                let class = &self.all[parent as usize];
                (if class.own_bytes > 0 { Some(parent) } else { class.next }, class.meaning)
            });
            let class = &mut self.all[index as usize];
            class.next = next;
            class.instance_bytes = layout.instance(fields);
            class.meaning = match class.name.as_str() {
                "java.lang.ref.WeakReference" | "java.lang.ref.PhantomReference" => Meaning::Weak,
                "java.lang.ClassLoader" => Meaning::ClassLoader,
                "java.lang.Thread" => Meaning::Thread,
                _ => meaning,
            };
        }
        let of_class = self.class.and_then(|class| laid[class as usize]).unwrap_or_else(|| layout.no_fields());
        for class in &mut self.all {
            let own = class.statics.iter().filter(|field| !names.is(field.name, CONSTANTS)).map(|field| field.kind);
            class.object_bytes = layout.class_object(of_class, own);
        }
    }

    /// All classes, each after its superclass. A cycle of superclasses is cut where it is first found.
    fn parents_first(&mut self) -> Vec<u32> {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitState {
            No,
            Begun,
            Done,
        }
        let mut seen = vec![VisitState::No; self.all.len()];
        let mut order = Vec::with_capacity(self.all.len());
        let mut chain = Vec::new();
        for start in 0..self.all.len() as u32 {
            let mut at = start;
            while seen[at as usize] == VisitState::No {
                seen[at as usize] = VisitState::Begun;
                chain.push(at);
                match self.by_id.get(&self.all[at as usize].parent_id).copied() {
                    Some(parent) if seen[parent as usize] != VisitState::Begun => {
                        self.all[at as usize].parent = Some(parent);
                        at = parent;
                    }
                    _ => break,
                }
            }
            while let Some(index) = chain.pop() {
                seen[index as usize] = VisitState::Done;
                order.push(index);
            }
        }
        order
    }

    /// Marks the classes that are never unloaded. `builtin` identifies the JVM's own loaders.
    pub(crate) fn mark_permanent(&mut self, sticky: &[u64], builtin: impl Fn(u64) -> bool) {
        for class in &mut self.all {
            class.is_permanent = class.loader == 0 || builtin(class.loader);
        }
        for id in sticky {
            if let Some(index) = self.by_id.get(id) {
                self.all[*index as usize].is_permanent = true;
            }
        }
    }

    /// The references among an instance's field values, except the referent of a weak reference.
    #[inline]
    pub(crate) fn references(&self, class: u32, values: &[u8], mut each: impl FnMut(u64)) {
        let is_weak = self.get(class).meaning == Meaning::Weak;
        let id_bytes = self.id_bytes as usize;
        let (mut at, mut base) = (Some(class), 0usize);
        while let Some(index) = at {
            let class = &self.all[index as usize];
            let leave_out = if is_weak && Some(index) == self.reference { self.referent } else { None };
            for offset in &class.references {
                let begin = base + *offset as usize;
                let Some(value) = values.get(begin..begin + id_bytes) else { return };
                if leave_out != Some(*offset) {
                    each(number(value));
                }
            }
            base += class.own_bytes as usize;
            at = class.next.filter(|_| base < values.len());
        }
    }

    /// The fields of an object of `class`, those of its superclasses last: declaring class, field, and value as bytes,
    /// if present.
    fn fields<'a>(&self, class: u32, values: &'a [u8]) -> impl Iterator<Item = (u32, &Field, Option<&'a [u8]>)> {
        let classes = std::iter::successors(Some((class, 0usize)), move |(index, base)| {
            let class = &self.all[*index as usize];
            let base = base + class.own_bytes as usize;
            Some((class.next.filter(|_| base < values.len())?, base))
        });
        classes.flat_map(move |(index, base)| {
            let mut end = base;
            self.all[index as usize].fields.iter().map(move |field| {
                let begin = end;
                end += field.kind.bytes(self.id_bytes) as usize;
                (index, field, values.get(begin..end))
            })
        })
    }

    /// The field of `class` or a superclass whose value is `value`: declaring class and name.
    pub(crate) fn field_with(&self, class: u32, values: &[u8], value: u64) -> Option<(u32, u64)> {
        let has = |field: &Field, bytes| field.kind == Type::Reference && number(bytes) == value;
        let mut fields = self.fields(class, values);
        let (declaring, field, _) = fields.find(|(_, field, bytes)| bytes.is_some_and(|bytes| has(field, bytes)))?;
        Some((declaring, field.name))
    }

    /// The value of the field `name` declared by the class `declaring`, as bytes.
    fn value<'a>(&self, class: u32, values: &'a [u8], declaring: u32, name: &str, names: &Names) -> Option<&'a [u8]> {
        self.fields(class, values).find(|(index, field, _)| *index == declaring && names.is(field.name, name))?.2
    }

    pub(crate) fn thread_name(&self, class: u32, values: &[u8], names: &Names) -> Option<u64> {
        self.value(class, values, self.thread?, "name", names).map(number)
    }

    /// The array that contains a string's characters, and their encoding.
    pub(crate) fn characters(&self, values: &[u8], names: &Names) -> Option<(u64, Coder)> {
        let string = self.string?;
        let array = self.value(string, values, string, "value", names).map(number)?;
        let coder = self.value(string, values, string, "coder", names);
        Some((array, if coder == Some(&[1]) { Coder::Utf16 } else { Coder::Latin1 }))
    }

    /// Returns the object that a weak reference refers to without holding it.
    pub(crate) fn referent(&self, class: u32, values: &[u8], names: &Names) -> Option<u64> {
        self.value(class, values, self.reference?, "referent", names).map(number)
    }
}

/// HotSpot's name for a class's constants among its statics. They are not stored in the class.
const CONSTANTS: &str = "<resolved_references>";

/// How a string's bytes encode characters (`java.lang.String.coder`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coder {
    Latin1,
    Utf16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_primitives_have_classes() {
        assert_eq!(class_of_primitives(4), 1);
        assert_eq!(PRIMITIVES[class_of_primitives(8) as usize - 1], "byte[]");
        assert_eq!(class_of_primitives(11), 8);
    }

    #[test]
    fn a_cycle_of_superclasses_is_cut() {
        let dump = |id, parent| ClassDump {
            id,
            parent,
            fields: vec![Field { name: 0, kind: Type::Reference, value: 0 }],
            ..ClassDump::default()
        };
        let mut classes =
            Classes::new(vec![dump(1, 2), dump(2, 3), dump(3, 1), dump(4, 4)], &HashMap::new(), &Names::default(), 8);
        classes.resolve(Layout::default(), &Names::default());
        let mut seen = Vec::new();
        classes.references(classes.find(1), &[7; 64], |value| seen.push(value));
        assert_eq!(seen.len(), 3);
        assert_eq!(classes.get(classes.find(4)).instance_bytes, 16);
    }
}
