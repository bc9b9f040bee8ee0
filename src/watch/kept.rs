//! The description of a history, in two pages of its file. Updates overwrite the older page, so that a torn write
//! leaves the other one valid. Readers use the newer valid page.
//!
//! ```text
//! "loadline.history/1\n\0" · revision u64 · length u32 · JSON of Kept · CRC-32 of everything before it, little-endian
//! ```

use super::bounds::Bounds;
use super::sealed;
use crate::record::WatchCharge;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8; 20] = b"loadline.history/1\n\0";
pub(super) const PAGE_BYTES: usize = 4096;
const JSON_AT: usize = MAGIC.len() + 8 + 4;
const JSON_BYTES_MAX: usize = PAGE_BYTES - JSON_AT - 4;

/// The JVM that a history belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// Its stable display name.
    pub name: String,
    /// Pid in the watch's namespace.
    pub pid: u32,
    /// Start time in seconds since the epoch, by the clock of the first watch.
    pub started_unix_s: u64,
    /// The start in clock ticks since boot; with pid and boot ID, uniquely identifies the process.
    pub started_ticks: u64,
    /// The boot ID; `None` if the kernel does not report it.
    pub boot_id: Option<String>,
    /// The sampling interval in milliseconds.
    pub every_ms: u64,
    /// `25.0.3+9`; `None` if unknown.
    pub version: Option<String>,
    /// `G1`; `None` if unknown.
    pub collector: Option<String>,
    /// The first 500 characters of the main class or archive with its arguments.
    pub command: String,
    /// Its cgroup.
    pub cgroup: Option<String>,
    /// The bounds of the JVM and its parts.
    pub bounds: Bounds,
    /// How it ended; `None` while it runs, or if its end was not observed.
    pub end: Option<End>,
}

impl Kept {
    /// The history's file name: name, start, and pid, so that JVMs with the same name sort together, as in
    /// `shop.service.1763890000.4711.history`.
    pub(super) fn file_name(&self) -> String {
        format!("{}.{}.{}.history", self.plain_name(), self.started_unix_s, self.pid)
    }

    pub(super) fn plain_name(&self) -> String {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
        let name: String = self.name.chars().map(plain).take(100).collect();
        name.trim_start_matches('.').to_owned()
    }

    pub(super) fn is_of(&self, other: &Self) -> bool {
        let of = |kept: &Self| (kept.pid, kept.started_ticks);
        of(self) == of(other) && self.boot_id.as_ref().zip(other.boot_id.as_ref()).is_none_or(|(one, two)| one == two)
    }
}

/// The end of a JVM's life.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// The JVM's age in milliseconds.
    pub age_ms: u64,
    /// The cause, if it was OOM-killed.
    pub killed: Option<KilledBy>,
    /// The charge of its cgroup at the last reading.
    pub charge: Option<WatchCharge>,
}

/// The cause of an OOM kill.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KilledBy {
    /// The cgroup whose limit was reached; empty for the machine, `None` if unknown.
    pub cgroup: Option<String>,
    /// The JVM's anonymous memory at the kill, from the kernel's log.
    pub anon_bytes: Option<u64>,
    /// The source: `kernel log` or `memory events`.
    pub source: String,
}

/// Reads both pages; returns the newer description and its revision. Fails if neither is valid, or the file cannot be
/// read.
pub(super) fn read(file: &File, pages_at: [u64; 2]) -> io::Result<(Kept, u64)> {
    let [first, second] = pages_at.map(|at| page(file, at));
    match (first, second) {
        (Ok(first), Ok(second)) => Ok(if second.1 > first.1 { second } else { first }),
        (Ok(whole), Err(_)) | (Err(_), Ok(whole)) => Ok(whole),
        (Err(why), Err(_)) => Err(why),
    }
}

