//! A JVM's samples in a file of fixed size: 1 h of samples, 24 h of minutes, 30 days of ten-minute cells. These lengths
//! apply to one sample every ten seconds; faster sampling keeps the same number of shorter cells. The file also has the
//! complete sample at each column's maximum.
//!
//! The file is sparse until it is full (1.8 MiB). Each sample is written immediately, so killing the process loses
//! nothing. The file is synced after each ten-minute cell, so a machine failure loses at most one such cell. Truncated
//! records are skipped. Data that the disk rejects waits in memory, up to a limit.
//!
//! ```text
//! 4 KiB: description      cells of three tiers, each at its number modulo the tier's size      the extremes: one
//! sample per column      4 KiB: description again
//! ```

use super::bounds::Bounds;
use super::cell::{Cell, Filling};
use super::column::{COLUMNS, Column};
use super::kept::{self, End, Kept, PAGE_BYTES, read_what_is_there};
use super::sample::Sample;
use super::sealed::{self, CELL_BYTES, SAMPLE_BYTES};
use super::unwritten::Unwritten;
use crate::kernel::private_file;
use crate::units::Span;
use loadline_base::order::Order as _;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Cell length in samples and number of cells: an hour, a day, and thirty days at one sample every ten seconds.
pub(super) const TIERS: [(u64, u64); 3] = [(1, 360), (6, 1440), (60, 4320)];
/// A record that was never written.
const NOTHING: [u8; CELL_BYTES] = [0; CELL_BYTES];
/// Cells read at a time: 70 KiB.
const CELLS_READ: usize = 240;
/// Samples per cell of the slowest tier, by which growth is judged.
pub(super) const SAMPLES_OF_CELL: u64 = TIERS[2].0;

/// The suffix, followed by a number, of a file that had a history's name.
pub(super) const ASIDE: &str = ".aside-";
const ASIDE_MAX: u32 = 100;

/// A cell length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// One sample each, for an hour.
    Samples,
    /// Six samples each, for a day.
    Minutes,
    /// Sixty samples each, for thirty days.
    TenMinutes,
}

impl Tier {
    /// All of them, shortest first.
    pub(super) const ALL: [Self; 3] = [Self::Samples, Self::Minutes, Self::TenMinutes];
}

#[derive(Debug)]
pub(super) struct History {
    file: Arc<File>,
    kept: Kept,
    /// The revision of its description page.
    revision: u64,
    filling: [Option<Filling>; 2],
    extremes: [u64; COLUMNS],
    last: Option<Last>,
    unwritten: Unwritten,
    /// Whether unsynced data should be synced soon.
    due: bool,
    /// The file that previously had its name.
    pub(super) aside: Option<Aside>,
}

/// A file that had a history's name and was renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Aside {
    /// Its new path.
    pub(super) to: PathBuf,
    /// Why it could not be continued.
    pub(super) why: String,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    number: u64,
    /// Its age; `None` if another watch took it.
    age_ms: Option<u64>,
}

/// A history that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Past {
    /// Its description.
    pub kept: Kept,
    tiers: [Vec<Cell>; 3],
    /// The sample at each column's maximum.
    pub extremes: Vec<(Column, Sample)>,
    /// The number of damaged records, which were skipped.
    pub spoilt: usize,
}

impl Past {
    /// The cells of a tier, oldest first.
    pub fn cells(&self, tier: Tier) -> &[Cell] {
        &self.tiers[tier as usize]
    }

    /// The cell length of a tier, in seconds.
    pub fn cell_s(&self, tier: Tier) -> f64 {
        (TIERS[tier as usize].0 * self.kept.every_ms) as f64 / 1e3
    }

    /// The most recently written file for this pid in a directory.
    pub fn last_of(folder: &Path, pid: u32) -> Option<PathBuf> {
        let ends = format!(".{pid}.history");
        let files = std::fs::read_dir(folder).ok()?.flatten();
        let own = files.filter(|file| file.file_name().to_string_lossy().ends_with(&ends));
        own.max_by_key(|file| file.metadata().and_then(|about| about.modified()).ok()).map(|file| file.path())
    }

