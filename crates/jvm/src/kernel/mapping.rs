//! `/proc/PID/maps` (man proc_pid_maps): the mappings of a process, without their weights. Read line by line, and a
//! text that many mappings share is kept once: a process may have 65,530 mappings (the default `vm.max_map_count`),
//! each with a path of 4,096 bytes.

use loadline_base::units::Bytes;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::sync::Arc;

/// Mappings of one process that are kept at most: 16 times the default `vm.max_map_count`.
pub const MAPPINGS_MAX: usize = 1 << 20;
/// A path of a mapping has at most 4,096 bytes, each written as four where it is escaped.
pub const LINE_BYTES_MAX: usize = 20 << 10;
/// Bytes read from a file at once.
const PIECE_BYTES: usize = 64 << 10;
/// How the kernel marks a file whose name is gone.
pub const DELETED: &str = " (deleted)";

/// Texts of which each is kept once.
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
    /// First address behind.
    pub end: u64,
    /// As the kernel writes them: `rw-p`, `r-xp`, `rw-s`.
    pub perms: Text,
    /// Position in the file, in bytes.
    pub offset: u64,
    /// Inode of the file, 0 for none.
    pub inode: u64,
    /// The file, a name in brackets such as `[heap]`, or nothing.
    pub path: Text,
}

/// A line of `maps`, before anything of it is kept.
pub type Line<'l> = Mapping<&'l str>;

impl<'l, Text: From<&'l str>> Mapping<Text> {
    /// The mapping of a line; `None` for a line in another form:
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
    /// The mapping, its texts among those that are kept already.
    pub fn kept(self, texts: &mut Texts) -> Mapping {
        let Self { start, end, perms, offset, inode, path } = self;
        Mapping { start, end, perms: texts.keep(perms), offset, inode, path: texts.keep(path) }
    }
}

impl<Text: Deref<Target = str>> Mapping<Text> {
    /// Address space it takes.
    pub fn size(&self) -> Bytes {
        Bytes(self.end - self.start)
    }

    /// The path of its file without ` (deleted)`, unless it has none.
    pub fn file(&self) -> Option<&str> {
        self.path.starts_with('/').then(|| self.path.strip_suffix(DELETED).unwrap_or(&self.path))
    }

    /// Name of its file without folders; empty when it has none.
    pub fn file_name(&self) -> &str {
        self.file().and_then(|path| path.rsplit('/').next()).unwrap_or("")
    }
}

/// Parses `maps`, in address order; lines in another form are left out.
pub fn parse(text: &str) -> Vec<Mapping> {
    let mut texts = Texts::default();
    text.lines().filter_map(Line::parse).map(|line| line.kept(&mut texts)).collect()
}

/// Reads the mappings of a process.
///
/// # Errors
/// If the process has gone, its mappings may not be read, or there are more than `MAPPINGS_MAX`.
pub fn of(pid: u32) -> io::Result<Vec<Mapping>> {
    read(File::open(format!("/proc/{pid}/maps"))?)
}

/// Reads mappings, in address order; lines in another form are left out.
///
/// # Errors
/// If they cannot be read, or there are more than `MAPPINGS_MAX`.
pub fn read(from: impl Read) -> io::Result<Vec<Mapping>> {
    let (mut texts, mut mappings) = (Texts::default(), Vec::new());
    each_line(from, |line| {
        mappings.extend(Line::parse(line).map(|line| line.kept(&mut texts)));
        if mappings.len() > MAPPINGS_MAX { Err(too_many(MAPPINGS_MAX)) } else { Ok(()) }
    })?;
    Ok(mappings)
}

/// Returns the error for a process that has more mappings than are kept.
pub fn too_many(most: usize) -> io::Error {
    io::Error::other(format!("it has more than {most} mappings"))
}

/// Hands out each line, until one is refused. A line that is longer than any that the kernel writes is left out.
///
/// # Errors
/// If the text cannot be read, or if `each` returns an error.
pub fn each_line(mut from: impl Read, mut each: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    // Bytes of the line that has begun, and whether it is too long already.
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
    fn a_mapping_names_its_file() {
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
    fn lines_in_another_form_are_left_out() {
        assert_eq!(parse("x\n1-2\n2000-1000 rw-p 0 0:0 0\n1000-2000 rw-p 0 0:0 0\n").len(), 1);
    }

    #[test]
    fn lines_are_handed_out_whole_however_they_are_read() {
        /// Hands out one byte, then two, then three.
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
    fn a_path_of_many_mappings_is_kept_once_and_too_many_are_refused() {
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
