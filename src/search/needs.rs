//! What a trial needed, by what it held: from it, the first guess of heap and limit.

use crate::record::Trial;

/// Of the file pages that are mapped, most are needed to go on with: the rest may be dropped and read again. What was
/// merely read ahead is charged too, and given back at once.
const FILE_SHARE: f64 = 0.8;
/// A heap must hold what is live, and room to make garbage in.
const LIVE_FACTOR: f64 = 1.2;
const MIB: u64 = 1 << 20;

/// What a trial held at most, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Reachable after a full collection.
    pub live: Option<u64>,
    /// Resident heap.
    pub heap: u64,
    /// Everything that is no page of a file, the kernel's part included.
    pub anon: u64,
    /// Pages of files: those it had mapped, where that is known, else all that were charged.
    pub file: u64,
}

impl Needs {
    /// Of a trial in a cgroup of its own; `None` where it was not weighed at all.
    pub fn of(trial: &Trial) -> Option<Self> {
        let cgroup = trial.cgroup?;
        let last = trial.marks.iter().rev().find(|mark| mark.name == "loaded").or(trial.marks.last());
        let live = trial.marks.iter().rev().find_map(|mark| mark.heap.live_bytes);
        let owners = last.and_then(|mark| mark.account.as_ref()).map(|account| &account.owners);
        let of_heap = |name: &str| name.starts_with("java_heap");
        let heap = owners
            .map_or(0, |owners| owners.iter().filter(|owner| of_heap(&owner.name)).map(|owner| owner.rss_bytes).sum());
        let anon = cgroup.anon_peak_bytes.or(trial.rss_bytes_peak)?;
        let (charged, mapped) = (cgroup.file_bytes.unwrap_or(0), last.and_then(|mark| mark.file_bytes));
        Some(Self { live, heap, anon, file: mapped.map_or(charged, |mapped| mapped.min(charged)) })
    }

    /// Where to begin with the heap.
    pub fn heap_guess(&self) -> u64 {
        let live = self.live.unwrap_or(self.heap / 2) as f64;
        ((live * LIVE_FACTOR / MIB as f64).ceil() as u64 + 1) * MIB
    }

    /// The same, with the files of a trial that was weighed.
    pub fn with_files_of(self, weighed: &Self) -> Self {
        Self { file: self.file.min(weighed.file), ..self }
    }

    /// Where to begin with the limit, with a heap of this size in place of the one it had.
    pub fn limit_guess(&self, heap: Option<u64>) -> u64 {
        let anon = match heap {
            Some(heap) => self.anon.saturating_sub(self.heap) + heap,
            None => self.anon,
        };
        anon + (self.file as f64 * FILE_SHARE) as u64
    }
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
        assert_eq!(needs.heap_guess(), 7 * MIB);
        assert_eq!(needs.limit_guess(Some(8 * MIB)), (50 + 8 + 40) * MIB);
        assert_eq!(needs.limit_guess(None), 130 * MIB);
        let weighed = Needs { file: 30 * MIB, ..needs };
        assert_eq!(needs.with_files_of(&weighed).limit_guess(None), (90 + 24) * MIB);
        assert_eq!(Needs::of(&Trial::new("a", 0, 0)), None);
    }
}
