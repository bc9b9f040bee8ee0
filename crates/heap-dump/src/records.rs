//! Parses the HPROF format into records, each once, in file order.
//!
//! Supports `JAVA PROFILE 1.0.1` and `1.0.2`, as HotSpot 8 to 27 write them (`jcmd PID GC.heap_dump FILE`). The comment
//! at the top of HotSpot's `src/hotspot/share/services/heapDumper.cpp` specifies the format. All numbers are
//! big-endian; identifiers take 4 or 8 bytes.

use crate::source::{PIECE_MAX, Source};
use loadline_base::error::{Error, Result, plain};
use std::fs::File;

/// Longer names are truncated: this is the maximum in a class file.
const NAME_BYTES_MAX: u32 = 65_535;

/// Why the garbage collector keeps an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootKind {
    JniGlobal,
    /// A local of a Java frame, of JNI, or of the native stack.
    Local,
    StickyClass,
    Monitor,
    Thread,
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    pub(crate) kind: RootKind,
    pub(crate) object: u64,
    /// The serial number of the thread; 0 if the kind has none.
    pub(crate) thread: u32,
    /// The number of the frame, from the top of the stack; for a thread, its stack trace. [`NO_FRAME`] if the root has
    /// none.
    pub(crate) frame: u32,
}

/// The format's marker for a local without a frame.
pub(crate) const NO_FRAME: u32 = u32::MAX;

/// The type of a field or of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Reference,
    /// The format's tag, 4 to 11.
    Primitive(u8),
}

impl Type {
    /// A `long`.
    pub(crate) const POINTER: Self = Self::Primitive(11);

    fn of(tag: u8) -> Option<Self> {
        match tag {
            1 | 2 => Some(Self::Reference),
            4..=11 => Some(Self::Primitive(tag)),
            _ => None,
        }
    }

    /// Bytes of a value, with references of `reference` bytes.
    pub(crate) fn bytes(self, reference: u32) -> u32 {
        match self {
            Self::Reference => reference,
            Self::Primitive(4 | 8) => 1,
            Self::Primitive(5 | 9) => 2,
            Self::Primitive(6 | 10) => 4,
            Self::Primitive(_) => 8,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: u64,
    pub(crate) kind: Type,
    /// The value of a static reference; otherwise 0.
    pub(crate) value: u64,
}

#[derive(Debug, Default)]
pub(crate) struct ClassDump {
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) loader: u64,
    /// Objects that the class holds: its signers and its protection domain.
    pub(crate) kept: [u64; 2],
    pub(crate) statics: Vec<Field>,
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) id: u64,
    pub(crate) method: u64,
    pub(crate) class_serial: u32,
    pub(crate) line: i32,
}

/// An array before its elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array {
    pub(crate) id: u64,
    pub(crate) elements: Type,
    /// The class of an object array; otherwise 0.
    pub(crate) class: u64,
    pub(crate) count: u32,
}

/// The receiver of the records. A pass ignores records that it does not need.
#[expect(unused_variables, reason = "a pass ignores what it does not need")]
pub(crate) trait Visitor {
    fn name(&mut self, id: u64, text: &[u8]) -> Result<()> {
        Ok(())
    }
    fn load_class(&mut self, serial: u32, class: u64, name: u64) -> Result<()> {
        Ok(())
    }
    fn frame(&mut self, frame: Frame) -> Result<()> {
        Ok(())
    }
    fn trace(&mut self, serial: u32, frames: Vec<u64>) -> Result<()> {
        Ok(())
    }
    fn root(&mut self, root: Root) -> Result<()> {
        Ok(())
    }
    fn class(&mut self, class: ClassDump) -> Result<()> {
        Ok(())
    }
    /// `fields` contains the values of the class, then of its superclass, and so on.
    fn instance(&mut self, id: u64, class: u64, fields: &[u8]) -> Result<()> {
        Ok(())
    }
    /// Whether to pass the array to `elements`, in as many calls as it takes.
    fn array(&mut self, array: Array) -> Result<bool> {
        Ok(false)
    }
    fn elements(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(())
    }
    fn array_ends(&mut self) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) enum PassEnd {
    Whole,
    /// The file ends at `at`, inside an item that needs at least `of` bytes.
    Cut {
        at: u64,
        of: u64,
    },
    /// The bytes at `at` are not a record.
    Damaged {
        at: u64,
        why: String,
    },
}