fn page(file: &File, at: u64) -> io::Result<(Kept, u64)> {
    let mut page = [0; PAGE_BYTES];
    read_what_is_there(file, &mut page, at)?;
    let no = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let rest = page.strip_prefix(MAGIC).ok_or_else(|| no("it does not start with a history header"))?;
    let revision = rest.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
    let length = rest[8..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
    let end = JSON_AT + length.min(JSON_BYTES_MAX);
    if page[end..end + 4] != sealed::sum(&page[..end]).to_le_bytes() {
        return Err(no("its first page is damaged"));
    }
    let kept: Kept = serde_json::from_slice(&page[JSON_AT..end]).map_err(io::Error::other)?;
    if kept.every_ms == 0 { Err(no("its sampling interval is 0 ms")) } else { Ok((kept, revision)) }
}

/// Writes a page. If the description is too long, truncates the longest strings: a cgroup path can be 4,096 bytes long,
/// and each byte of an argument can take six bytes in JSON.
pub(super) fn write(file: &File, at: u64, kept: &Kept, revision: u64) -> io::Result<()> {
    let mut kept = kept.clone();
    let mut json = serde_json::to_vec(&kept).map_err(io::Error::other)?;
    while json.len() > JSON_BYTES_MAX {
        halve(longest(&mut kept));
        json = serde_json::to_vec(&kept).map_err(io::Error::other)?;
    }
    let mut page = Vec::with_capacity(PAGE_BYTES);
    page.extend_from_slice(MAGIC);
    page.extend_from_slice(&revision.to_le_bytes());
    page.extend_from_slice(&(json.len() as u32).to_le_bytes());
    page.extend_from_slice(&json);
    sealed::seal(&mut page);
    file.write_all_at(&page, at)
}

fn longest(kept: &mut Kept) -> &mut String {
    let mut longest = &mut kept.command;
    let killed = kept.end.as_mut().and_then(|end| end.killed.as_mut()).and_then(|killed| killed.cgroup.as_mut());
    let others = [Some(&mut kept.name), kept.version.as_mut(), kept.collector.as_mut(), kept.cgroup.as_mut(), killed];
    for other in others.into_iter().chain([kept.boot_id.as_mut()]).flatten() {
        if other.len() > longest.len() {
            longest = other;
        }
    }
    longest
}

fn halve(text: &mut String) {
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    text.truncate(half);
}

/// Reads up to the end of the file; the rest of the buffer stays 0.
pub(super) fn read_what_is_there(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64) {
            Ok(0) => return Ok(()),
            Ok(read) => done += read,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::WatchProcesses;

    const AT: [u64; 2] = [0, PAGE_BYTES as u64];

    fn named(name: &str) -> Kept {
        Kept { name: name.to_owned(), every_ms: 10_000, ..Kept::default() }
    }

    #[test]
    fn a_torn_page_leaves_the_other_intact() {
        let file = tempfile::tempfile().unwrap();
        write(&file, AT[0], &named("old"), 4).unwrap();
        write(&file, AT[1], &named("new"), 5).unwrap();
        assert_eq!(read(&file, AT).unwrap(), (named("new"), 5));
        for cut in 0..200 {
            let mut page = vec![0; PAGE_BYTES];
            read_what_is_there(&file, &mut page, AT[1]).unwrap();
            let whole = page.clone();
            page[cut..].fill(0);
            file.write_all_at(&page, AT[1]).unwrap();
            assert_eq!(read(&file, AT).unwrap(), (named("old"), 4), "cut after {cut} bytes");
            file.write_all_at(&whole, AT[1]).unwrap();
        }
        file.write_all_at(&u32::MAX.to_le_bytes(), (MAGIC.len() + 8) as u64).unwrap();
        assert_eq!(read(&file, AT).unwrap().1, 5, "a page with an invalid length is ignored");
        file.write_all_at(b"x", AT[1]).unwrap();
        assert!(read(&file, AT).unwrap_err().to_string().contains("damaged"));
    }

    #[test]
    fn history_file_names_stay_within_the_directory() {
        for name in ["../../etc/passwd", "..", "/", "a/b#2", "\u{1b}[2J\n", "", "\u{5546}\u{5e97}"] {
            let file = named(name).file_name();
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
            assert!(file.chars().all(plain) && !file.starts_with("..") && file.ends_with(".0.0.history"), "{file}");
        }
        assert!(named(&"x".repeat(10_000)).file_name().len() < 200);
    }

    #[test]
    fn an_overlong_description_is_truncated_not_rejected() {
        let file = tempfile::tempfile().unwrap();
        let long = "\u{1}".repeat(4096);
        let killed = Some(KilledBy { cgroup: Some(long.clone()), ..KilledBy::default() });
        // The maximum number of commands at maximum length.
        let helpers = WatchProcesses { command: "\u{10ffff}".repeat(60), processes: u64::MAX, bytes: u64::MAX };
        let charge = Some(WatchCharge { others: vec![helpers; 5], ..WatchCharge::default() });
        let (end, cgroup) = (Some(End { age_ms: 7, killed, charge }), Some(long.clone()));
        write(&file, 0, &Kept { command: long, cgroup, end, ..named("shop") }, 1).unwrap();
        let (kept, _) = read(&file, AT).unwrap();
        assert_eq!((kept.name.as_str(), kept.end.map(|end| end.age_ms)), ("shop", Some(7)));
        assert!(kept.command.len() > 50 && kept.cgroup.is_some_and(|cgroup| cgroup.len() > 50));
    }
}
