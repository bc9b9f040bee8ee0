//! Every flag of a JVM with its value and where that came from (`JVMFlag`, `jvmFlag.hpp`, JDK 11–27), some 1,270 of
//! them: what `-XX:+PrintFlagsFinal` would have printed, without asking.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::super::vm_flags;
use super::{SOURCE, Tables};
use serde::{Deserialize, Serialize};

/// Ten times what there is.
const FLAGS_MAX: u64 = 16_384;
/// Bytes of all names and values together: five times what there is.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// The types of values, in the order in which HotSpot numbers them (`JVM_FLAG_TYPES`); JDK 11 says them by name.
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
/// The bits that say who set a flag, where the JVM does not describe them (`JVMFlag::VALUE_ORIGIN_MASK`, JDK 11).
const ORIGIN_MASK: u64 = 15;
/// Flags that all releases have, with the numbers of their types: where one differs, the order is another.
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

/// A flag in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Without `-XX:` and sign.
    pub name: String,
    /// As `VM.flags` prints it: `true`, `8388608`, `75.000000`; empty for a text that is not set.
    pub value: String,
    /// The origin of the value; `None` for a flag at its default.
    pub origin: Option<FlagOrigin>,
}

impl Flag {
    /// As the command line spells it.
    pub fn spelled(&self) -> String {
        vm_flags::spelled(&self.name, &self.value)
    }
}

/// The origin of a flag's value.
// `JVMFlagOrigin` of jvmFlag.hpp; the published schemas contain the descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlagOrigin {
    /// The command line, `JDK_JAVA_OPTIONS` among it.
    CommandLine,
    /// `JAVA_TOOL_OPTIONS` or `_JAVA_OPTIONS`.
    Environment,
    /// A file named by `-XX:Flags` or `-XX:VMOptionsFile`.
    File,
    /// Somebody at run time, or another way.
    #[default]
    Other,
    /// The JVM itself, by the machine or by other flags.
    Ergonomic,
}

/// All flags of a JVM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// In the JVM's own order.
    pub list: Vec<Flag>,
}

impl Flags {
    /// Reads all flags.
    ///
    /// # Errors
    /// If the JVM does not describe them, numbers their types in another way, or memory cannot be read.
    pub fn read(memory: &dyn Memory, tables: &Tables) -> Result<Self, Unavailable> {
        let unread = || Unavailable::new(SOURCE, "its flags could not be read");
        let word = |field: &str| memory.u64(tables.address(&[field])?).ok_or_else(unread);
        let (flags, count, size) = (word("JVMFlag::flags")?, word("JVMFlag::numFlags")?, tables.size("JVMFlag")?);
        let offset = |field: &str| tables.offset(&[field]);
        let (name, at) = (offset("JVMFlag::_name")?, offset("JVMFlag::_addr")?);
        let (kind, origin) = (offset("JVMFlag::_type")?, offset("JVMFlag::_flags")?);
        // A release that describes the mask has numbers for types; JDK 11 has a pointer to a text.
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
                return Err(Unavailable::new(SOURCE, format!("its flags take more than the {most} KiB that are read")));
            }
            list.push(flag);
        }
        Ok(Self { list })
    }

    /// The value of a flag; `None` for one that this JVM does not have.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|flag| flag.name == name).map(|flag| flag.value.as_str())
    }

    /// Whether a switch is on; `None` for one that this JVM does not have.
    pub fn is_on(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value == "true")
    }

    /// Those that are not at their default, as `VM.flags` lists them.
    pub fn changed(&self) -> vm_flags::Flags {
        let changed = self.list.iter().filter(|flag| flag.origin.is_some());
        let mut list: Vec<_> = changed.map(|flag| (flag.name.clone(), flag.value.clone())).collect();
        list.sort();
        vm_flags::Flags { list }
    }
}

impl FlagOrigin {
    /// All, those of the user first.
    pub const ALL: [Self; 5] = [Self::CommandLine, Self::Environment, Self::File, Self::Other, Self::Ergonomic];

    /// By the JVM's number; `None` for 0, which is nobody.
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

/// A value in words.
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