enum Stop {
    Ended(PassEnd),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type RecordResult<T = ()> = std::result::Result<T, Stop>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    /// 4 or 8.
    pub(crate) id_bytes: u32,
    /// Whether the version has a record that ends a dump.
    has_end: bool,
    /// The offset at which records begin.
    at: u64,
}

/// Reads the head: the version, the identifier size, the time.
pub(crate) fn head(file: &File, length: u64) -> Result<Head> {
    const VERSION: usize = b"JAVA PROFILE 1.0.2\0".len();
    const BYTES: usize = VERSION + 4 + 8;
    if length < BYTES as u64 {
        return Err(Error::subject(format!(
            "the heap dump is truncated after {length} bytes, within its {BYTES}-byte header"
        )));
    }
    let mut source = Source::new(file, length);
    let head =
        source.take(BYTES).map_err(|cause| Error::machine(format!("cannot read the heap dump: {}", plain(&cause))))?;
    let has_end = match &head[..VERSION] {
        b"JAVA PROFILE 1.0.1\0" => false,
        b"JAVA PROFILE 1.0.2\0" => true,
        other => {
            let seen = other.escape_ascii();
            let what = format!("`{seen}` is not the header of a heap dump, which is `JAVA PROFILE 1.0.1` or `1.0.2`");
            let error = Error::subject(what);
            return Err(if other.starts_with(&[0x1f, 0x8b]) { error.hint("unpack it: `gunzip FILE`") } else { error });
        }
    };
    match number(&head[VERSION..VERSION + 4]) {
        id_bytes @ (4 | 8) => Ok(Head { id_bytes: id_bytes as u32, has_end, at: BYTES as u64 }),
        other => {
            Err(Error::subject(format!("the heap dump has {other}-byte identifiers; only 4 and 8 bytes are supported")))
        }
    }
}

/// A big-endian number of at most eight bytes.
#[inline]
pub(crate) fn number(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(eight) => u64::from_be_bytes(eight),
        Err(_) => bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    }
}

/// Passes all records to `visitor` until the dump ends or cannot be read any further.
pub(crate) fn scan(file: &File, length: u64, head: Head, visitor: &mut impl Visitor) -> Result<PassEnd> {
    let mut source = Source::new(file, length);
    source.skip(head.at);
    let mut reader = RecordReader { source, id_bytes: head.id_bytes, limit: length };
    match reader.records(head.has_end, visitor) {
        Ok(()) => Ok(PassEnd::Whole),
        Err(Stop::Ended(ended)) => Ok(ended),
        Err(Stop::Failed(error)) => Err(error),
    }
}

struct RecordReader<'a> {
    source: Source<'a>,
    id_bytes: u32,
    /// The end offset of the current record, according to the record.
    limit: u64,
}

