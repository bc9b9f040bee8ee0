//! The samples of one JVM, in a file of fixed size: 1 h of samples, 24 h by the minute, 30 days by ten minutes. So it
//! is with samples every ten seconds; a watch that samples faster keeps as many cells of shorter times. Besides, the
//! file has the whole sample at the most of each column.
//!
//! The file is sparse until it is full, 1.8 MiB. Each sample is written when it is taken, so that nothing is lost with
//! a process that is killed. After each cell of ten minutes the file is due for the disk: a machine that fails loses no
//! more than such a cell. A record that was cut is left out. Data that the disk does not take waits in memory, in
//! bounds.
//!
//! ```text
//! 4 KiB: whose it is      cells of three tiers, each at its number modulo the tier's size      the extremes, one
//! sample a column      4 KiB: whose it is, once more
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

/// How long cells are, in samples, and how many are kept: an hour, a day and thirty days of samples every ten seconds.
pub(super) const TIERS: [(u64, u64); 3] = [(1, 360), (6, 1440), (60, 4320)];
/// A record that was never written.
const NOTHING: [u8; CELL_BYTES] = [0; CELL_BYTES];
/// Cells read at a time: 70 KiB.
const CELLS_READ: usize = 240;
/// Samples of a cell of the slowest tier, by which growth is judged.
pub(super) const SAMPLES_OF_CELL: u64 = TIERS[2].0;

/// The suffix, before its number, of a file that was in the place of a history.
pub(super) const ASIDE: &str = ".aside-";
const ASIDE_MAX: u32 = 100;

/// One of the three lengths of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// A sample each, for an hour.
    Samples,
    /// Six samples each, for a day.
    Minutes,
    /// Sixty samples each, for thirty days.
    TenMinutes,
}

impl Tier {
    /// All, the shortest first.
    pub(super) const ALL: [Self; 3] = [Self::Samples, Self::Minutes, Self::TenMinutes];
}

/// A history that is being written.
#[derive(Debug)]
pub(super) struct History {
    file: Arc<File>,
    kept: Kept,
    /// The revision of the page that describes it.
    revision: u64,
    filling: [Option<Filling>; 2],
    extremes: [u64; COLUMNS],
    last: Option<Last>,
    unwritten: Unwritten,
    /// Whether something was written that should be on the disk soon.
    due: bool,
    /// The file that had its name when it was begun.
    pub(super) aside: Option<Aside>,
}

/// A file that was in the place of a history, and was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Aside {
    /// Its path now.
    pub(super) to: PathBuf,
    /// Why no sample could be added to it.
    pub(super) why: String,
}

/// The last sample.
#[derive(Debug, Clone, Copy)]
struct Last {
    number: u64,
    /// Its age; `None` where another watch took it.
    age_ms: Option<u64>,
}

/// A history that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Past {
    /// Whose it is.
    pub kept: Kept,
    tiers: [Vec<Cell>; 3],
    /// The sample at the most of each column, where there is one.
    pub extremes: Vec<(Column, Sample)>,
    /// Records that were cut or spoilt, and left out.
    pub spoilt: usize,
}

impl Past {
    /// The cells of a tier, oldest first.
    pub fn cells(&self, tier: Tier) -> &[Cell] {
        &self.tiers[tier as usize]
    }

    /// How long a cell of a tier is, in seconds.
    pub fn cell_s(&self, tier: Tier) -> f64 {
        (TIERS[tier as usize].0 * self.kept.every_ms) as f64 / 1e3
    }

    /// The file in a folder that was written last of those about this pid.
    pub fn last_of(folder: &Path, pid: u32) -> Option<PathBuf> {
        let ends = format!(".{pid}.history");
        let files = std::fs::read_dir(folder).ok()?.flatten();
        let own = files.filter(|file| file.file_name().to_string_lossy().ends_with(&ends));
        own.max_by_key(|file| file.metadata().and_then(|about| about.modified()).ok()).map(|file| file.path())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or no first page of a history in it is whole.
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

    /// Cells of the ring that are not older than it is long, by their numbers. A part of the ring is read at a time.
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

    /// The cells that were being filled when it ended, from the samples that they are made of.
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

/// Leaves cells, in order, that a ring of this size could hold at once: laying them out by number relies on it.
fn keep_recent(cells: &mut Vec<Cell>, size: u64) {
    let newest = cells.last().map_or(0, |cell| cell.number);
    cells.retain(|cell| newest.saturating_sub(cell.number) < size);
}

impl Drop for History {
    fn drop(&mut self) {
        // The file may be on its way to the disk still, and is another writer's from now on.
        let _ = flock(&*self.file, FlockOperation::Unlock);
    }
}

/// Whose history a file is.
///
/// # Errors
/// If it cannot be read, or is no history.
pub(super) fn whose(path: &Path) -> io::Result<Kept> {
    Ok(kept::read(&private_file::open(path)?, PAGES_AT)?.0)
}

/// The file that has the name of a history; locked, where it can be written.
enum There {
    Empty(File),
    /// With what it says of itself, and the revision of that.
    History(File, Box<Kept>, u64),
    /// Nothing that a sample could be added to, and why.
    Other(String),
}

impl There {
    /// Opens it, and creates it where there is nothing. Others may write the folder that the user chose: what they put
    /// there is neither followed nor believed.
    fn find(path: &Path) -> io::Result<Self> {
        let mut options = private_file::options();
        let (file, is_new) = match options.read(true).create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause),
            Err(_) => match options.create_new(false).open(path) {
                Ok(file) => (file, false),
                Err(cause) => match cause.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::LOOP) => return Ok(Self::Other("it is a link".to_owned())),
                    Some(Errno::ISDIR | Errno::NXIO) => return Ok(Self::Other("it is no plain file".to_owned())),
                    _ => return Err(cause),
                },
            },
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Ok(Self::Other("it is no plain file".to_owned()));
        }
        if !is_new && !is_trusted(about.uid(), path) {
            return Ok(Self::Other(format!("it belongs to user id {}", about.uid())));
        }
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|cause| match cause {
            Errno::WOULDBLOCK => io::Error::other("another watch writes it"),
            cause => cause.into(),
        })?;
        if file.metadata()?.len() == 0 {
            return Ok(Self::Empty(file));
        }
        match kept::read(&file, PAGES_AT) {
            Ok((kept, revision)) => Ok(Self::History(file, Box::new(kept), revision)),
            // The disk failed: what it holds may be a history all the same.
            Err(cause) if cause.raw_os_error().is_some() => Err(cause),
            Err(cause) => Ok(Self::Other(cause.to_string())),
        }
    }
}

