//! Mounts and their mount points: `/proc/PID/mountinfo` (man proc_pid_mountinfo).

use std::path::PathBuf;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount<'t> {
    /// The directory of the file system that is visible at the mount point.
    pub root: PathBuf,
    /// The mount point.
    pub point: PathBuf,
    /// `cgroup2`, `overlay` …
    pub kind: &'t str,
    options: &'t str,
}

impl<'t> Mount<'t> {
    /// `35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:16 - cgroup cgroup rw,memory`
    pub fn parse(line: &'t str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (unescape(left.next()?).into(), unescape(left.next()?).into());
        let mut right = right.split(' ');
        // The source, which may contain anything, comes between type and options.
        let (kind, options) = (right.next()?, right.nth(1)?);
        Some(Self { root, point, kind, options })
    }

    /// The options of the file system, such as `memory` or `lowerdir=/a:/b`.
    pub fn options(&self) -> impl Iterator<Item = String> + 't {
        self.options.split(',').map(unescape)
    }
}

/// Parses `mountinfo`; skips unrecognized lines. A later mount hides earlier ones at its mount point.
pub fn parse(mountinfo: &str) -> impl DoubleEndedIterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(Mount::parse)
}

/// Decodes spaces and backslashes, which the kernel writes as `\040` and `\134`.
fn unescape(text: &str) -> String {
    let mut pieces = text.split('\\');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(u8::is_ascii);
        match code {
            Some(byte) => {
                out.push(char::from(byte));
                out.push_str(&piece[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(piece);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "22 21 0:5 / /dev rw - devtmpfs dev rw\n\
        73 48 0:40 /a\\040b /m\\134\\011x rw,relatime master:2 - overlay overlay rw,lowerdir=/a/l/HF\\0403Q:/é\\9";

    #[test]
    fn a_mount_has_its_directory_and_options() {
        let mount = parse(LINES).next_back().unwrap();
        let seen = (mount.root.to_str(), mount.point.to_str(), mount.kind);
        assert_eq!(seen, (Some("/a b"), Some("/m\\\tx"), "overlay"));
        assert_eq!(mount.options().collect::<Vec<_>>(), ["rw", "lowerdir=/a/l/HF 3Q:/é\\9"]);
        assert_eq!(parse("1 2 0:5 / /dev rw devtmpfs dev rw\n\n - - \n").count(), 0);
    }

    #[test]
    fn truncated_mounts_never_panic() {
        for end in (0..LINES.len()).filter(|&end| LINES.is_char_boundary(end)) {
            assert!(parse(&LINES[..end]).map(|mount| mount.options().count()).sum::<usize>() <= 3);
        }
    }
}
