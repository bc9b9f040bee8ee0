//! `/proc/PID/smaps` and `smaps_rollup` (man proc_pid_smaps; rollup since kernel 4.14): the weights of the mappings.
//! The kernel walks every page table for it: 1–7 ms, growing with RSS, with the process's mmap lock held for reading.
//! For marks, not for a sampler.

use super::memory::PAGE_MIN;
use super::procfs::{Process, open_below};
use super::text::size;
use super::{Read, Reading, Unavailable, maps};
use crate::kernel::mapping::{Line, MAPPINGS_MAX, Mapping, Texts, each_line, too_many};
use loadline_base::clock::Clock;
use loadline_base::units::Bytes;
use std::io;
use std::ops::AddAssign;

/// `smaps_rollup` is about 800 bytes.
const ROLLUP_BYTES_MAX: u64 = 64 << 10;

/// The weight of one mapping, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weight {
    /// Resident pages, with shared ones counted in full.
    pub rss: Bytes,
    /// Resident pages, with shared ones divided among the processes that share them.
    pub pss: Bytes,
    /// Shared with other processes, unmodified.
    pub shared_clean: Bytes,
    /// Shared with other processes, modified.
    pub shared_dirty: Bytes,
    /// Mapped by this process only, unmodified.
    pub private_clean: Bytes,
    /// Mapped by this process only, modified.
    pub private_dirty: Bytes,
    /// Resident pages that do not (or no longer) belong to a file.
    pub anonymous: Bytes,
    /// The part of `anonymous` in transparent huge pages.
    pub anon_huge: Bytes,
    /// Marked as free (`MADV_FREE`) and not reclaimed yet.
    pub lazy_free: Bytes,
    /// Swapped out, with shared pages counted in full.
    pub swap: Bytes,
    /// Swapped out, with shared pages divided among the processes that share them.
    pub swap_pss: Bytes,
    /// Locked in memory.
    pub locked: Bytes,
}

impl Weight {
    fn named(&mut self) -> [(&'static str, &mut Bytes); 12] {
        [
            ("Rss", &mut self.rss),
            ("Pss", &mut self.pss),
            ("Shared_Clean", &mut self.shared_clean),
            ("Shared_Dirty", &mut self.shared_dirty),
            ("Private_Clean", &mut self.private_clean),
            ("Private_Dirty", &mut self.private_dirty),
            ("Anonymous", &mut self.anonymous),
            ("AnonHugePages", &mut self.anon_huge),
            ("LazyFree", &mut self.lazy_free),
            ("Swap", &mut self.swap),
            ("SwapPss", &mut self.swap_pss),
            ("Locked", &mut self.locked),
        ]
    }

    /// `Private_Dirty:      1644 kB`; ignores other lines.
    fn take(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(':') else { return };
        if let Some((_, weight)) = self.named().into_iter().find(|(name, _)| *name == key) {
            *weight = size(value).unwrap_or_default();
        }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, mut other: Self) {
        for ((_, sum), (_, more)) in self.named().into_iter().zip(other.named()) {
            sum.0 = sum.0.saturating_add(more.0);
        }
    }
}

/// A mapping with its weight.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WeighedMapping {
    /// Addresses, permissions, and file.
    pub mapping: Mapping,
    /// The kernel's sums over its pages.
    pub weight: Weight,
}

/// All mappings of a process, in address order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Smaps {
    /// One per mapping.
    pub mappings: Vec<WeighedMapping>,
    /// The smallest `KernelPageSize` of all mappings, because huge pages are larger. 0 if `smaps` contained none.
    page: u64,
}

impl Smaps {
    /// Parses `smaps`: a line as in `maps`, then lines such as `Rss:                1644 kB`.
    pub fn parse(text: &str) -> Self {
        let mut smaps = Self::default();
        let mut texts = Texts::default();
        text.lines().for_each(|line| smaps.take(line, &mut texts));
        smaps
    }

    /// Reads and parses line by line: the text of 65,530 mappings is about 50 MB.
    fn read(from: impl io::Read) -> io::Result<Self> {
        let (mut smaps, mut texts) = (Self::default(), Texts::default());
        each_line(from, |line| {
            smaps.take(line, &mut texts);
            if smaps.mappings.len() > MAPPINGS_MAX { Err(too_many(MAPPINGS_MAX)) } else { Ok(()) }
        })?;
        Ok(smaps)
    }

