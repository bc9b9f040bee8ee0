//! Objects in the Java heap, as far as a static field leads to one. Collectors move them, so each is read only if it
//! proves itself: a mirror names its class, an object's header names its own. Any other object is refused, not guessed;
//! a moment later it no longer moves.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::classes::{Classes, Field};
use super::flags::Flags;
use super::{SOURCE, Tables};

/// How this JVM refers to objects and classes.
#[derive(Debug, Clone)]
pub struct Objects {
    classes: Classes,
    class_mirror: u64,
    /// Offset in a mirror at which it keeps the address of its class.
    mirror_class: u64,
    /// Offset in an object at which it keeps its class.
    header_class: u64,
    header: HeaderForm,
    references: ReferenceForm,
    class_base: u64,
    class_shift: u32,
    /// Offset in a class at which it keeps the size of its objects; `None` if this JVM does not describe it.
    layout: Option<u64>,
}

/// The class of an object, and of another that it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Linked {
    /// Address of the object at this moment; 0 for no object.
    pub object: u64,
    /// Its own class; `None` if there is no object.
    pub class: Option<u64>,
    /// Class of the other object; `None` if it refers to none.
    pub other: Option<u64>,
}

/// How an object's header names its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderForm {
    /// By its address.
    Wide,
    /// By 32 bits.
    Narrow,
    /// By the upper 22 bits of the mark (`UseCompactObjectHeaders`, JDK 24 and newer, the default from 27 on).
    InMark,
}

/// The form of a reference in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReferenceForm {
    /// 32 bits.
    Narrow { base: u64, shift: u32 },
    /// An address.
    Wide,
    /// An address above the colour that ZGC keeps in its low bits (JDK 21 and newer); the shift is the JVM's variable.
    Coloured { shift: u64 },
}

/// An array: what its elements are, the bytes before them, the binary logarithm of one, and how many.
struct Array {
    has_objects: bool,
    header: u64,
    shift: u32,
    length: u32,
}

/// The base and the shift that widen references and class names of 32 bits, under the names that releases give them.
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

/// Bits 12 to 15 of a coloured pointer of ZGC: one of them is set, and says by how much the address is shifted
/// (`zAddress_x86.hpp`).
const REMAPPED: u64 = 12;

