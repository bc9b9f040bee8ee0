//! What a trial needed, by what it held: from it, the first guess of heap and limit.

use crate::owner::is_heap;
use crate::record::Trial;
use crate::units::MIB;

/// Of the file pages that are mapped, so many are needed to go on with where little is read ahead: the rest is dropped
/// and read again.
const FILE_SHARE_MIN: f64 = 0.3;
/// Each doubling of what is read ahead takes so many more: each page read again brings others, which push out others.
const FILE_SHARE_PER_DOUBLING: f64 = 0.15;
/// What Linux reads ahead unless it was told otherwise, in bytes.
const READ_AHEAD_USUAL: f64 = 131_072.0;
/// Where it is not known how far is read ahead.
const FILE_SHARE_UNKNOWN: f64 = 0.6;

/// What a trial held at most, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Reachable after a full collection.
    pub live: Option<u64>,
    /// Resident heap.
    pub heap: u64,
    /// Everything that is no page of a file, the kernel's part included.
    pub anon: u64,
    /// Pages of files: those it had mapped, where that is known, else all that were charged.
    pub file: u64,
    /// The part of them that it cannot do without, as a guess.
    pub file_share: f64,
}

impl Needs {
    /// Of a trial in a cgroup of its own; `None` where it was not weighed at all.
    pub fn of(trial: &Trial) -> Option<Self> {
        let cgroup = trial.cgroup?;
        let last = trial.marks.iter().rev().find(|mark| mark.name == "loaded").or(trial.marks.last());
        let live = trial.marks.iter().rev().find_map(|mark| mark.heap.live_bytes);
        let owners = last.and_then(|mark| mark.account.as_ref()).map(|account| &account.owners);
        let heap = owners
            .map_or(0, |owners| owners.iter().filter(|owner| is_heap(&owner.name)).map(|owner| owner.rss_bytes).sum());
        let anon = cgroup.anon_peak_bytes.or(trial.rss_bytes_peak)?;
        let (charged, mapped) = (cgroup.file_bytes.unwrap_or(0), last.and_then(|mark| mark.file_bytes));
        let file = mapped.map_or(charged, |mapped| mapped.min(charged));
        let read_ahead = trial.probe.as_ref().and_then(|probe| probe.read_ahead_bytes);
        Some(Self { live, heap, anon, file, file_share: file_share(read_ahead) })
    }

    /// Where to begin with the heap: what is live, and 1 to 2 MiB to make garbage in.
    pub fn heap_guess(&self) -> u64 {
        let live = self.live.unwrap_or(self.heap / 2);
        (live.div_ceil(MIB) + 1) * MIB
    }

    /// The same, with the files of a trial that was weighed.
    pub fn with_files_of(self, weighed: &Self) -> Self {
        Self { file: self.file.min(weighed.file), file_share: weighed.file_share, ..self }
    }

    /// More than its direct memory can have been: all that is anonymous and not the heap, in whole MiB.
    pub fn direct_max(&self) -> u64 {
        self.anon.saturating_sub(self.heap).div_ceil(MIB).max(1) * MIB
    }

    /// Where to begin with the limit, with a heap of this size in place of the one it had.
    pub fn limit_guess(&self, heap: Option<u64>) -> u64 {
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

    #[test]
    fn a_guess_exchanges_the_heap_and_keeps_the_rest() {
        let cgroup =
            CgroupRecord { anon_peak_bytes: Some(90 * MIB), file_bytes: Some(50 * MIB), ..CgroupRecord::default() };
        let heap = Heap { live_bytes: Some(5 * MIB), ..Heap::default() };
        let mark = Mark { name: "collected".to_owned(), heap, ..Mark::default() };
        let trial = Trial { cgroup: Some(cgroup), marks: vec![mark], ..Trial::new("a", 0, 0) };
        let needs = Needs { heap: 40 * MIB, ..Needs::of(&trial).unwrap() };
        assert_eq!(needs.heap_guess(), 6 * MIB);
        assert_eq!(needs.direct_max(), 50 * MIB);
        assert_eq!(needs.limit_guess(Some(8 * MIB)), (50 + 8 + 30) * MIB);
        assert_eq!(needs.limit_guess(None), 120 * MIB);
        let weighed = Needs { file: 30 * MIB, file_share: file_share(Some(128 << 10)), ..needs };
        assert_eq!(needs.with_files_of(&weighed).limit_guess(None), (90 + 9) * MIB);
        assert!(file_share(Some(8 << 20)) > 1.0 && file_share(Some(0)) == FILE_SHARE_MIN);
        assert_eq!(Needs::of(&Trial::new("a", 0, 0)), None);
    }
}
