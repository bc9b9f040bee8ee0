//! Derives a trial's memory needs, and from them the first guess of heap and limit.

use crate::record::{AccountRecord, Trial};
use crate::scenario::RamShare;
use crate::units::MIB;

/// The share of mapped file pages that a server needs to keep working with little read-ahead: the rest is evicted and
/// read again.
const FILE_SHARE_MIN: f64 = 0.3;
/// Added per doubling of the read-ahead: each page read again brings others, which evict still others.
const FILE_SHARE_PER_DOUBLING: f64 = 0.15;
/// The usual read-ahead of Linux, in bytes.
const READ_AHEAD_USUAL: f64 = 131_072.0;
/// The assumed share if the read-ahead is unknown.
const FILE_SHARE_UNKNOWN: f64 = 0.6;

/// Margin over the direct memory that a collection leaves, for requests in flight: a quarter, plus 4 MiB.
const DIRECT_ROOM: f64 = 1.25;
const DIRECT_ROOM_MIB: u64 = 4;
/// The same for direct memory measured without any requested collection.
const DIRECT_ROOM_MOST: f64 = 1.1;
/// Ceilings closer together than this are merged.
const DIRECT_APART: f64 = 1.5;
/// A growing heap reaches about this many times the live set: the JVM keeps 40% of it free (`MinHeapFreeRatio`), plus
/// room for young objects.
const HEAP_GROWN: u64 = 2;
/// Each iteration at least halves the distance to the limit at which such a heap fits.
const APPROACHES: u32 = 8;

/// The maximum memory of a trial, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Needs {
    /// Reachable after a full collection.
    pub(super) live: Option<u64>,
    pub(super) heap: u64,
    /// Everything except file pages, including kernel memory.
    pub(super) anon: u64,
    /// File pages: the mapped ones if known, otherwise all that were charged.
    pub(super) file: u64,
    /// The estimated part of them that it needs.
    pub(super) file_share: f64,
    /// Direct memory left by a full collection; `None` if the JVM's own counters were not read.
    pub(super) direct_live: Option<u64>,
    /// Maximum direct memory at any mark.
    pub(super) direct_most: Option<u64>,
}

impl Needs {
    /// The needs of a trial in its own cgroup; `None` if it was not measured at all.
    pub(super) fn of(trial: &Trial) -> Option<Self> {
        let cgroup = trial.cgroup?;
        let last = trial.marks.iter().rev().find(|mark| mark.name == "loaded").or(trial.marks.last());
        let live = trial.marks.iter().rev().find_map(|mark| mark.heap.live_bytes);
        let heap = last.and_then(|mark| mark.account.as_ref()).map_or(0, AccountRecord::heap_bytes);
        let anon = cgroup.anon_peak_bytes.or(trial.rss_bytes_peak)?;
        let (charged, mapped) = (cgroup.file_bytes.unwrap_or(0), last.and_then(|mark| mark.file_bytes));
        let file = mapped.map_or(charged, |mapped| mapped.min(charged));
        let read_ahead = trial.probe.as_ref().and_then(|probe| probe.read_ahead_bytes);
        let direct = trial.marks.iter().filter_map(|mark| mark.direct.map(|direct| direct.bytes()));
        let direct_live = trial.mark("collected").and_then(|mark| mark.direct).map(|direct| direct.bytes());
        let direct_most = direct.max();
        Some(Self { live, heap, anon, file, file_share: file_share(read_ahead), direct_live, direct_most })
    }

    /// The first guess of the heap: the live set, plus 1 to 2 MiB for garbage.
    pub(super) fn heap_guess(&self) -> u64 {
        let live = self.live.unwrap_or(self.heap / 2);
        (live.div_ceil(MIB) + 1) * MIB
    }

    /// These needs, with the files of a measured trial.
    pub(super) fn with_files_of(self, weighed: &Self) -> Self {
        Self { file: self.file.min(weighed.file), file_share: weighed.file_share, ..self }
    }

    /// An upper bound for its direct memory: all anonymous memory outside the heap, in whole MiB.
    pub(super) fn direct_max(&self) -> u64 {
        self.anon.saturating_sub(self.heap).div_ceil(MIB).max(1) * MIB
    }

