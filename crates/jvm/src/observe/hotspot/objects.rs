//! Objects in the Java heap that a static field leads to. Collectors move them, so each is verified when it is read: a
//! mirror refers to its class, an object's header to its own. Any other object is rejected rather than guessed at; a
//! retry succeeds once it has stopped moving.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::classes::{Classes, Field};
use super::flags::Flags;
use super::{SOURCE, Tables};

/// How this JVM represents references to objects and classes.
#[derive(Debug, Clone)]
pub struct Objects {
    classes: Classes,
    class_mirror: u64,
    /// Offset of the class address in a mirror.
    mirror_class: u64,
    /// Offset of the class in an object.
    header_class: u64,
    header: HeaderForm,
    references: ReferenceForm,
    class_base: u64,
    class_shift: u32,
    /// Offset of the object size in a class; `None` if this JVM does not describe it.
    layout: Option<u64>,
}

/// The classes of an object and of another object that it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Linked {
    /// Current address of the object; 0 if there is none.
    pub object: u64,
    /// Its own class; `None` if there is no object.
    pub class: Option<u64>,
    /// Class of the other object; `None` if the reference is null.
    pub other: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderForm {
    /// By its address.
    Wide,
    /// By 32 bits.
    Narrow,
    /// In the upper 22 bits of the mark (`UseCompactObjectHeaders`, JDK 24 and newer, the default since 27).
    InMark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReferenceForm {
    /// 32 bits.
    Narrow { base: u64, shift: u32 },
    /// An address.
    Wide,
    /// An address above the color in ZGC's low bits (JDK 21 and newer); the shift is in a JVM variable.
    Coloured { shift: u64 },
}

/// An array: its element kind, header size, binary logarithm of the element size, and length.
struct Array {
    has_objects: bool,
    header: u64,
    shift: u32,
    length: u32,
}

/// The base and shift of compressed references and class pointers, by the names in each release.
const OOP_BASE: [&str; 3] =
    ["CompressedOops::_base", "CompressedOops::_narrow_oop._base", "Universe::_narrow_oop._base"];
const OOP_SHIFT: [&str; 3] =
    ["CompressedOops::_shift", "CompressedOops::_narrow_oop._shift", "Universe::_narrow_oop._shift"];
const KLASS_BASE: [&str; 3] =
    ["CompressedKlassPointers::_base", "CompressedKlassPointers::_narrow_klass._base", "Universe::_narrow_klass._base"];
const KLASS_SHIFT: [&str; 3] = [
    "CompressedKlassPointers::_shift",
    "CompressedKlassPointers::_narrow_klass._shift",
    "Universe::_narrow_klass._shift",
];

/// Bits 12 to 15 of a ZGC colored pointer: one is set, and determines how far the address is shifted
/// (`zAddress_x86.hpp`).
const REMAPPED: u64 = 12;

impl Objects {
    /// Looks up how this JVM refers to objects and classes. `flags` contains the flags in effect.
    pub fn of(tables: &Tables, flags: &Flags, memory: &dyn Memory) -> Result<Self, Unavailable> {
        let word = |fields: &[&str]| memory.u64(tables.address(fields)?).ok_or_else(unread);
        let half = |fields: &[&str]| memory.u32(tables.address(fields)?).ok_or_else(unread);
        let is_on = |name: &str| flags.is_on(name).unwrap_or(false);
        let references = if is_on("UseCompressedOops") {
            ReferenceForm::Narrow { base: word(&OOP_BASE)?, shift: half(&OOP_SHIFT)? }
        } else {
            const SHIFT: &str = "ZGlobalsForVMStructs::_ZPointerLoadShift";
            match tables.offset(&[SHIFT]) {
                // JDK 21 to 23 have both kinds of ZGC; pointers of the older one are plain addresses.
                Ok(offset) if is_on("UseZGC") && flags.is_on("ZGenerational") != Some(false) => {
                    let globals = word(&["ZGlobalsForVMStructs::_instance_p"])?;
                    ReferenceForm::Coloured { shift: globals.checked_add(offset).ok_or_else(unread)? }
                }
                _ => ReferenceForm::Wide,
            }
        };
        // JDK 27 no longer has this flag: its class pointers are always compressed.
        let compressed = flags.is_on("UseCompressedClassPointers").unwrap_or(true);
        let (header, header_class) = match () {
            () if is_on("UseCompactObjectHeaders") => (HeaderForm::InMark, 0),
            () if compressed => {
                let names = ["oopDesc::_compressed_klass", "oopDesc::_metadata._compressed_klass"];
                (HeaderForm::Narrow, tables.offset(&names)?)
            }
            () => (HeaderForm::Wide, tables.offset(&["oopDesc::_metadata._klass"])?),
        };
        let (class_base, class_shift) =
            if header == HeaderForm::Wide { (0, 0) } else { (word(&KLASS_BASE)?, half(&KLASS_SHIFT)?) };
        Ok(Self {
            classes: Classes::of(tables)?,
            class_mirror: tables.offset(&["Klass::_java_mirror"])?,
            mirror_class: u64::from(half(&["java_lang_Class::_klass_offset"])?),
            header_class,
            header,
            references,
            class_base,
            class_shift,
            layout: tables.offset(&["Klass::_layout_helper"]).ok(),
        })
    }

    /// Loaders and classes.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Reads the number in a static field of a class, in the size of its type. Fails if the class's mirror is being
    /// moved.
    pub fn number(&self, memory: &dyn Memory, class: u64, field: &Field) -> Result<u64, Unavailable> {
        self.static_at(memory, class, field).and_then(|at| number_at(memory, at, &field.descriptor)).ok_or_else(moved)
    }

    /// Whether a static field is not null. Fails if the class's mirror is being moved.
    pub fn refers(&self, memory: &dyn Memory, class: u64, field: &Field) -> Result<bool, Unavailable> {
        let object = self.static_at(memory, class, field).and_then(|at| self.reference(memory, at));
        object.map(|object| object != 0).ok_or_else(moved)
    }

    /// Reads a number within the object that a static field of a class refers to. The object must be of class `inner`.
    /// Fails if the mirror or the object is being moved, or there is no object yet.
    pub fn number_within(
        &self,
        memory: &dyn Memory,
        (class, field): (u64, &Field),
        (inner, inner_field): (u64, &Field),
    ) -> Result<u64, Unavailable> {
        let read = || {
            let at = self.static_at(memory, class, field)?;
            let object = self.reference(memory, at).filter(|object| *object != 0)?;
            (self.class_of(memory, object)? == inner).then_some(())?;
            let number = number_at(memory, object.checked_add(inner_field.offset)?, &inner_field.descriptor)?;
            // As far as can be detected, nothing else took its place.
            (self.reference(memory, at)? == object).then_some(number)
        };
        read().ok_or_else(moved)
    }

    /// The class of the object that a handle refers to, and that of the object in one of its fields; `None` for null.
    /// The caller must verify that they are classes: while objects move, the values may be anything. Fails if one of
    /// them is being moved.
    pub fn class_by_handle(&self, memory: &dyn Memory, handle: u64, field: &Field) -> Result<Linked, Unavailable> {
        let read = || {
            let word = memory.u64(handle)?;
            if word == 0 {
                return Some(Linked::default());
            }
            let object = self.address(memory, word)?;
            let class = self.class_of(memory, object)?;
            let other = match self.reference(memory, object.checked_add(field.offset)?)? {
                0 => None,
                other => Some(self.class_of(memory, other)?),
            };
            Some(Linked { object, class: Some(class), other })
        };
        read().ok_or_else(moved)
    }

    /// The object that another object's field refers to; `None` if it is null or cannot be read. The caller verifies
    /// its class with [`Self::class_of`].
    pub(super) fn follow(&self, memory: &dyn Memory, object: u64, field: &Field) -> Option<u64> {
        self.follow_at(memory, object.checked_add(field.offset)?)
    }

    /// The object that the reference at this address points to; `None` as for [`Self::follow`].
    pub(super) fn follow_at(&self, memory: &dyn Memory, at: u64) -> Option<u64> {
        self.reference(memory, at).filter(|object| *object != 0)
    }

    pub(super) fn of_handle(&self, memory: &dyn Memory, handle: u64) -> Option<u64> {
        self.address(memory, memory.u64(handle)?).filter(|object| *object != 0)
    }

    /// The object that a static field refers to; `None` as for [`Self::follow`].
    pub(super) fn static_object(&self, memory: &dyn Memory, class: u64, field: &Field) -> Option<u64> {
        self.follow_at(memory, self.static_at(memory, class, field)?)
    }

    pub(super) fn number_in(&self, memory: &dyn Memory, object: u64, field: &Field) -> Option<u64> {
        number_at(memory, object.checked_add(field.offset)?, &field.descriptor)
    }

    /// A class's `Klass::layout_helper`: positive for ordinary objects, with their size and a flag in the lowest bit;
    /// negative for arrays.
    pub(super) fn layout_of(&self, memory: &dyn Memory, class: u64) -> Option<i32> {
        Some(memory.u32(class.checked_add(self.layout?)?)?.cast_signed())
    }

    /// An array's layout according to its class (`Klass::layout_helper`, JDK 11–27). The two highest bits are `0b10`
    /// for object arrays and `0b11` for primitive ones. The third byte is the header size; the lowest, the binary
    /// logarithm of the element size. `None` if the object is not an array.
    fn array(&self, memory: &dyn Memory, array: u64) -> Option<Array> {
        let layout = self.layout_of(memory, self.class_of(memory, array)?)?.cast_unsigned();
        (layout >> 31 == 1).then_some(())?;
        let length = memory.u32(array.checked_add(self.length_at())?)?;
        let (header, shift) = (u64::from(layout >> 16 & 0xff), layout & 0x3f);
        Some(Array { has_objects: layout >> 30 == 0b10, header, shift, length })
    }

    /// The length of an object array; `None` for anything else.
    pub(super) fn references_in(&self, memory: &dyn Memory, array: u64) -> Option<u64> {
        self.array(memory, array).filter(|array| array.has_objects).map(|array| array.length.into())
    }

    /// Returns the offset of an array's length (`arrayOopDesc`, JDK 11–27).
    fn length_at(&self) -> u64 {
        match self.header {
            HeaderForm::Wide => 16,
            HeaderForm::Narrow => 12,
            HeaderForm::InMark => 8,
        }
    }

    /// Bytes of an array with its header; `None` if the object is not an array.
    pub(super) fn array_size(&self, memory: &dyn Memory, array: u64) -> Option<u64> {
        let Array { header, shift, length, .. } = self.array(memory, array)?;
        let bytes = u64::from(length).checked_shl(shift).filter(|_| shift <= 3)?.checked_add(header)?;
        bytes.checked_next_multiple_of(8)
    }

    /// The contents of a byte array; `None` if it is longer than `most`, and for any other object.
    pub(super) fn bytes_of(&self, memory: &dyn Memory, array: u64, most: usize) -> Option<Vec<u8>> {
        let Array { has_objects, header, shift, length } = self.array(memory, array)?;
        // A primitive array with one-byte elements.
        (!has_objects && shift == 0 && length as usize <= most).then_some(())?;
        let mut bytes = vec![0; length as usize];
        let first = array.checked_add(header)?;
        (bytes.is_empty() || memory.read(first, &mut bytes)).then_some(bytes)
    }

    /// The objects that an array refers to, without nulls; `None` for more than `most` elements. The elements follow
    /// the length, aligned to their size (JDK 11–27, with compressed class pointers).
    pub(super) fn elements(&self, memory: &dyn Memory, array: u64, most: u32) -> Option<Vec<u64>> {
        (self.header != HeaderForm::Wide).then_some(())?;
        let (length_at, narrow) = (self.length_at(), matches!(self.references, ReferenceForm::Narrow { .. }));
        let size = if narrow { 4 } else { 8 };
        let length = memory.u32(array.checked_add(length_at)?).filter(|length| *length <= most)?;
        let first = array.checked_add((length_at + 4).next_multiple_of(size))?;
        let at = |n: u32| self.reference(memory, first.checked_add(u64::from(n) * size)?);
        (0..length).map(at).filter(|object| *object != Some(0)).collect()
    }

    /// Returns the address of a static field, which is in its class's mirror.
    fn static_at(&self, memory: &dyn Memory, class: u64, field: &Field) -> Option<u64> {
        field.is_static.then_some(())?;
        let handle = memory.u64(class.checked_add(self.class_mirror)?)?;
        let mirror = self.of_handle(memory, handle)?;
        (memory.u64(mirror.checked_add(self.mirror_class)?)? == class).then_some(())?;
        mirror.checked_add(field.offset)
    }

    /// The object that a field refers to; 0 if it is null.
    pub(super) fn reference(&self, memory: &dyn Memory, at: u64) -> Option<u64> {
        match self.references {
            ReferenceForm::Narrow { base, shift } => {
                let narrow = u64::from(memory.u32(at)?);
                if narrow == 0 { Some(0) } else { base.checked_add(narrow.checked_shl(shift)?) }
            }
            ReferenceForm::Wide | ReferenceForm::Coloured { .. } => self.address(memory, memory.u64(at)?),
        }
    }

    /// The address in a reference word; 0 for null, regardless of its color.
    fn address(&self, memory: &dyn Memory, word: u64) -> Option<u64> {
        let ReferenceForm::Coloured { shift } = self.references else { return Some(word) };
        let remapped = word >> REMAPPED & 15;
        let shift = match remapped.count_ones() {
            1 => 13 + u64::from(remapped.trailing_zeros()),
            _ => memory.u64(memory.u64(shift)?)?,
        };
        word.checked_shr(u32::try_from(shift).ok()?)
    }

    pub(super) fn class_of(&self, memory: &dyn Memory, object: u64) -> Option<u64> {
        let narrow = match self.header {
            HeaderForm::Wide => return memory.u64(object.checked_add(self.header_class)?),
            HeaderForm::Narrow => u64::from(memory.u32(object.checked_add(self.header_class)?)?),
            HeaderForm::InMark => memory.u64(object)? >> 42,
        };
        self.class_base.checked_add(narrow.checked_shl(self.class_shift)?)
    }
}

fn number_at(memory: &dyn Memory, at: u64, descriptor: &str) -> Option<u64> {
    match descriptor {
        "J" => memory.u64(at),
        "I" => memory.u32(at).map(u64::from),
        _ => None,
    }
}

fn moved() -> Unavailable {
    Unavailable::early(SOURCE, "an object was being moved")
}

fn unread() -> Unavailable {
    Unavailable::new(SOURCE, "memory could not be read")
}
