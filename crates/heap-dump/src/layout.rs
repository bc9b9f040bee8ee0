//! Computes how many bytes of heap an object takes. A dump contains objects' fields, but not their layout in the JVM.
//!
//! Source: HotSpot's `fieldLayoutBuilder.cpp` (JDK 15 and newer). Older JVMs leave a few more gaps between the fields
//! of a class and its superclass, so some of their classes are 8 bytes larger than computed here.

use crate::records::Type;

/// How the JVM lays out objects. `-XX:+PrintFlagsFinal` prints the flags that determine it: `UseCompressedOops`,
/// `UseCompressedClassPointers`, `UseCompactObjectHeaders`, `ObjectAlignmentInBytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The size of a reference.
    pub references: References,
    /// The bytes before the fields.
    pub header: Header,
    /// The alignment of objects, a power of two from 4 to 256.
    pub alignment_bytes: u32,
}

impl Default for Layout {
    /// A 64-bit JVM with less than 32 GiB of heap and default flags.
    fn default() -> Self {
        Self { references: References::Compressed, header: Header::Narrow, alignment_bytes: 8 }
    }
}

/// The size of a reference in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum References {
    /// 4 bytes: `-XX:+UseCompressedOops`, and 32-bit JVMs.
    Compressed,
    /// 8 bytes: a heap of 32 GiB or more, and ZGC.
    Whole,
}

/// The bytes before the fields of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// 16 bytes: `-XX:-UseCompressedClassPointers`.
    Wide,
    /// 12 bytes: `-XX:+UseCompressedClassPointers`, the default.
    Narrow,
    /// 8 bytes: `-XX:+UseCompactObjectHeaders`, and 32-bit JVMs.
    Compact,
}

impl Header {
    fn bytes(self) -> u64 {
        match self {
            Self::Wide => 16,
            Self::Narrow => 12,
            Self::Compact => 8,
        }
    }
}

/// The fields that HotSpot adds to each `java.lang.Class`: two pointers, two numbers, and references to signers,
/// protection domain, source file, and a lock (`javaClasses.hpp`, `CLASS_INJECTED_FIELDS`).
const INJECTED_NUMBERS: u64 = 2 * 8 + 2 * 4;
const INJECTED_REFERENCES: u64 = 4;

/// Classes to which HotSpot adds a pointer (`javaClasses.hpp`, `…_INJECTED_FIELDS`).
const WITH_POINTER: [&str; 4] =
    ["java.lang.ClassLoader", "java.lang.Module", "java.lang.invoke.MemberName", "java.lang.invoke.ResolvedMethodName"];
/// Before JDK 19, which introduced virtual threads, some fields of a thread are on their own cache lines, with
/// `-XX:ContendedPaddingWidth` bytes before and after them. Since then, a thread has a `holder`.
const THREAD: &str = "java.lang.Thread";
pub(crate) const HOLDER: &str = "holder";
/// The JVMTI data in each thread since JDK 19: a pointer, a number, a Boolean.
const OF_THREAD: [Type; 3] = [Type::POINTER, Type::Primitive(10), Type::Primitive(4)];
const THREAD_PADDING: u64 = 2 * 128;

/// More gaps than a class ever has; dropping further ones can only make a class seem too large.
const GAPS_MAX: usize = 8;

/// Whether a class has a field named [`HOLDER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldNames {
    WithHolder,
    Others,
}

/// The end of a class's fields, and the gaps that they leave for its subclasses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    end: u64,
    /// Start and end.
    gaps: [(u64, u64); GAPS_MAX],
}

impl Layout {
    pub(crate) fn is_known(self) -> bool {
        self.alignment_bytes.is_power_of_two() && (4..=256).contains(&self.alignment_bytes)
    }

    pub(crate) fn reference_bytes(self) -> u32 {
        match self.references {
            References::Compressed => 4,
            References::Whole => 8,
        }
    }

    /// An object without fields.
    pub(crate) fn no_fields(self) -> Fields {
        Fields { end: self.header.bytes(), gaps: [(0, 0); GAPS_MAX] }
    }

    /// Adds the fields of a class after those of its superclass, largest first.
    pub(crate) fn with_fields(self, mut fields: Fields, own: impl Iterator<Item = Type>) -> Fields {
        let mut counts = [0u64; 4];
        for kind in own {
            counts[kind.bytes(self.reference_bytes()).ilog2() as usize] += 1;
        }
        for (power, mut count) in counts.into_iter().enumerate().rev() {
            let size = 1u64 << power;
            for (begin, end) in &mut fields.gaps {
                let start = begin.next_multiple_of(size);
                let fit = (end.saturating_sub(start) / size).min(count);
                if fit > 0 {
                    // The gap before `start` is dropped: in most classes, no remaining field is small enough for it.
                    *begin = start + fit * size;
                    count -= fit;
                }
            }
            if count > 0 {
                let start = fields.end.next_multiple_of(size);
                if start > fields.end
                    && let Some(free) = fields.gaps.iter_mut().find(|(begin, end)| begin >= end)
                {
                    *free = (fields.end, start);
                }
                fields.end = start + count * size;
            }
        }
        fields
    }

