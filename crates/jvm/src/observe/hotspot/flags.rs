//! All JVM flags (about 1,270) with their values and origins (`JVMFlag`, `jvmFlag.hpp`, JDK 11–27): the output of
//! `-XX:+PrintFlagsFinal`, without asking the JVM.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::super::vm_flags;
use super::{SOURCE, Tables};
use serde::{Deserialize, Serialize};

/// Ten times the actual number.
const FLAGS_MAX: u64 = 16_384;
/// Bytes of all names and values: five times the actual size.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// The value types in HotSpot's numbering (`JVM_FLAG_TYPES`); JDK 11 names them instead.
const TYPES: [(&str, Type); 10] = [
    ("bool", Type::Bool),
    ("int", Type::Int),
    ("uint", Type::Uint),
    ("intx", Type::Signed),
    ("uintx", Type::Unsigned),
    ("uint64_t", Type::Unsigned),
    ("size_t", Type::Unsigned),
    ("double", Type::Double),
    ("ccstr", Type::Text),
    ("ccstrlist", Type::Text),
];
/// The bits with a flag's origin, if the JVM does not describe them (`JVMFlag::VALUE_ORIGIN_MASK`, JDK 11).
const ORIGIN_MASK: u64 = 15;
/// Flags that all releases have, with their type numbers: if one differs, the numbering differs.
const KNOWN: [(&str, u32); 4] = [("UseSerialGC", 0), ("MaxHeapSize", 6), ("MaxRAMPercentage", 7), ("ErrorFile", 8)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Bool,
    Int,
    Uint,
    Signed,
    Unsigned,
    Double,
    Text,
}

/// A flag in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Without `-XX:` and sign.
    pub name: String,
    /// As `VM.flags` prints it: `true`, `8388608`, `75.000000`; empty for an unset string.
    pub value: String,
    /// The origin of the value; `None` for a flag at its default.
    pub origin: Option<FlagOrigin>,
}

impl Flag {
    /// The flag in command-line syntax.
    pub fn spelled(&self) -> String {
        vm_flags::spelled(&self.name, &self.value)
    }
}

/// Origin of a flag's value.
// `JVMFlagOrigin` of jvmFlag.hpp; the published schemas contain the descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlagOrigin {
    /// The command line, including `JDK_JAVA_OPTIONS`.
    CommandLine,
    /// `JAVA_TOOL_OPTIONS` or `_JAVA_OPTIONS`.
    Environment,
    /// A file named by `-XX:Flags` or `-XX:VMOptionsFile`.
    File,
    /// Set at run time or in another way.
    #[default]
    Other,
    /// Chosen by the JVM, based on the machine or other flags.
    Ergonomic,
}

/// All flags of a JVM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// In the JVM's own order.
    pub list: Vec<Flag>,
}

impl Flags {
    /// Reads all flags. Fails if the JVM does not describe them, numbers their types differently, or memory cannot be
    /// read.
    pub fn read(memory: &dyn Memory, tables: &Tables) -> Result<Self, Unavailable> {
        let unread = || Unavailable::new(SOURCE, "its flags could not be read");
        let word = |field: &str| memory.u64(tables.address(&[field])?).ok_or_else(unread);
        let (flags, count, size) = (word("JVMFlag::flags")?, word("JVMFlag::numFlags")?, tables.size("JVMFlag")?);
        let offset = |field: &str| tables.offset(&[field]);
        let (name, at) = (offset("JVMFlag::_name")?, offset("JVMFlag::_addr")?);
        let (kind, origin) = (offset("JVMFlag::_type")?, offset("JVMFlag::_flags")?);
        // A release that describes the mask also numbers its types; JDK 11 has pointers to strings.
        let mask = tables.constant("JVMFlag::VALUE_ORIGIN_MASK");
        let numbered = mask.is_ok();
        let mask = mask.unwrap_or(ORIGIN_MASK) as u32;
        let type_of = |at: u64| match numbered {
            true => memory.u32(at),
            false => {
                let text = memory.text(memory.u64(at)?)?;
                TYPES.iter().position(|(name, _)| *name == text).map(|number| number as u32)
            }
        };
        let read = |flag: u64| {
            let text = memory.u64(flag.checked_add(name)?)?;
            // The last row has no name.
            if text == 0 {
                return Some(None);
            }
            let (name, kind) = (memory.text(text)?, type_of(flag.checked_add(kind)?)?);
            if KNOWN.iter().any(|(known, number)| *known == name && *number != kind) {
                return None;
            }
            let value = value(memory, memory.u64(flag.checked_add(at)?)?, TYPES.get(kind as usize)?.1)?;
            let origin = FlagOrigin::of(memory.u32(flag.checked_add(origin)?)? & mask);
            Some(Some(Flag { name, value, origin }))
        };
        if count > FLAGS_MAX || size == 0 || flags.checked_add(count.saturating_mul(size)).is_none() {
            return Err(unread());
        }
        let (mut list, mut bytes) = (Vec::new(), 0);
        for n in 0..count {
            let Some(flag) = read(flags + n * size).ok_or_else(unread)? else { continue };
            bytes += flag.name.len() + flag.value.len();
            if bytes > TEXT_BYTES_MAX {
                let most = TEXT_BYTES_MAX >> 10;
                return Err(Unavailable::new(
                    SOURCE,
                    format!("its flags exceed {most} KiB, the most that Loadline reads"),
                ));
            }
            list.push(flag);
        }
        Ok(Self { list })
    }

    /// The value of a flag; `None` if this JVM does not have it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|flag| flag.name == name).map(|flag| flag.value.as_str())
    }

    /// Whether a Boolean flag is on; `None` if this JVM does not have it.
    pub fn is_on(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value == "true")
    }

    /// The flags that are not at their default, as `VM.flags` lists them.
    pub fn changed(&self) -> vm_flags::Flags {
        let changed = self.list.iter().filter(|flag| flag.origin.is_some());
        let mut list: Vec<_> = changed.map(|flag| (flag.name.clone(), flag.value.clone())).collect();
        list.sort();
        vm_flags::Flags { list }
    }
}

impl FlagOrigin {
    /// All origins, the user's first.
    pub const ALL: [Self; 5] = [Self::CommandLine, Self::Environment, Self::File, Self::Other, Self::Ergonomic];

    /// From the JVM's number; `None` for 0, which means the default.
    fn of(number: u32) -> Option<Self> {
        match number {
            0 => None,
            1 => Some(Self::CommandLine),
            2 => Some(Self::Environment),
            3 => Some(Self::File),
            5 => Some(Self::Ergonomic),
            _ => Some(Self::Other),
        }
    }
}

fn value(memory: &dyn Memory, at: u64, of: Type) -> Option<String> {
    Some(match of {
        Type::Bool => (memory.u8(at)? != 0).to_string(),
        Type::Int => memory.u32(at)?.cast_signed().to_string(),
        Type::Uint => memory.u32(at)?.to_string(),
        Type::Signed => memory.u64(at)?.cast_signed().to_string(),
        Type::Unsigned => memory.u64(at)?.to_string(),
        Type::Double => format!("{:.6}", f64::from_bits(memory.u64(at)?)),
        Type::Text => match memory.u64(at)? {
            0 => String::new(),
            text => memory.text(text)?,
        },
    })
}
