//! `/proc/PID/maps` (man proc_pid_maps): the mappings of a process, without their weights. Read line by line, with
//! shared strings stored once, because a process may have 65,530 mappings (the default `vm.max_map_count`), each with a
//! path of 4,096 bytes.

use loadline_base::units::Bytes;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::sync::Arc;

/// Maximum number of mappings kept per process: 16 times the default `vm.max_map_count`.
pub const MAPPINGS_MAX: usize = 1 << 20;
/// A path is at most 4,096 bytes long, each of which takes four if escaped.
pub const LINE_BYTES_MAX: usize = 20 << 10;
/// Bytes per read.
const PIECE_BYTES: usize = 64 << 10;
/// The kernel's mark for a deleted file.
pub const DELETED: &str = " (deleted)";

/// Interned strings.
#[derive(Debug, Default)]
pub struct Texts(HashSet<Arc<str>>);

impl Texts {
    fn keep(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let kept: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&kept));
        kept
    }
}

/// One mapping: a range of addresses with one origin and one set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mapping<Text = Arc<str>> {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// As the kernel writes them: `rw-p`, `r-xp`, `rw-s`.
    pub perms: Text,
    /// Position in the file, in bytes.
    pub offset: u64,
    /// Inode of the file; 0 if no file is mapped.
    pub inode: u64,
    /// The file, a name in brackets such as `[heap]`, or nothing.
    pub path: Text,
}

/// A line of `maps`, not stored yet.
pub type Line<'l> = Mapping<&'l str>;

impl<'l, Text: From<&'l str>> Mapping<Text> {
    /// The mapping on a line; `None` if the line does not have this form:
    /// `7f2f7e800000-7f2f7eae3000 r--p 00000000 fe:00 315638                     /opt/jdk-25/lib/server/libjvm.so`
    pub fn parse(line: &'l str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (perms, rest) = rest.split_once(' ')?;
        let (offset, rest) = rest.split_once(' ')?;
        let (_device, rest) = rest.split_once(' ')?;
        let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        (perms.len() == 4 && start < end).then_some(())?;
        let (offset, inode) = (hex(offset)?, inode.parse().ok()?);
        Some(Self { start, end, perms: perms.into(), offset, inode, path: path.trim_start().into() })
    }
}

impl Line<'_> {
    /// The mapping with its strings interned.
    pub fn kept(self, texts: &mut Texts) -> Mapping {
        let Self { start, end, perms, offset, inode, path } = self;
        Mapping { start, end, perms: texts.keep(perms), offset, inode, path: texts.keep(path) }
    }
}

impl<Text: Deref<Target = str>> Mapping<Text> {
    /// Its size in the address space.
    pub fn size(&self) -> Bytes {
        Bytes(self.end - self.start)
    }

    /// The path of its file without ` (deleted)`; `None` if it has none.
    pub fn file(&self) -> Option<&str> {
        self.path.starts_with('/').then(|| self.path.strip_suffix(DELETED).unwrap_or(&self.path))
    }

    /// The name of its file without directories; empty if it has none.
    pub fn file_name(&self) -> &str {
        self.file().and_then(|path| path.rsplit('/').next()).unwrap_or("")
    }
}

/// Parses `maps`, in address order; skips unrecognized lines.
pub fn parse(text: &str) -> Vec<Mapping> {
    let mut texts = Texts::default();
    text.lines().filter_map(Line::parse).map(|line| line.kept(&mut texts)).collect()
}

/// Reads the mappings of a process. Fails if the process is gone, its mappings are not readable, or there are more than
/// `MAPPINGS_MAX`.
pub fn of(pid: u32) -> io::Result<Vec<Mapping>> {
    read(File::open(format!("/proc/{pid}/maps"))?)
}

/// Reads mappings in address order; skips unrecognized lines. Fails if they cannot be read, or there are more than
/// `MAPPINGS_MAX`.
pub fn read(from: impl Read) -> io::Result<Vec<Mapping>> {
    let (mut texts, mut mappings) = (Texts::default(), Vec::new());
    each_line(from, |line| {
        mappings.extend(Line::parse(line).map(|line| line.kept(&mut texts)));
        if mappings.len() > MAPPINGS_MAX { Err(too_many(MAPPINGS_MAX)) } else { Ok(()) }
    })?;
    Ok(mappings)
}

