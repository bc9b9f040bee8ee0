//! The requirements of a native library, from the sections of its file (man 5 elf). It must be 64-bit little-endian.
//!
//! The sections give the library's machine, the libraries it depends on, and the functions it imports. The functions
//! decide whether musl can load a library linked with glibc. musl provides the names of glibc's libraries and ignores
//! versions, so loading fails only for functions that musl lacks. async-profiler's library (4.1 to 4.4) needs none:
//! one file serves both.

const MAGIC: &[u8] = b"\x7fELF";
/// Class 64-bit, little-endian.
const FORM: [u8; 2] = [2, 1];
/// `sizeof (Elf64_Shdr)`, `sizeof (Elf64_Sym)`, `sizeof (Elf64_Dyn)`.
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const DYNAMIC_BYTES: usize = 16;
/// `SHT_DYNSYM`, `SHT_DYNAMIC`.
const DYNSYM: u64 = 11;
const DYNAMIC: u64 = 6;
/// `DT_NEEDED`.
const NEEDED: u64 = 1;
/// `STB_WEAK`: may be missing.
const WEAK: u8 = 2;

/// The contents of a library's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elf {
    /// `e_machine`.
    machine: u64,
    /// The libraries that it depends on.
    pub(crate) needed: Vec<String>,
    /// Functions and data that it requires.
    pub(crate) wanted: Vec<String>,
    /// Functions and data that it exports.
    pub(crate) given: Vec<String>,
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(len)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn name(strings: &[u8], at: u64) -> Option<String> {
    let rest = strings.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

impl Elf {
    /// Parses a whole file; `None` if it is truncated or not a 64-bit little-endian ELF file.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(MAGIC) || bytes.get(4..6)? != FORM {
            return None;
        }
        let (table, count) = (usize::try_from(number(bytes, 0x28, 8)?).ok()?, number(bytes, 0x3c, 2)? as usize);
        let mut elf =
            Self { machine: number(bytes, 0x12, 2)?, needed: Vec::new(), wanted: Vec::new(), given: Vec::new() };
        let section = |n: usize| {
            let at = table.checked_add(n.checked_mul(SECTION_BYTES)?)?;
            let (kind, start, len) =
                (number(bytes, at + 4, 4)?, number(bytes, at + 0x18, 8)?, number(bytes, at + 0x20, 8)?);
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(len).ok()?)?;
            Some((kind, number(bytes, at + 0x28, 4)? as usize, start..end))
        };
        for n in 0..count {
            let (kind, link, range) = section(n)?;
            if kind != DYNSYM && kind != DYNAMIC {
                continue;
            }
            let (_, _, strings) = section(link)?;
            let (own, strings) = (bytes.get(range)?, bytes.get(strings)?);
            match kind {
                DYNSYM => elf.symbols(own, strings),
                _ => elf.dynamic(own, strings),
            }
        }
        Some(elf)
    }

    fn symbols(&mut self, own: &[u8], strings: &[u8]) {
        for symbol in own.chunks_exact(SYMBOL_BYTES) {
            let Some(name) = number(symbol, 0, 4).and_then(|at| name(strings, at)) else { continue };
            let is_defined = symbol[6..8] != [0, 0];
            match is_defined {
                _ if name.is_empty() => {}
                true => self.given.push(name),
                false if symbol[4] >> 4 != WEAK => self.wanted.push(name),
                false => {}
            }
        }
    }

    fn dynamic(&mut self, own: &[u8], strings: &[u8]) {
        for entry in own.chunks_exact(DYNAMIC_BYTES) {
            if number(entry, 0, 8) == Some(NEEDED) {
                self.needed.extend(number(entry, 8, 8).and_then(|at| name(strings, at)));
            }
        }
    }

    pub(crate) fn machine(&self) -> String {
        match self.machine {
            3 => "x86".to_owned(),
            20 | 21 => "ppc64".to_owned(),
            22 => "s390x".to_owned(),
            40 => "arm".to_owned(),
            62 => "x86_64".to_owned(),
            183 => "aarch64".to_owned(),
            243 => "riscv64".to_owned(),
            258 => "loongarch64".to_owned(),
            other => format!("machine {other}"),
        }
    }

    pub(crate) fn needs_glibc(&self) -> bool {
        self.needed.iter().any(|name| name == "libc.so.6")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A library for a machine, with its dependencies, imports, and exports.
    pub(crate) fn made_up(machine: u16, needed: &[&str], wanted: &[&str], given: &[&str]) -> Vec<u8> {
        let mut strings = vec![0];
        let mut keep = |text: &str| {
            let at = strings.len() as u32;
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            at
        };
        let (mut dynamic, mut symbols) = (Vec::new(), vec![0; SYMBOL_BYTES]);
        for name in needed {
            dynamic.extend(NEEDED.to_le_bytes());
            dynamic.extend(u64::from(keep(name)).to_le_bytes());
        }
        for (names, section) in [(wanted, 0_u16), (given, 7)] {
            for name in names {
                symbols.extend(keep(name).to_le_bytes());
                symbols.extend([0x12, 0]);
                symbols.extend(section.to_le_bytes());
                symbols.extend([0; 16]);
            }
        }
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x12..0x14].copy_from_slice(&machine.to_le_bytes());
        let mut sections = vec![0; SECTION_BYTES];
        for (kind, link, content) in [(3, 0, &strings), (DYNSYM as u32, 1, &symbols), (DYNAMIC as u32, 1, &dynamic)] {
            let mut section = vec![0; SECTION_BYTES];
            section[4..8].copy_from_slice(&u32::to_le_bytes(kind));
            section[0x18..0x20].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            section[0x20..0x28].copy_from_slice(&(content.len() as u64).to_le_bytes());
            section[0x28..0x2c].copy_from_slice(&u32::to_le_bytes(link));
            sections.extend(section);
            bytes.extend(content);
        }
        let (table, count) = (bytes.len() as u64, (sections.len() / SECTION_BYTES) as u16);
        bytes[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        bytes[0x3c..0x3e].copy_from_slice(&count.to_le_bytes());
        bytes.extend(sections);
        bytes
    }

    #[test]
    fn a_library_has_its_machine_and_requirements() {
        let bytes = made_up(183, &["libc.so.6", "libdl.so.2"], &["malloc"], &["Agent_OnLoad"]);
        let elf = Elf::parse(&bytes).unwrap();
        assert_eq!(elf.machine(), "aarch64");
        assert!(elf.needs_glibc());
        assert_eq!((elf.wanted, elf.given), (vec!["malloc".to_owned()], vec!["Agent_OnLoad".to_owned()]));
        for cut in 0..bytes.len() {
            // Parsing returns a library or `None`, and never panics.
            let _ = Elf::parse(&bytes[..cut]);
        }
        assert_eq!(Elf::parse(b"\x7fELF\x01\x01 a library of 32 bits"), None);
    }
}