    fn take(&mut self, line: &str, texts: &mut Texts) {
        // Most lines are weights, which begin with a letter that addresses do not contain.
        let mapping =
            if line.as_bytes().first().is_some_and(u8::is_ascii_uppercase) { None } else { Line::parse(line) };
        if let Some(mapping) = mapping {
            self.mappings.push(WeighedMapping { mapping: mapping.kept(texts), weight: Weight::default() });
        } else if let Some(page) = line.strip_prefix("KernelPageSize:").and_then(size) {
            self.page = if self.page == 0 { page.0 } else { self.page.min(page.0) };
        } else if let Some(last) = self.mappings.last_mut() {
            last.weight.take(line);
        }
    }

    /// The page size of the machine that wrote the text.
    pub fn page(&self) -> u64 {
        if self.page.is_power_of_two() { self.page.max(PAGE_MIN) } else { PAGE_MIN }
    }

    /// The sum over the mappings. PSS can be up to 1 KiB per mapping below the rollup's: the kernel rounds down.
    pub fn total(&self) -> Weight {
        let mut total = Weight::default();
        self.mappings.iter().for_each(|weighed| total += weighed.weight);
        total
    }

    /// The mappings without their weights.
    pub fn maps(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter().map(|weighed| &weighed.mapping)
    }

    /// The library that provides `malloc`.
    pub fn allocator(&self) -> maps::Allocator {
        maps::Allocator::of(self.maps())
    }
}

/// Parses `smaps_rollup`: one line as in `maps`, named `[rollup]`, then its weights.
pub fn parse_rollup(text: &str) -> Option<Weight> {
    let smaps = Smaps::parse(text);
    smaps.mappings.first().filter(|only| &*only.mapping.path == "[rollup]").map(|only| only.weight)
}

/// Reads every mapping with its weight.
pub fn read(process: &Process, clock: &Clock) -> Read<Smaps> {
    Reading::take(clock, || {
        let file = open_below(process.folder(), "smaps");
        let smaps = file.and_then(Smaps::read).map_err(Unavailable::io("smaps"))?;
        // An exiting process frees its memory first: `smaps` is then empty, not an error.
        if smaps.mappings.is_empty() { Err(Unavailable::new("smaps", "the process has exited")) } else { Ok(smaps) }
    })
}

/// Reads the sum over all mappings, as computed by the kernel.
pub fn read_rollup(process: &Process, clock: &Clock) -> Read<Weight> {
    let source = "smaps_rollup";
    Reading::take(clock, || {
        let text = process.text_below(source, ROLLUP_BYTES_MAX).map_err(Unavailable::io(source))?;
        parse_rollup(&text).ok_or_else(|| Unavailable::new(source, "it has an unknown format"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_size_is_that_of_the_texts_machine() {
        let of = |kib: u64| format!("10000-20000 rw-p 0 00:00 0\nRss: 64 kB\nKernelPageSize:    {kib:>5} kB\n");
        for (text, page) in [
            (of(4), 4096),
            (of(16), 16 << 10),
            (of(64), 64 << 10),
            (of(2048) + &of(64), 64 << 10),
            (of(0), 4096),
            (of(3), 4096),
            (String::new(), 4096),
        ] {
            assert_eq!(Smaps::parse(&text).page(), page, "{text}");
        }
    }

    #[test]
    fn own_mappings_add_up_to_the_rollup() {
        let (clock, process) = (Clock::start(), Process::open(std::process::id()).unwrap());
        let total = read(&process, &clock).unwrap().value.total();
        let rollup = read_rollup(&process, &clock).unwrap();
        // Tests in other threads of this process allocate concurrently.
        assert!(total.rss.0.abs_diff(rollup.value.rss.0) < Bytes::mib(16).0, "{total:?} {rollup:?}");
        assert!(total.private_dirty > Bytes(0) && total.pss <= total.rss);
    }

    #[test]
    fn every_mapping_of_a_long_text_is_read() {
        // 100,000 mappings exceed the earlier limit of 64 MiB.
        let weights =
            "Rss:                   4 kB\nPss:                   4 kB\n".to_owned() + &"Locked:    0 kB\n".repeat(44);
        let one = |n: u64| format!("{n:x}000-{:x}000 r--s 00000000 fe:00 7     /index/_{n}.cfs\n{weights}", n + 1);
        let text: String = (1..=100_000).map(one).collect();
        assert!(text.len() > 64 << 20);
        let smaps = Smaps::read(text.as_bytes()).unwrap();
        assert_eq!((smaps.mappings.len(), smaps.total().rss), (100_000, Bytes(100_000 << 12)));
        assert_eq!(smaps, Smaps::parse(&text));
    }
}