    /// Reads a file. Fails if it cannot be read, or has no valid description page.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::of(&private_file::open(path)?, &Unwritten::default())
    }

    fn of(file: &File, unwritten: &Unwritten) -> io::Result<Self> {
        let (kept, _) = kept::read(file, PAGES_AT)?;
        let mut past = Self { kept, ..Self::default() };
        for tier in 0..TIERS.len() {
            past.tiers[tier] = past.tier(file, tier, unwritten)?;
        }
        let mut extremes = BTreeMap::new();
        for (at, column) in Column::ALL.into_iter().enumerate() {
            let mut bytes = [0; SAMPLE_BYTES];
            read_what_is_there(file, &mut bytes, extreme_at(at))?;
            extremes.extend(sealed::sample(&bytes).map(|sample| (column, sample)));
        }
        extremes.extend(unwritten.extremes().map(|(column, sample)| (column, *sample)));
        past.extremes = extremes.into_iter().collect();
        past.fill_up();
        Ok(past)
    }

    /// The ring's cells that are recent enough, by number. Reads the ring in parts.
    fn tier(&mut self, file: &File, tier: usize, unwritten: &Unwritten) -> io::Result<Vec<Cell>> {
        let (_, size) = TIERS[tier];
        let mut bytes = vec![0; CELLS_READ * CELL_BYTES];
        let mut cells = Vec::new();
        for first in (0..size).step_by(CELLS_READ) {
            let part = &mut bytes[..CELL_BYTES * CELLS_READ.min((size - first) as usize)];
            part.fill(0);
            read_what_is_there(file, part, cell_at(tier, first))?;
            for record in part.chunks_exact(CELL_BYTES).filter(|record| *record != NOTHING) {
                match sealed::cell(record) {
                    Some(cell) => cells.push(cell),
                    None => self.spoilt += 1,
                }
            }
        }
        cells.extend(unwritten.cells(tier).cloned());
        cells.order_by_key(|cell| cell.number);
        keep_recent(&mut cells, size);
        Ok(cells)
    }

    /// Reconstructs the incomplete cells at the end of the file from their samples.
    fn fill_up(&mut self) {
        for tier in [1, 2] {
            let (length, _) = TIERS[tier];
            let done = self.tiers[tier].last().map(|cell| cell.number);
            let mut filling: Option<Filling> = None;
            let (samples, slower) = self.tiers.split_at_mut(1);
            let cells = &mut slower[tier - 1];
            for sample in samples[0].iter().filter(|cell| done.is_none_or(|done| cell.number / length > done)) {
                cells.extend(Filling::go_on(&mut filling, sample.number / length, &sample.sample()));
            }
            cells.extend(filling.map(|filling| filling.cell().clone()));
            keep_recent(cells, TIERS[tier].1);
        }
    }
}

/// Keeps only cells that a ring of this size can hold, which their layout by number requires.
fn keep_recent(cells: &mut Vec<Cell>, size: u64) {
    let newest = cells.last().map_or(0, |cell| cell.number);
    cells.retain(|cell| newest.saturating_sub(cell.number) < size);
}

impl Drop for History {
    fn drop(&mut self) {
        // The file may still be syncing, but other writers can have it now.
        let _ = flock(&*self.file, FlockOperation::Unlock);
    }
}

/// A file's description. Fails if it cannot be read, or is not a history.
pub(super) fn whose(path: &Path) -> io::Result<Kept> {
    Ok(kept::read(&private_file::open(path)?, PAGES_AT)?.0)
}

/// The file with a history's name; locked if writable.
enum There {
    Empty(File),
    /// A history, with its description and that page's revision.
    History(File, Box<Kept>, u64),
    /// A file that cannot be continued, and why.
    Other(String),
}

impl There {
    /// Opens the file, or creates it. Others may write to the user's directory, so their files are not trusted and
    /// their links not followed.
    fn find(path: &Path) -> io::Result<Self> {
        let mut options = private_file::options();
        let (file, is_new) = match options.read(true).create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause),
            Err(_) => match options.create_new(false).open(path) {
                Ok(file) => (file, false),
                Err(cause) => match cause.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::LOOP) => return Ok(Self::Other("it is a symbolic link".to_owned())),
                    Some(Errno::ISDIR | Errno::NXIO) => return Ok(Self::Other("it is not a regular file".to_owned())),
                    _ => return Err(cause),
                },
            },
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Ok(Self::Other("it is not a regular file".to_owned()));
        }
        if !is_new && !is_trusted(about.uid(), path) {
            return Ok(Self::Other(format!("it belongs to user id {}", about.uid())));
        }
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|cause| match cause {
            Errno::WOULDBLOCK => io::Error::other("another `loadline watch` is writing it"),
            cause => cause.into(),
        })?;
        if file.metadata()?.len() == 0 {
            return Ok(Self::Empty(file));
        }
        match kept::read(&file, PAGES_AT) {
            Ok((kept, revision)) => Ok(Self::History(file, Box::new(kept), revision)),
            // The disk failed, but the file may still be a history.
            Err(cause) if cause.raw_os_error().is_some() => Err(cause),
            Err(cause) => Ok(Self::Other(cause.to_string())),
        }
    }
}

