//! `/proc/PID/maps` (man proc_pid_maps): the mappings of a process, without their weights.

use crate::units::Bytes;
use std::fs::File;
use std::io::{self, Read};

/// 65,530 mappings (the default `vm.max_map_count`) of 250 bytes.
pub(crate) const MAPS_BYTES_MAX: u64 = 32 << 20;
/// How the kernel marks a file whose name is gone.
pub(crate) const DELETED: &str = " (deleted)";

/// One mapping: a range of addresses with one origin and one set of permissions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind.
    pub end: u64,
    /// As the kernel writes them: `rw-p`, `r-xp`, `rw-s`.
    pub perms: String,
    /// Position in the file, in bytes.
    pub offset: u64,
    /// Inode of the file, 0 for none.
    pub inode: u64,
    /// The file, a name in brackets such as `[heap]`, or nothing.
    pub path: String,
}

impl Mapping {
    /// `7f2f7e800000-7f2f7eae3000 r--p 00000000 fe:00 315638                     /opt/jdk-25/lib/server/libjvm.so`
    pub fn parse(line: &str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (perms, rest) = rest.split_once(' ')?;
        let (offset, rest) = rest.split_once(' ')?;
        let (_device, rest) = rest.split_once(' ')?;
        let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        (perms.len() == 4 && start < end).then_some(())?;
        Some(Self {
            start,
            end,
            perms: perms.to_owned(),
            offset: hex(offset)?,
            inode: inode.parse().ok()?,
            path: path.trim_start().to_owned(),
        })
    }

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
    text.lines().filter_map(Mapping::parse).collect()
}

/// Reads the mappings of a process.
///
/// # Errors
/// Where the process has gone, or they may not be read.
pub fn of(pid: u32) -> io::Result<Vec<Mapping>> {
    let mut text = Vec::new();
    File::open(format!("/proc/{pid}/maps"))?.take(MAPS_BYTES_MAX).read_to_end(&mut text)?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_names_its_file() {
        let check = |line, expect: Option<(u64, &str)>| {
            let mapping = Mapping::parse(line);
            assert_eq!(mapping.as_ref().map(|mapping| (mapping.inode, mapping.file_name())), expect, "{line}");
        };
        check("7f1c46a00000-7f1c47b96000 r-xp 00000000 fe:00 1311   /usr/lib/a b/libjvm.so", Some((1311, "libjvm.so")));
        check("7f1c46a00000-7f1c47b96000 r-xp 00000000 fe:00 7 /x (deleted)", Some((7, "x")));
        check("7f1c46a00000-7f1c47b96000 rw-p 00000000 00:00 0 ", Some((0, "")));
        check("7ffd1000-7ffd2000 rw-p 00000000 00:00 0    [stack]", Some((0, "")));
        let line = "7f1c46a00000-7f1c47b96000 r-xp 00000000 fe:00 1311 /é/libjvm.so";
        for end in (0..line.len()).filter(|&end| line.is_char_boundary(end)) {
            let _ = Mapping::parse(&line[..end]);
        }
    }

    #[test]
    fn lines_in_another_form_are_left_out() {
        assert_eq!(parse("x\n1-2\n2000-1000 rw-p 0 0:0 0\n1000-2000 rw-p 0 0:0 0\n").len(), 1);
    }
}