    /// Direct memory ceilings to try, smallest first: slightly more than a collection leaves, the maximum without
    /// requested collections, and one in between if these are far apart. Empty if the JVM's own counters were not read,
    /// or counted none.
    pub(super) fn direct_ceilings(&self) -> Vec<u64> {
        let Some(most) = self.direct_most.filter(|most| *most > 0) else { return Vec::new() };
        let ceiling = |bytes: f64, room: f64| ((bytes * room / MIB as f64).ceil() as u64 + DIRECT_ROOM_MIB) * MIB;
        let live = self.direct_live.unwrap_or(most).min(most);
        let (least, most) = (ceiling(live as f64, DIRECT_ROOM), ceiling(most as f64, DIRECT_ROOM_MOST));
        match most as f64 / least as f64 {
            ratio if ratio < DIRECT_APART => vec![most.max(least)],
            ratio if ratio < DIRECT_APART * DIRECT_APART => vec![least, most],
            _ => vec![least, ceiling((least as f64 * most as f64).sqrt(), 1.0), most],
        }
    }

    /// The first guess of the limit, if the JVM derives the heap from the limit with these shares. It assumes twice the
    /// live set, because a growing heap is not full of live objects. It is never a limit from which the JVM would
    /// derive too small a heap.
    pub(super) fn limit_guess_as_is(&self, share: RamShare) -> u64 {
        let heap = self.live.map_or(self.heap, |live| self.heap.min(live.saturating_mul(HEAP_GROWN)));
        let least = share.memory(self.heap_guess());
        // A smaller limit leads to a smaller heap, which leads to a smaller limit.
        let nearer = |limit: u64, _| self.limit_guess(Some(heap.min(share.heap(limit)))).max(least);
        (0..APPROACHES).fold(self.limit_guess(Some(heap)).max(least), nearer)
    }

    pub(super) fn limit_guess(&self, heap: Option<u64>) -> u64 {
        let anon = match heap {
            Some(heap) => self.anon.saturating_sub(self.heap) + heap,
            None => self.anon,
        };
        anon + (self.file as f64 * self.file_share) as u64
    }
}