/// Whether to trust a user's file: the owner of the directory can replace any file anyway.
fn is_trusted(owner: u32, path: &Path) -> bool {
    let folder = path.parent().and_then(|folder| folder.metadata().ok());
    owner == rustix::process::geteuid().as_raw() || folder.is_some_and(|folder| folder.uid() == owner)
}

/// Creates a directory for histories that only this user can enter, or uses the existing one.
pub fn create_folder(path: &Path) -> io::Result<()> {
    private_file::create_folders(path)
}

/// Renames a file to an unused name, and returns that.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{ASIDE}{number}"));
        PathBuf::from(name)
    };
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err_and(|why| why.kind() == io::ErrorKind::NotFound);
    let free = (1..=ASIDE_MAX).map(name).find(is_free).ok_or_else(|| {
        io::Error::other(format!(
            "it is not a history, and {ASIDE_MAX} such files were already moved aside: remove them"
        ))
    })?;
    std::fs::rename(path, &free)?;
    Ok(free)
}

impl History {
    /// Opens or creates a JVM's file. Renames another file with that name. Fails if the file cannot be written, or is
    /// another JVM's.
    pub(super) fn open(path: &Path, kept: &Kept) -> io::Result<Self> {
        let (there, aside) = match There::find(path)? {
            There::Other(why) => {
                let to = set_aside(path)?;
                (There::find(path)?, Some(Aside { to, why }))
            }
            there => (there, None),
        };
        let (file, revision) = match there {
            There::Empty(file) => (file, None),
            There::Other(why) => return Err(io::Error::other(why)),
            There::History(_, there, _) if !there.is_of(kept) => {
                return Err(io::Error::other(format!("it contains the history of {}", there.name)));
            }
            There::History(_, there, _) if there.every_ms != kept.every_ms => {
                let [there, here] = [there.every_ms, kept.every_ms].map(|ms| Span(Duration::from_millis(ms)));
                let why = format!("it has a sample every {there}, not every {here}: add `--every {there}`");
                return Err(io::Error::other(why));
            }
            There::History(file, _, revision) => (file, Some(revision)),
        };
        let mut history = Self {
            file: Arc::new(file),
            kept: kept.clone(),
            revision: revision.unwrap_or(0),
            filling: [None, None],
            extremes: [0; COLUMNS],
            last: None,
            unwritten: Unwritten::default(),
            due: false,
            aside,
        };
        match revision {
            Some(_) => history.go_on()?,
            None => history.begin()?,
        }
        Ok(history)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.set_len(PAGES_AT[1] + PAGE_BYTES as u64)?;
        // Writes both pages at the beginning, so that a full disk later has room for the end.
        self.describe()?;
        self.describe()
    }

    /// Overwrites the older description page.
    fn describe(&mut self) -> io::Result<()> {
        let revision = self.revision + 1;
        kept::write(&self.file, PAGES_AT[(revision % 2) as usize], &self.kept, revision)?;
        (self.revision, self.due) = (revision, true);
        Ok(())
    }

    /// Resumes the incomplete cells of the previous writer.
    fn go_on(&mut self) -> io::Result<()> {
        let past = self.past()?;
        for (column, sample) in &past.extremes {
            self.extremes[*column as usize] = sample.get(*column).unwrap_or(0);
        }
        let samples = past.cells(Tier::Samples);
        let Some(last) = samples.last().map(|cell| cell.number) else { return Ok(()) };
        self.last = Some(Last { number: last, age_ms: None });
        for cell in samples {
            for (filling, (length, _)) in self.filling.iter_mut().zip(&TIERS[1..]) {
                // Cells that were complete are in the file.
                Filling::go_on(filling, cell.number / length, &cell.sample());
            }
        }
        Ok(())
    }