/// Returns the error for a process with more mappings than are kept.
pub fn too_many(most: usize) -> io::Error {
    io::Error::other(format!("it has more than {most} mappings"))
}

/// Passes each line to `each`. Skips lines longer than the kernel writes. Fails if the text cannot be read, or if
/// `each` returns an error.
pub fn each_line(mut from: impl Read, mut each: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    // The bytes of the current line so far, and whether it is already too long.
    let (mut begun, mut skips) = (0, false);
    loop {
        let read = match from.read(&mut buffer[begun..]) {
            Ok(read) => read,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(cause),
        };
        let (end, mut at) = (begun + read, 0);
        while let Some(length) = memchr::memchr(b'\n', &buffer[at..end]) {
            let line = &buffer[at..at + length];
            at += length + 1;
            if !std::mem::take(&mut skips) {
                each(&String::from_utf8_lossy(line))?;
            }
        }
        if read == 0 {
            return if end > at && !skips { each(&String::from_utf8_lossy(&buffer[at..end])) } else { Ok(()) };
        }
        buffer.copy_within(at..end, 0);
        begun = end - at;
        if begun > LINE_BYTES_MAX {
            (begun, skips) = (0, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_its_file_name() {
        let check = |line, expect: Option<(u64, &str)>| {
            let mapping = Line::parse(line);
            assert_eq!(mapping.as_ref().map(|mapping| (mapping.inode, mapping.file_name())), expect, "{line}");
        };
        check("7f1c46a00000-7f1c47b96000 r-xp 00000000 fe:00 1311   /usr/lib/a b/libjvm.so", Some((1311, "libjvm.so")));
        check("7f1c46a00000-7f1c47b96000 r-xp 00000000 fe:00 7 /x (deleted)", Some((7, "x")));
        check("7f1c46a00000-7f1c47b96000 rw-p 00000000 00:00 0 ", Some((0, "")));
        check("7ffd1000-7ffd2000 rw-p 00000000 00:00 0    [stack]", Some((0, "")));
        let line = "7f1c46a00000-7f1c47b96000 r-xp 00000000 fe:00 1311 /é/libjvm.so";
        for end in (0..line.len()).filter(|&end| line.is_char_boundary(end)) {
            let _ = Line::parse(&line[..end]);
        }
    }

    #[test]
    fn lines_in_another_form_are_skipped() {
        assert_eq!(parse("x\n1-2\n2000-1000 rw-p 0 0:0 0\n1000-2000 rw-p 0 0:0 0\n").len(), 1);
    }

    #[test]
    fn lines_are_complete_for_any_read_sizes() {
        /// Returns one byte, then two, then three.
        struct Slow<'t>(&'t [u8], usize);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.1 = self.1 % 3 + 1;
                let len = self.1.min(into.len()).min(self.0.len());
                into[..len].copy_from_slice(&self.0[..len]);
                self.0 = &self.0[len..];
                Ok(len)
            }
        }
        let long = "x".repeat(3 * PIECE_BYTES);
        let text = format!("one\n\ntwo\n{long}\nthree\nfour");
        let lines = |from: &mut dyn Read| {
            let mut lines = Vec::new();
            each_line(from, |line| {
                lines.push(line.to_owned());
                Ok(())
            })
            .unwrap();
            lines
        };
        let expect = ["one", "", "two", "three", "four"];
        assert_eq!(lines(&mut text.as_bytes()), expect);
        assert_eq!(lines(&mut Slow(text.as_bytes(), 0)), expect);
    }

    #[test]
    fn shared_paths_are_stored_once_and_too_many_mappings_fail() {
        let path = format!("/{}", "p".repeat(400));
        let line = |n: usize| format!("{:x}-{:x} r--p 0 fe:00 7 {path}\n", n << 12, (n + 1) << 12);
        let text: String = (1..1000).map(line).collect();
        let mappings = read(text.as_bytes()).unwrap();
        assert_eq!(mappings.len(), 999);
        assert!(mappings.iter().all(|mapping| Arc::ptr_eq(&mapping.path, &mappings[0].path)));
        let short = "1000-2000 r--p 0 0:0 7\n".repeat(MAPPINGS_MAX + 1);
        assert!(read(short.as_bytes()).unwrap_err().to_string().contains("more than 1048576 mappings"));
    }
}