fn file_share(read_ahead: Option<u64>) -> f64 {
    read_ahead.map_or(FILE_SHARE_UNKNOWN, |bytes| {
        let doublings = (bytes as f64 / READ_AHEAD_USUAL).max(1.0).log2();
        FILE_SHARE_MIN + doublings * FILE_SHARE_PER_DOUBLING
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CgroupRecord, Heap, Mark};

    const NOTHING: Needs =
        Needs { live: None, heap: 0, anon: 0, file: 0, file_share: 0.3, direct_live: None, direct_most: None };

    fn mark(name: &str, file: Option<u64>, live: Option<u64>, heap: u64) -> Mark {
        let owners = [("java_heap.used", heap), ("java_heap.free", 3), ("code_cache", 1000)];
        Mark {
            name: name.to_owned(),
            file_bytes: file,
            heap: Heap { live_bytes: live, ..Heap::default() },
            account: Some(AccountRecord::holding(owners)),
            ..Mark::default()
        }
    }

    fn cgroup(anon: Option<u64>, file: Option<u64>) -> Option<CgroupRecord> {
        Some(CgroupRecord { anon_peak_bytes: anon, file_bytes: file, ..CgroupRecord::default() })
    }

    /// Heap and files come from the mark after the load, the live set from the last mark that has it.
    #[test]
    fn needs_come_from_the_loaded_mark() {
        let marks = vec![
            mark("start", Some(5), Some(1), 10),
            mark("loaded", Some(40), None, 70),
            mark("collected", Some(60), Some(22), 20),
        ];
        let trial = Trial { cgroup: cgroup(Some(900), Some(50)), marks, ..Trial::new("a", 0, 0) };
        let needs = Needs::of(&trial).unwrap();
        assert_eq!((needs.live, needs.heap, needs.anon, needs.file), (Some(22), 73, 900, 40));
        assert_eq!(needs.file_share, FILE_SHARE_UNKNOWN);
        let only_last =
            Trial { marks: vec![mark("start", Some(5), None, 1), mark("later", Some(60), None, 20)], ..trial.clone() };
        let needs = Needs::of(&only_last).unwrap();
        assert_eq!((needs.live, needs.heap, needs.file), (None, 23, 50), "file pages are limited to those charged");
        let unmapped = Trial { marks: vec![mark("loaded", None, None, 1)], ..trial.clone() };
        assert_eq!(Needs::of(&unmapped).unwrap().file, 50);
        let bare = Trial { marks: Vec::new(), cgroup: cgroup(None, None), rss_bytes_peak: Some(7), ..trial.clone() };
        assert_eq!(Needs::of(&bare).map(|needs| (needs.anon, needs.file, needs.heap)), Some((7, 0, 0)));
        assert_eq!(Needs::of(&Trial { rss_bytes_peak: None, ..bare }), None);
        assert_eq!(Needs::of(&Trial::new("a", 0, 0)), None);
    }

    #[test]
    fn the_file_share_grows_with_read_ahead() {
        let near = |read_ahead, expect: f64| (file_share(read_ahead) - expect).abs() < 1e-12;
        assert!(near(Some(128 << 10), 0.30) && near(Some(256 << 10), 0.45) && near(Some(8 << 20), 1.20));
        assert!(near(Some(64 << 10), 0.30) && near(Some(0), 0.30) && near(None, 0.6));
    }

    #[test]
    fn guesses_are_whole_mebibytes() {
        let needs = Needs { heap: 5 * MIB, anon: 5 * MIB, file: 100, file_share: 0.5, ..NOTHING };
        assert_eq!(needs.heap_guess(), 4 * MIB, "the guess is half of the heap and 1 MiB for garbage");
        assert_eq!(Needs { live: Some(4 * MIB + 1), ..needs }.heap_guess(), 6 * MIB);
        assert_eq!(needs.direct_max(), MIB, "the direct memory limit is at least 1 MiB");
        assert_eq!(Needs { anon: 6 * MIB + 1, ..needs }.direct_max(), 2 * MIB);
        assert_eq!(needs.limit_guess(Some(3)), 3 + 50);
        assert_eq!(needs.limit_guess(None), 5 * MIB + 50);
        let weighed = Needs { file: 200, file_share: 0.1, ..needs };
        assert_eq!(needs.with_files_of(&weighed), Needs { file_share: 0.1, ..needs }, "the smaller file need is used");
    }

    /// 10 MiB is outside the heap, 40 MiB is live, and another 40 MiB is garbage.
    #[test]
    fn a_limit_guess_fits_the_heap_derived_from_it() {
        let needs = Needs { live: Some(40 * MIB), heap: 200 * MIB, anon: 210 * MIB, ..NOTHING };
        // A limit is too small if the JVM derives a heap below the live set plus 1 MiB.
        assert_eq!(needs.limit_guess_as_is(RamShare::default()), 82 * MIB);
        // With 100 MiB outside the heap, the limit is large enough for a heap of 80 MiB: half of 180 MiB is 90 MiB.
        let more = Needs { anon: 300 * MIB, ..needs };
        assert_eq!(more.limit_guess_as_is(RamShare::default()), 180 * MIB, "100 MiB plus a heap of 80 MiB");
        let most = Needs { live: Some(400 * MIB), heap: 500 * MIB, anon: 510 * MIB, ..needs };
        assert_eq!(most.limit_guess_as_is(RamShare::default()), 4 * 401 * MIB, "the heap is a quarter of it");
    }

    /// A quarter and 4 MiB above what a collection leaves, a tenth and 4 MiB above the maximum, and one in between.
    #[test]
    fn direct_memory_ceilings_rise_from_live_to_maximum() {
        let of = |direct_live, direct_most| {
            let needs = Needs { direct_live, direct_most, ..NOTHING };
            needs.direct_ceilings().iter().map(|bytes| bytes / MIB).collect::<Vec<_>>()
        };
        assert!(of(None, None).is_empty() && of(Some(5), Some(0)).is_empty());
        assert_eq!(of(Some(20 * MIB), Some(20 * MIB)), [29], "ceilings closer than a step are merged");
        assert_eq!(of(None, Some(20 * MIB)), [29], "without the live bytes, only the maximum is tried");
        assert_eq!(of(Some(16 * MIB), Some(40 * MIB)), [24, 48]);
        assert_eq!(of(Some(16 * MIB), Some(1000 * MIB)), [24, 167, 1104]);
    }
}