impl Objects {
    /// Looks up how this JVM refers to objects and classes. `flags` are those in force.
    ///
    /// # Errors
    /// If it does not describe one of the fields.
    pub fn of(tables: &Tables, flags: &Flags, memory: &dyn Memory) -> Result<Self, Unavailable> {
        let word = |fields: &[&str]| memory.u64(tables.address(fields)?).ok_or_else(unread);
        let half = |fields: &[&str]| memory.u32(tables.address(fields)?).ok_or_else(unread);
        let is_on = |name: &str| flags.is_on(name).unwrap_or(false);
        let references = if is_on("UseCompressedOops") {
            ReferenceForm::Narrow { base: word(&OOP_BASE)?, shift: half(&OOP_SHIFT)? }
        } else {
            const SHIFT: &str = "ZGlobalsForVMStructs::_ZPointerLoadShift";
            match tables.offset(&[SHIFT]) {
                // JDK 21 to 23 have both kinds of ZGC; pointers of the older one are addresses.
                Ok(offset) if is_on("UseZGC") && flags.is_on("ZGenerational") != Some(false) => {
                    let globals = word(&["ZGlobalsForVMStructs::_instance_p"])?;
                    ReferenceForm::Coloured { shift: globals.checked_add(offset).ok_or_else(unread)? }
                }
                _ => ReferenceForm::Wide,
            }
        };
        // The flag is gone in JDK 27: class pointers are always compressed there.
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

    /// Reads the number in a static field of a class, in the size of its type.
    ///
    /// # Errors
    /// If the mirror of the class is being moved.
    pub fn number(&self, memory: &dyn Memory, class: u64, field: &Field) -> Result<u64, Unavailable> {
        self.static_at(memory, class, field).and_then(|at| number_at(memory, at, &field.descriptor)).ok_or_else(moved)
    }

    /// Whether a static field refers to an object at all.
    ///
    /// # Errors
    /// If the mirror of the class is being moved.
    pub fn refers(&self, memory: &dyn Memory, class: u64, field: &Field) -> Result<bool, Unavailable> {
        let object = self.static_at(memory, class, field).and_then(|at| self.reference(memory, at));
        object.map(|object| object != 0).ok_or_else(moved)
    }

    /// Reads a number within the object that a static field of a class refers to. The object must be of class `inner`.
    ///
    /// # Errors
    /// If the mirror or the object is being moved, or there is no object yet.
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
            // Nothing else came to lie there in the meantime, as far as can be seen.
            (self.reference(memory, at)? == object).then_some(number)
        };
        read().ok_or_else(moved)
    }

    /// The class of the object that a handle refers to, and that of the object in one of its fields; `None` for no
    /// object. The caller makes sure that they are classes: while objects move, the values read may be anything.
    ///
    /// # Errors
    /// If one of them is being moved.
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

    /// The object that a field of another refers to; `None` where it refers to none, or cannot be read. The caller
    /// proves by [`Self::class_of`] that it is the one it looked for.
    pub(super) fn follow(&self, memory: &dyn Memory, object: u64, field: &Field) -> Option<u64> {
        self.follow_at(memory, object.checked_add(field.offset)?)
    }

    /// The object that is referred to from here; `None` as for [`Self::follow`].
    pub(super) fn follow_at(&self, memory: &dyn Memory, at: u64) -> Option<u64> {
        self.reference(memory, at).filter(|object| *object != 0)
    }

    /// The object that a handle of the JVM refers to.
    pub(super) fn of_handle(&self, memory: &dyn Memory, handle: u64) -> Option<u64> {
        self.address(memory, memory.u64(handle)?).filter(|object| *object != 0)
    }

    /// The object that a static field refers to; `None` as for [`Self::follow`].
    pub(super) fn static_object(&self, memory: &dyn Memory, class: u64, field: &Field) -> Option<u64> {
        self.follow_at(memory, self.static_at(memory, class, field)?)
    }

    /// A number in a field of an object.
    pub(super) fn number_in(&self, memory: &dyn Memory, object: u64, field: &Field) -> Option<u64> {
        number_at(memory, object.checked_add(field.offset)?, &field.descriptor)
    }

    /// The size of its objects by a class (`Klass::layout_helper`): positive for ordinary objects, their bytes with a
    /// flag in the lowest bit; negative for arrays.
    pub(super) fn layout_of(&self, memory: &dyn Memory, class: u64) -> Option<i32> {
        Some(memory.u32(class.checked_add(self.layout?)?)?.cast_signed())
    }

    /// An array by the layout that its class describes (`Klass::layout_helper`, JDK 11–27: the two highest bits tell
    /// arrays of objects, `0b10`, from those of numbers, `0b11`; the third byte has the bytes of the header, the first
    /// the binary logarithm of an element); `None` if the object is no array.
    fn array(&self, memory: &dyn Memory, array: u64) -> Option<Array> {
        let layout = self.layout_of(memory, self.class_of(memory, array)?)?.cast_unsigned();
        (layout >> 31 == 1).then_some(())?;
        let length = memory.u32(array.checked_add(self.length_at())?)?;
        let (header, shift) = (u64::from(layout >> 16 & 0xff), layout & 0x3f);
        Some(Array { has_objects: layout >> 30 == 0b10, header, shift, length })
    }

    /// How many references an array of objects has room for; `None` for what is no such array.
    pub(super) fn references_in(&self, memory: &dyn Memory, array: u64) -> Option<u64> {
        self.array(memory, array).filter(|array| array.has_objects).map(|array| array.length.into())
    }

    /// Returns the offset at which an array keeps its length (`arrayOopDesc`, JDK 11–27).
    fn length_at(&self) -> u64 {
        match self.header {
            HeaderForm::Wide => 16,
            HeaderForm::Narrow => 12,
            HeaderForm::InMark => 8,
        }
    }

    /// Bytes of an array with its header; `None` if the object is no array.
    pub(super) fn array_size(&self, memory: &dyn Memory, array: u64) -> Option<u64> {
        let Array { header, shift, length, .. } = self.array(memory, array)?;
        let bytes = u64::from(length).checked_shl(shift).filter(|_| shift <= 3)?.checked_add(header)?;
        bytes.checked_next_multiple_of(8)
    }

    /// The bytes of an array of bytes, at most so many; `None` for a longer one and for any other object.
    pub(super) fn bytes_of(&self, memory: &dyn Memory, array: u64, most: usize) -> Option<Vec<u8>> {
        let Array { has_objects, header, shift, length } = self.array(memory, array)?;
        // An array of numbers, each of one byte.
        (!has_objects && shift == 0 && length as usize <= most).then_some(())?;
        let mut bytes = vec![0; length as usize];
        let first = array.checked_add(header)?;
        (bytes.is_empty() || memory.read(first, &mut bytes)).then_some(bytes)
    }

    /// The objects that an array refers to, without the null references; `None` for more than `most` elements. The
    /// elements come after the length, at a multiple of their size (JDK 11–27, with compressed class pointers).
    pub(super) fn elements(&self, memory: &dyn Memory, array: u64, most: u32) -> Option<Vec<u64>> {
        (self.header != HeaderForm::Wide).then_some(())?;
        let (length_at, narrow) = (self.length_at(), matches!(self.references, ReferenceForm::Narrow { .. }));
        let size = if narrow { 4 } else { 8 };
        let length = memory.u32(array.checked_add(length_at)?).filter(|length| *length <= most)?;
        let first = array.checked_add((length_at + 4).next_multiple_of(size))?;
        let at = |n: u32| self.reference(memory, first.checked_add(u64::from(n) * size)?);
        (0..length).map(at).filter(|object| *object != Some(0)).collect()
    }

    /// Returns the address of a static field, which lies in the mirror of its class.
    fn static_at(&self, memory: &dyn Memory, class: u64, field: &Field) -> Option<u64> {
        field.is_static.then_some(())?;
        let handle = memory.u64(class.checked_add(self.class_mirror)?)?;
        let mirror = self.of_handle(memory, handle)?;
        (memory.u64(mirror.checked_add(self.mirror_class)?)? == class).then_some(())?;
        mirror.checked_add(field.offset)
    }

    /// The object that a field refers to; 0 where it refers to none.
    pub(super) fn reference(&self, memory: &dyn Memory, at: u64) -> Option<u64> {
        match self.references {
            ReferenceForm::Narrow { base, shift } => {
                let narrow = u64::from(memory.u32(at)?);
                if narrow == 0 { Some(0) } else { base.checked_add(narrow.checked_shl(shift)?) }
            }
            ReferenceForm::Wide | ReferenceForm::Coloured { .. } => self.address(memory, memory.u64(at)?),
        }
    }

    /// The address in a word that refers to an object; 0 in one that refers to none, whatever its colour.
    fn address(&self, memory: &dyn Memory, word: u64) -> Option<u64> {
        let ReferenceForm::Coloured { shift } = self.references else { return Some(word) };
        let remapped = word >> REMAPPED & 15;
        let shift = match remapped.count_ones() {
            1 => 13 + u64::from(remapped.trailing_zeros()),
            _ => memory.u64(memory.u64(shift)?)?,
        };
        word.checked_shr(u32::try_from(shift).ok()?)
    }

    /// The class that an object's header names.
    pub(super) fn class_of(&self, memory: &dyn Memory, object: u64) -> Option<u64> {
        let narrow = match self.header {
            HeaderForm::Wide => return memory.u64(object.checked_add(self.header_class)?),
            HeaderForm::Narrow => u64::from(memory.u32(object.checked_add(self.header_class)?)?),
            HeaderForm::InMark => memory.u64(object)? >> 42,
        };
        self.class_base.checked_add(narrow.checked_shl(self.class_shift)?)
    }
}

/// A number of the size that its type has.
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