    /// Adds a sample; returns whether it was kept. Drops a second sample for the same time. On a write error, unwritten
    /// data waits for a retry, up to a limit.
    pub(super) fn add(&mut self, sample: &Sample) -> io::Result<bool> {
        let Some(number) = self.number(sample.age_ms) else { return Ok(false) };
        self.last = Some(Last { number, age_ms: Some(sample.age_ms) });
        let mut one = Filling::new(number);
        one.add(sample);
        self.unwritten.push(0, one.cell().clone());
        for tier in [1, 2] {
            let (length, _) = TIERS[tier];
            if let Some(done) = Filling::go_on(&mut self.filling[tier - 1], number / length, sample) {
                self.unwritten.push(tier, done);
                self.due |= length == SAMPLES_OF_CELL;
            }
        }
        for (at, column) in Column::ALL.into_iter().enumerate().filter(|(_, column)| !column.only_rises()) {
            if let Some(seen) = sample.get(column).filter(|seen| *seen > self.extremes[at]) {
                self.extremes[at] = seen;
                self.unwritten.push_extreme(column, sample);
            }
        }
        self.write()?;
        Ok(true)
    }

    /// The sample cell for this age; `None` if it is taken. A sample at least half an interval after the last one gets
    /// the next cell, so jitter near a cell boundary loses no sample.
    fn number(&self, age_ms: u64) -> Option<u64> {
        let number = age_ms / self.kept.every_ms;
        let Some(last) = self.last.filter(|last| number <= last.number) else { return Some(number) };
        let is_next = last.age_ms.is_some_and(|before| age_ms >= before + self.kept.every_ms.div_ceil(2));
        (is_next && number == last.number).then_some(number + 1)
    }

    fn write(&mut self) -> io::Result<()> {
        let file = &self.file;
        self.unwritten.write(
            |tier, cell| file.write_all_at(&sealed::cell_bytes(cell), cell_at(tier, cell.number)),
            |column, sample| file.write_all_at(&sealed::sample_bytes(sample), extreme_at(column as usize)),
        )
    }

    /// The number of samples that could not be kept.
    pub(super) fn lost(&self) -> u64 {
        self.unwritten.lost
    }

    /// All records, including incomplete cells.
    pub(super) fn past(&self) -> io::Result<Past> {
        Past::of(&self.file, &self.unwritten)
    }

    /// The last sample and the last `minutes`, including incomplete cells.
    pub(super) fn lately(&self, minutes: u64) -> io::Result<Past> {
        let mut past = Past { kept: self.kept.clone(), ..Past::default() };
        let last = self.last.map_or(0, |last| last.number);
        for (tier, count) in [(0, 0), (1, minutes)] {
            let newest = last / TIERS[tier].0;
            for number in newest.saturating_sub(count)..=newest {
                let mut bytes = [0; CELL_BYTES];
                read_what_is_there(&self.file, &mut bytes, cell_at(tier, number))?;
                past.tiers[tier].extend(sealed::cell(&bytes).filter(|cell| cell.number == number));
            }
            past.tiers[tier].extend(self.unwritten.cells(tier).cloned());
        }
        past.tiers[1].extend(self.filling[0].as_ref().map(|filling| filling.cell().clone()));
        Ok(past)
    }

    /// Records changed bounds of the JVM.
    pub(super) fn bound(&mut self, bounds: Bounds) -> io::Result<()> {
        if self.kept.bounds == bounds {
            return Ok(());
        }
        self.kept.bounds = bounds;
        self.describe()
    }

    pub(super) fn end(&mut self, end: End) -> io::Result<()> {
        self.kept.end = Some(end);
        self.describe()
    }

    /// The file, if it should be synced soon: after each ten-minute cell, and at the end.
    pub(super) fn due(&self) -> Option<&Arc<File>> {
        self.due.then_some(&self.file)
    }

    /// The file was passed on for syncing.
    pub(super) fn settled(&mut self) {
        self.due = false;
    }
}

fn cell_at(tier: usize, number: u64) -> u64 {
    let before: u64 = TIERS[..tier].iter().map(|(_, size)| size).sum();
    PAGE_BYTES as u64 + (before + number % TIERS[tier].1) * CELL_BYTES as u64
}

const fn extreme_at(column: usize) -> u64 {
    let cells = TIERS[0].1 + TIERS[1].1 + TIERS[2].1;
    PAGE_BYTES as u64 + cells * CELL_BYTES as u64 + (column * SAMPLE_BYTES) as u64
}

/// The offsets of the two description pages: at the beginning and at the end.
const PAGES_AT: [u64; 2] = [0, extreme_at(COLUMNS)];