    /// Adds the fields that HotSpot injects into a class that it knows by name.
    pub(crate) fn with_injected(self, fields: Fields, class: &str, own: FieldNames) -> Fields {
        if WITH_POINTER.contains(&class) {
            return self.with_fields(fields, std::iter::once(Type::POINTER));
        }
        if class == THREAD && own == FieldNames::WithHolder {
            return self.with_fields(fields, OF_THREAD.into_iter());
        }
        let padding = if class == THREAD { THREAD_PADDING } else { 0 };
        Fields { end: fields.end + padding, ..fields }
    }

    pub(crate) fn instance(self, fields: Fields) -> u64 {
        self.aligned(fields.end)
    }

    pub(crate) fn array(self, elements: Type, count: u32) -> u64 {
        let size = u64::from(elements.bytes(self.reference_bytes()));
        let header = self.header.bytes() + 4;
        let begins = match self.header {
            // Before JDK 23, elements begin at a multiple of a word, and this header is rare.
            Header::Wide => header.next_multiple_of(8),
            Header::Narrow | Header::Compact => header.next_multiple_of(size),
        };
        self.aligned(begins + size * u64::from(count))
    }

    /// A `java.lang.Class` with its statics. `fields` are those of `java.lang.Class`.
    pub(crate) fn class_object(self, fields: Fields, statics: impl Iterator<Item = Type>) -> u64 {
        let reference = self.reference_bytes();
        let statics: u64 = statics.map(|kind| u64::from(kind.bytes(reference))).sum();
        self.aligned(fields.end + INJECTED_NUMBERS + INJECTED_REFERENCES * u64::from(reference) + statics)
    }

    fn aligned(self, bytes: u64) -> u64 {
        bytes.next_multiple_of(u64::from(self.alignment_bytes.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: Type = Type::Reference;
    const BYTE: Type = Type::Primitive(8);
    const INT: Type = Type::Primitive(10);
    const LONG: Type = Type::Primitive(11);

    #[track_caller]
    fn check(layout: Layout, classes: &[&[Type]], bytes: u64) {
        let fields =
            classes.iter().fold(layout.no_fields(), |fields, own| layout.with_fields(fields, own.iter().copied()));
        assert_eq!(layout.instance(fields), bytes);
    }

    // The sizes are those that JOL prints for java.lang.Object, Integer, Long, String, and two sample classes.
    #[test]
    fn instances_are_as_large_as_in_the_jvm() {
        let narrow = Layout::default();
        check(narrow, &[], 16);
        check(narrow, &[&[], &[INT]], 16);
        check(narrow, &[&[], &[LONG]], 24);
        check(narrow, &[&[REFERENCE, INT, BYTE, BYTE]], 24);
        check(narrow, &[&[LONG], &[INT]], 24);
        check(narrow, &[&[BYTE], &[BYTE, INT]], 24);
        check(Layout { references: References::Whole, ..narrow }, &[&[REFERENCE, INT, BYTE, BYTE]], 32);
        check(Layout { header: Header::Compact, ..narrow }, &[&[REFERENCE, INT, BYTE, BYTE]], 24);
        check(Layout { header: Header::Compact, ..narrow }, &[], 8);
        check(Layout { alignment_bytes: 16, ..narrow }, &[&[], &[LONG]], 32);
    }

    #[test]
    fn arrays_are_as_large_as_in_the_jvm() {
        let narrow = Layout::default();
        assert_eq!(narrow.array(BYTE, 0), 16);
        assert_eq!(narrow.array(BYTE, 9), 32);
        assert_eq!(narrow.array(LONG, 2), 32);
        assert_eq!(narrow.array(REFERENCE, 3), 32);
        assert_eq!(Layout { references: References::Whole, ..narrow }.array(REFERENCE, 3), 40);
        assert_eq!(Layout { header: Header::Compact, ..narrow }.array(BYTE, 4), 16);
        assert_eq!(Layout { header: Header::Compact, ..narrow }.array(LONG, 1), 24);
        assert_eq!(Layout { header: Header::Wide, ..narrow }.array(BYTE, 1), 32);
    }
}