impl RecordReader<'_> {
    /// Checks that the record and the file have `count` more bytes.
    #[inline]
    fn expect(&self, count: u64) -> RecordResult {
        let end = self.source.position().saturating_add(count);
        if end > self.limit {
            return Err(self.damaged(format!("a value of {count} bytes extends past the end of its record")));
        }
        if end > self.source.length() {
            return Err(Stop::Ended(PassEnd::Cut { at: self.source.length(), of: self.limit }));
        }
        Ok(())
    }

    #[cold]
    fn damaged(&self, why: String) -> Stop {
        Stop::Ended(PassEnd::Damaged { at: self.source.position(), why })
    }

    #[inline]
    fn bytes(&mut self, count: usize) -> RecordResult<&[u8]> {
        self.expect(count as u64)?;
        self.source
            .take(count)
            .map_err(|cause| Stop::Failed(Error::machine(format!("cannot read the heap dump: {}", plain(&cause)))))
    }

    fn skip(&mut self, count: u64) -> RecordResult {
        self.expect(count)?;
        self.source.skip(count);
        Ok(())
    }

    #[inline]
    fn u1(&mut self) -> RecordResult<u8> {
        Ok(self.bytes(1)?[0])
    }

    #[inline]
    fn u2(&mut self) -> RecordResult<u16> {
        Ok(number(self.bytes(2)?) as u16)
    }

    #[inline]
    fn u4(&mut self) -> RecordResult<u32> {
        Ok(number(self.bytes(4)?) as u32)
    }

    #[inline]
    fn id(&mut self) -> RecordResult<u64> {
        let count = self.id_bytes as usize;
        Ok(number(self.bytes(count)?))
    }

    fn records(&mut self, has_end: bool, visitor: &mut impl Visitor) -> RecordResult {
        loop {
            let at = self.source.position();
            if at == self.source.length() {
                // Only version 1.0.2 marks the end of a dump.
                let cut = PassEnd::Cut { at, of: at.saturating_add(9) };
                return if has_end { Err(Stop::Ended(cut)) } else { Ok(()) };
            }
            self.limit = at.saturating_add(9);
            let tag = self.u1()?;
            self.skip(4)?;
            let length = self.u4()?;
            let begins = self.source.position();
            self.limit = begins.saturating_add(u64::from(length));
            match tag {
                0x01 => self.name(length, visitor)?,
                0x02 => self.load_class(visitor)?,
                0x04 => self.frame(visitor)?,
                0x05 => self.trace(visitor)?,
                0x0C | 0x1C => {
                    while self.source.position() < self.limit {
                        self.piece(visitor)?;
                    }
                }
                0x2C => return Ok(()),
                0x03 | 0x06 | 0x07 | 0x0A | 0x0B | 0x0D | 0x0E => {}
                other => {
                    return Err(Stop::Ended(PassEnd::Damaged {
                        at,
                        why: format!("a record with the unknown tag {other:#04x}"),
                    }));
                }
            }
            let left = self.limit.saturating_sub(self.source.position());
            self.skip(left)?;
        }
    }

    fn name(&mut self, length: u32, visitor: &mut impl Visitor) -> RecordResult {
        let id = self.id()?;
        let count = length.saturating_sub(self.id_bytes).min(NAME_BYTES_MAX);
        let text = self.bytes(count as usize)?;
        Ok(visitor.name(id, text)?)
    }

    fn load_class(&mut self, visitor: &mut impl Visitor) -> RecordResult {
        let serial = self.u4()?;
        let class = self.id()?;
        self.skip(4)?;
        let name = self.id()?;
        Ok(visitor.load_class(serial, class, name)?)
    }

    fn frame(&mut self, visitor: &mut impl Visitor) -> RecordResult {
        let id = self.id()?;
        let method = self.id()?;
        self.skip(2 * u64::from(self.id_bytes))?;
        let class_serial = self.u4()?;
        let line = self.u4()? as i32;
        Ok(visitor.frame(Frame { id, method, class_serial, line })?)
    }

    fn trace(&mut self, visitor: &mut impl Visitor) -> RecordResult {
        let serial = self.u4()?;
        self.skip(4)?;
        let count = self.u4()?;
        self.expect(u64::from(count) * u64::from(self.id_bytes))?;
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.push(self.id()?);
        }
        Ok(visitor.trace(serial, frames)?)
    }

    /// Parses one item of a heap dump: a root, a class, an object.
    #[inline]
    fn piece(&mut self, visitor: &mut impl Visitor) -> RecordResult {
        match self.u1()? {
            0x21 => self.instance(visitor),
            0x22 => {
                let id_bytes = self.id_bytes as usize;
                let head = self.bytes(2 * id_bytes + 8)?;
                let (id, class) = (number(&head[..id_bytes]), number(&head[id_bytes + 8..]));
                let count = number(&head[id_bytes + 4..id_bytes + 8]) as u32;
                self.array(Array { id, elements: Type::Reference, class, count }, visitor)
            }
            0x23 => {
                let id_bytes = self.id_bytes as usize;
                let head = self.bytes(id_bytes + 9)?;
                let id = number(&head[..id_bytes]);
                let count = number(&head[id_bytes + 4..id_bytes + 8]) as u32;
                let tag = head[id_bytes + 8];
                let elements = match Type::of(tag) {
                    Some(primitive @ Type::Primitive(_)) => primitive,
                    _ => return Err(self.damaged(format!("an array of the unknown primitive type {tag}"))),
                };
                self.array(Array { id, elements, class: 0, count }, visitor)
            }
            0x20 => {
                let class = self.class()?;
                Ok(visitor.class(class)?)
            }
            tag => self.root(tag, visitor),
        }
    }

    fn root(&mut self, tag: u8, visitor: &mut impl Visitor) -> RecordResult {
        let (kind, numbers) = match tag {
            0xFF => (RootKind::Unknown, 0),
            0x01 => (RootKind::JniGlobal, 0),
            0x02 | 0x03 => (RootKind::Local, 2),
            0x04 | 0x06 => (RootKind::Local, 1),
            0x05 => (RootKind::StickyClass, 0),
            0x07 => (RootKind::Monitor, 0),
            0x08 => (RootKind::Thread, 2),
            other => return Err(self.damaged(format!("a sub-record with the unknown tag {other:#04x}"))),
        };
        let object = self.id()?;
        if tag == 0x01 {
            self.id()?;
        }
        let thread = if numbers > 0 { self.u4()? } else { 0 };
        let frame = if numbers > 1 { self.u4()? } else { NO_FRAME };
        Ok(visitor.root(Root { kind, object, thread, frame })?)
    }

    #[inline]
    fn instance(&mut self, visitor: &mut impl Visitor) -> RecordResult {
        let id_bytes = self.id_bytes as usize;
        let head = self.bytes(2 * id_bytes + 8)?;
        let id = number(&head[..id_bytes]);
        let class = number(&head[id_bytes + 4..2 * id_bytes + 4]);
        let count = number(&head[2 * id_bytes + 4..]) as usize;
        if count > PIECE_MAX {
            return Err(self.damaged(format!("an object with {count} bytes of fields; the maximum is {PIECE_MAX}")));
        }
        let fields = self.bytes(count)?;
        Ok(visitor.instance(id, class, fields)?)
    }

    fn array(&mut self, array: Array, visitor: &mut impl Visitor) -> RecordResult {
        let mut left = u64::from(array.count) * u64::from(array.elements.bytes(self.id_bytes));
        self.expect(left)?;
        if visitor.array(array)? {
            while left > 0 {
                let count = left.min(PIECE_MAX as u64);
                let bytes = self.bytes(count as usize)?;
                visitor.elements(bytes)?;
                left -= count;
            }
            visitor.array_ends()?;
        }
        self.skip(left)
    }

    fn class(&mut self) -> RecordResult<ClassDump> {
        let id = self.id()?;
        self.skip(4)?;
        let (parent, loader) = (self.id()?, self.id()?);
        let kept = [self.id()?, self.id()?];
        self.skip(2 * u64::from(self.id_bytes) + 4)?;
        for _ in 0..self.u2()? {
            self.skip(2)?;
            let kind = self.field_type()?;
            self.skip(u64::from(kind.bytes(self.id_bytes)))?;
        }
        let mut statics = Vec::new();
        for _ in 0..self.u2()? {
            let name = self.id()?;
            let kind = self.field_type()?;
            let size = kind.bytes(self.id_bytes) as usize;
            let value = number(self.bytes(size)?);
            statics.push(Field { name, kind, value: if kind == Type::Reference { value } else { 0 } });
        }
        let mut fields = Vec::new();
        for _ in 0..self.u2()? {
            let name = self.id()?;
            fields.push(Field { name, kind: self.field_type()?, value: 0 });
        }
        Ok(ClassDump { id, parent, loader, kept, statics, fields })
    }

    fn field_type(&mut self) -> RecordResult<Type> {
        let tag = self.u1()?;
        Type::of(tag).ok_or_else(|| self.damaged(format!("a field of the unknown type {tag}")))
    }
}