/// Whether a file of this user is as good as an own one: the owner of the folder may put anything there anyhow.
fn is_trusted(owner: u32, path: &Path) -> bool {
    let folder = path.parent().and_then(|folder| folder.metadata().ok());
    owner == rustix::process::geteuid().as_raw() || folder.is_some_and(|folder| folder.uid() == owner)
}

/// Creates a folder for histories, which only this user enters, or takes the one that is there.
///
/// # Errors
/// If it cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    private_file::create_folders(path)
}

/// Gives what has this name another one that is free, and returns that.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{ASIDE}{number}"));
        PathBuf::from(name)
    };
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err_and(|why| why.kind() == io::ErrorKind::NotFound);
    let free = (1..=ASIDE_MAX).map(name).find(is_free).ok_or_else(|| {
        io::Error::other(format!("it is not a history, and {ASIDE_MAX} like it were moved aside already: remove them"))
    })?;
    std::fs::rename(path, &free)?;
    Ok(free)
}

impl History {
    /// Continues the file of this JVM, or begins it. Another file of that name is kept under a new name.
    ///
    /// # Errors
    /// If the file cannot be written, or is another JVM's.
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
                return Err(io::Error::other(format!("the history of {} is there", there.name)));
            }
            There::History(_, there, _) if there.every_ms != kept.every_ms => {
                let [there, here] = [there.every_ms, kept.every_ms].map(|ms| Span(Duration::from_millis(ms)));
                let why = format!("it has a sample every {there} and takes none every {here}: add `--every {there}`");
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
        // Both pages are there from the beginning, so that a disk that is full later has room for how it ended.
        self.describe()?;
        self.describe()
    }

    /// Writes the older of the pages that describe it.
    fn describe(&mut self) -> io::Result<()> {
        let revision = self.revision + 1;
        kept::write(&self.file, PAGES_AT[(revision % 2) as usize], &self.kept, revision)?;
        (self.revision, self.due) = (revision, true);
        Ok(())
    }

    /// Takes up what was being filled when the last writer ended.
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
                // The cells that were complete before are in the file.
                Filling::go_on(filling, cell.number / length, &cell.sample());
            }
        }
        Ok(())
    }

    /// Keeps a sample. A second one of the same time replaces nothing and is dropped; whether it was kept is returned.
    ///
    /// # Errors
    /// If the file cannot be written; the data that was not written waits and is written later, in bounds.
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

    /// Returns the cell of one sample that this age falls into; `None` where that is taken. A sample that comes half an
    /// interval after the last one has the next cell. So none is lost that comes now a little sooner and now a little
    /// later, right where one cell ends and the next begins.
    fn number(&self, age_ms: u64) -> Option<u64> {
        let number = age_ms / self.kept.every_ms;
        let Some(last) = self.last.filter(|last| number <= last.number) else { return Some(number) };
        let is_next = last.age_ms.is_some_and(|before| age_ms >= before + self.kept.every_ms.div_ceil(2));
        (is_next && number == last.number).then_some(number + 1)
    }

    /// Writes what waits.
    fn write(&mut self) -> io::Result<()> {
        let file = &self.file;
        self.unwritten.write(
            |tier, cell| file.write_all_at(&sealed::cell_bytes(cell), cell_at(tier, cell.number)),
            |column, sample| file.write_all_at(&sealed::sample_bytes(sample), extreme_at(column as usize)),
        )
    }

    /// Samples of which no record could be kept.
    pub(super) fn lost(&self) -> u64 {
        self.unwritten.lost
    }

    /// All that is kept, with what is being filled.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn past(&self) -> io::Result<Past> {
        Past::of(&self.file, &self.unwritten)
    }

    /// The last sample and the last of so many minutes alone, with what is being filled.
    ///
    /// # Errors
    /// If the file cannot be read.
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

    /// Notes what bounds the JVM, where that is something else than before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn bound(&mut self, bounds: Bounds) -> io::Result<()> {
        if self.kept.bounds == bounds {
            return Ok(());
        }
        self.kept.bounds = bounds;
        self.describe()
    }

    /// Notes how the life ended.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn end(&mut self, end: End) -> io::Result<()> {
        self.kept.end = Some(end);
        self.describe()
    }

    /// The file, where what was written to it should be on the disk soon: after each cell of ten minutes, and after the
    /// end.
    pub(super) fn due(&self) -> Option<&Arc<File>> {
        self.due.then_some(&self.file)
    }

    /// It was seen to that the file goes to the disk.
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

/// The offsets of the pages that describe it: at its beginning, and at its end.
const PAGES_AT: [u64; 2] = [0, extreme_at(COLUMNS)];
