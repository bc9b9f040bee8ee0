//! Computes live bytes from allocations and frees in time order; does no I/O.
//!
//! Bytes at the total's peak are tracked without visiting all counters at each new peak: before a counter changes, it
//! notes its current bytes if the total has peaked since the counter's last change.
//!
//! async-profiler records a free after it happened and an allocation after it was made. So another thread may get the
//! same address and record its allocation before the earlier free. An allocation at a live address therefore means that
//! a free is still to come, which must not be counted against the new allocation.

use std::collections::HashMap;

/// How long after the new allocation a late free may be recorded. A thread that loses its CPU in between gets it back
/// within about 100 ms, even on a busy machine. A container that has used up its CPU quota takes a few times as long.
const LATE_NS: u64 = 500_000_000;
/// Maximum number of live allocations tracked; each takes about 60 bytes.
const LIVE_MAX: usize = 4 << 20;

/// One `profiler.Malloc` or `profiler.Free`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// Nanoseconds since 1970.
    pub(crate) at_ns: u64,
    pub(crate) address: u64,
    /// Bytes; `None` for a free.
    pub(crate) bytes: Option<u64>,
    pub(crate) stack: u32,
    pub(crate) thread: u32,
}

/// Bytes and counts of a stack, a site, or the whole process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uses {
    /// Allocations.
    pub allocations: u64,
    /// Allocations not freed at the moment of `bytes_then`.
    pub allocations_then: u64,
    /// Bytes allocated.
    pub bytes_allocated: u64,
    /// Bytes freed during the recording.
    pub bytes_freed: u64,
    /// Bytes not freed at the end.
    pub bytes_end: u64,
    /// Bytes not freed at the requested moment, or at the end if none was requested.
    pub bytes_then: u64,
    /// Bytes live when the total of the whole process was at its peak.
    pub bytes_at_peak: u64,
    /// Bytes at its own peak.
    pub bytes_peak: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    uses: Uses,
    /// Allocations not freed.
    live: u64,
    /// The peak of the total for which `bytes_at_peak` was noted.
    noted: u64,
}

impl Counter {
    /// Called before a change: the current bytes were also held at the last peak.
    fn note(&mut self, peak: u64) {
        if self.noted < peak {
            self.noted = peak;
            self.uses.bytes_at_peak = self.uses.bytes_end;
        }
    }

    fn add(&mut self, bytes: u64, peak: u64) {
        self.note(peak);
        let uses = &mut self.uses;
        uses.allocations += 1;
        self.live += 1;
        uses.bytes_allocated = uses.bytes_allocated.saturating_add(bytes);
        uses.bytes_end = uses.bytes_end.saturating_add(bytes);
        uses.bytes_peak = uses.bytes_peak.max(uses.bytes_end);
    }

    fn subtract(&mut self, bytes: u64, peak: u64) {
        self.note(peak);
        self.live = self.live.saturating_sub(1);
        self.uses.bytes_freed = self.uses.bytes_freed.saturating_add(bytes);
        self.uses.bytes_end = self.uses.bytes_end.saturating_sub(bytes);
    }
}

#[derive(Debug, Clone, Copy)]
struct LiveAllocation {
    bytes: u64,
    at_ns: u64,
    stack: u32,
    thread: u32,
    /// Whether the free of an earlier allocation at this address is still to come.
    owed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct KindTotals {
    bytes: u64,
    bytes_peak: u64,
    /// Number of times that the bytes reached a new maximum.
    peaks: u64,
}

/// The bytes of a stack at the last peak of its kind, noted as in [`Counter::note`].
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    kind: u32,
    noted: u64,
    bytes: u64,
}

/// Counters of stacks, and of the groups and kinds that they belong to.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    live: HashMap<u64, LiveAllocation>,
    stacks: Vec<Counter>,
    groups: Vec<Counter>,
    group_of: Vec<u32>,
    kinds: Vec<KindTotals>,
    /// For each stack.
    shares: Vec<Share>,
    total: Counter,
    /// The requested moment, in nanoseconds since 1970; cleared by the first event after it.
    then_ns: Option<u64>,
    is_kept: bool,
    peak: u64,
    peak_at_ns: u64,
    /// Frees of allocations made before the recording, or not recorded.
    pub(crate) frees_unknown: u64,
    /// Allocations that were counted but not tracked, because too many are live.
    pub(crate) unfollowed: u64,
}

impl Ledger {
    /// Also records what is live at this moment, in nanoseconds since 1970.
    pub(crate) fn keep(&mut self, then_ns: u64) {
        self.then_ns = Some(then_ns);
    }

    fn keep_now(&mut self) {
        let counters = self.stacks.iter_mut().chain(&mut self.groups).chain([&mut self.total]);
        counters.for_each(|counter| {
            (counter.uses.bytes_then, counter.uses.allocations_then) = (counter.uses.bytes_end, counter.live);
        });
        (self.then_ns, self.is_kept) = (None, true);
    }

    /// Assigns a stack to its group and kind. Stacks come in the order of their indices.
    pub(crate) fn stack(&mut self, stack: u32, group: u32, kind: u32) {
        self.stacks.resize(self.stacks.len().max(stack as usize + 1), Counter::default());
        self.groups.resize(self.groups.len().max(group as usize + 1), Counter::default());
        self.kinds.resize(self.kinds.len().max(kind as usize + 1), KindTotals::default());
        self.group_of.resize(self.stacks.len(), 0);
        self.shares.resize(self.stacks.len(), Share::default());
        self.group_of[stack as usize] = group;
        self.shares[stack as usize].kind = kind;
    }

    /// Counts an event; events come in time order.
    pub(crate) fn count(&mut self, event: Event) {
        if self.then_ns.is_some_and(|then| event.at_ns > then) {
            self.keep_now();
        }
        match event.bytes {
            Some(bytes) => self.malloc(event, bytes),
            None => self.free(event),
        }
    }

    fn malloc(&mut self, event: Event, bytes: u64) {
        let mut owed = false;
        if let Some(before) = self.live.remove(&event.address) {
            // Events of one thread are in order, so its free would already be recorded. The free was lost, or the
            // allocation was recorded twice by nested malloc functions.
            owed = before.thread != event.thread;
            self.take(before);
        }
        if self.live.len() >= LIVE_MAX {
            self.unfollowed += 1;
            return;
        }
        let live = LiveAllocation { bytes, at_ns: event.at_ns, stack: event.stack, thread: event.thread, owed };
        self.live.insert(event.address, live);
        // An allocation after the requested moment, such as one of a heap dump, does not count toward the peak.
        let may_peak = !self.is_kept;
        if let Some(kind) = self.share(event.stack) {
            kind.bytes = kind.bytes.saturating_add(bytes);
            if may_peak && kind.bytes > kind.bytes_peak {
                (kind.bytes_peak, kind.peaks) = (kind.bytes, kind.peaks + 1);
            }
        }
        let peak = self.peak;
        self.each(event.stack, |counter| counter.add(bytes, peak));
        self.total.add(bytes, peak);
        if self.total.uses.bytes_end > self.total.uses.bytes_at_peak || self.peak == 0 {
            self.peak += 1;
            self.total.note(self.peak);
            self.peak_at_ns = event.at_ns;
        }
    }

    fn free(&mut self, event: Event) {
        let Some(live) = self.live.get_mut(&event.address) else {
            self.frees_unknown += 1;
            return;
        };
        let late = event.at_ns.saturating_sub(live.at_ns) < LATE_NS;
        if live.owed && live.thread != event.thread && late {
            live.owed = false;
            return;
        }
        if let Some(live) = self.live.remove(&event.address) {
            self.take(live);
        }
    }

    fn take(&mut self, live: LiveAllocation) {
        if let Some(kind) = self.share(live.stack) {
            kind.bytes = kind.bytes.saturating_sub(live.bytes);
        }
        let peak = self.peak;
        self.each(live.stack, |counter| counter.subtract(live.bytes, peak));
        self.total.subtract(live.bytes, peak);
    }

    /// Called before a stack changes: notes its bytes at the last peak of its kind. Returns the kind.
    fn share(&mut self, stack: u32) -> Option<&mut KindTotals> {
        let share = self.shares.get_mut(stack as usize)?;
        let kind = self.kinds.get_mut(share.kind as usize)?;
        if share.noted < kind.peaks {
            share.noted = kind.peaks;
            share.bytes = self.stacks.get(stack as usize).map_or(0, |counter| counter.uses.bytes_end);
        }
        Some(kind)
    }

    fn each(&mut self, stack: u32, mut change: impl FnMut(&mut Counter)) {
        let group = self.group_of.get(stack as usize).copied();
        self.stacks.get_mut(stack as usize).map(&mut change);
        group.and_then(|group| self.groups.get_mut(group as usize)).map(&mut change);
    }

    /// Ends the recording; returns the uses of all stacks, all groups, and the total, and the time of the total's peak.
    pub(crate) fn close(mut self) -> Closed {
        if !self.is_kept {
            self.keep_now();
        }
        for stack in 0..self.shares.len() as u32 {
            self.share(stack);
        }
        let peak = self.peak;
        let ended = |mut counter: Counter| {
            counter.note(peak);
            counter.uses
        };
        self.live.clear();
        Closed {
            stacks: self.stacks.into_iter().map(ended).collect(),
            at_kind_peak: self.shares.iter().map(|share| share.bytes).collect(),
            groups: self.groups.into_iter().map(ended).collect(),
            total: self.total.uses,
            peak_at_ns: (peak > 0).then_some(self.peak_at_ns),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) stacks: Vec<Uses>,
    /// Bytes of each stack at its kind's peak, up to the requested moment.
    pub(crate) at_kind_peak: Vec<u64>,
    pub(crate) groups: Vec<Uses>,
    pub(crate) total: Uses,
    pub(crate) peak_at_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn malloc(at_ms: u64, address: u64, bytes: u64, stack: u32, thread: u32) -> Event {
        Event { at_ns: at_ms * MS, address, bytes: Some(bytes), stack, thread }
    }

    fn free(at_ms: u64, address: u64, thread: u32) -> Event {
        Event { at_ns: at_ms * MS, address, bytes: None, stack: 0, thread }
    }

    /// Stacks 0 and 1 belong to group 0, stack 2 to group 1; stacks 1 and 2 belong to kind 1, stack 0 to kind 0.
    fn closed(events: &[Event]) -> Closed {
        let mut ledger = Ledger::default();
        for (stack, group, kind) in [(0, 0, 0), (1, 0, 1), (2, 1, 1)] {
            ledger.stack(stack, group, kind);
        }
        events.iter().for_each(|event| ledger.count(*event));
        ledger.close()
    }

    #[test]
    fn end_and_peak_are_distinguished() {
        let closed = closed(&[
            malloc(1, 0x10, 100, 0, 1),
            malloc(2, 0x20, 300, 2, 2),
            malloc(3, 0x30, 50, 1, 1),
            free(4, 0x20, 2),
            malloc(5, 0x40, 10, 0, 1),
            free(6, 0x10, 1),
        ]);
        let uses = |allocated, freed, end, at_peak, peak, (allocations, allocations_then)| Uses {
            allocations,
            allocations_then,
            bytes_allocated: allocated,
            bytes_freed: freed,
            bytes_end: end,
            bytes_then: end,
            bytes_at_peak: at_peak,
            bytes_peak: peak,
        };
        assert_eq!(closed.stacks[0], uses(110, 100, 10, 100, 110, (2, 1)));
        assert_eq!(closed.stacks[1], uses(50, 0, 50, 50, 50, (1, 1)));
        assert_eq!(closed.stacks[2], uses(300, 300, 0, 300, 300, (1, 0)));
        assert_eq!(closed.groups[0], uses(160, 100, 60, 150, 160, (3, 2)));
        assert_eq!(closed.total, uses(460, 400, 60, 450, 450, (4, 2)));
        assert_eq!(closed.peak_at_ns, Some(3 * MS));
        let at_peak: u64 = closed.stacks.iter().map(|uses| uses.bytes_at_peak).sum();
        assert_eq!(at_peak, closed.total.bytes_at_peak, "stacks add up to the total at its peak");
    }

    #[test]
    fn stacks_of_a_kind_add_up_to_its_peak() {
        // Kind 0 peaks at 9, long before the total does; kind 1 at 60 + 30, between the peaks of its stacks.
        let closed = closed(&[
            malloc(1, 0x10, 9, 0, 1),
            free(2, 0x10, 1),
            malloc(3, 0x20, 70, 1, 1),
            free(4, 0x20, 1),
            malloc(5, 0x30, 60, 1, 1),
            malloc(6, 0x40, 30, 2, 2),
            free(7, 0x30, 1),
            malloc(8, 0x50, 20, 2, 2),
        ]);
        assert_eq!(closed.at_kind_peak, [9, 60, 30]);
        let peaks: Vec<u64> = closed.stacks.iter().map(|uses| uses.bytes_peak).collect();
        assert_eq!(peaks, [9, 70, 50], "each stack has its own peak");
    }

    #[test]
    fn live_memory_at_a_moment_is_kept() {
        let mut ledger = Ledger::default();
        ledger.stack(0, 0, 0);
        ledger.keep(3 * MS);
        let events = [
            malloc(1, 0x10, 100, 0, 1),
            malloc(3, 0x20, 50, 0, 1),
            free(4, 0x10, 1),
            malloc(5, 0x30, 7, 0, 1),
            malloc(6, 0x40, 900, 0, 1),
            free(7, 0x40, 1),
        ];
        events.into_iter().for_each(|event| ledger.count(event));
        let closed = ledger.close();
        assert_eq!((closed.groups[0].bytes_then, closed.total.bytes_then, closed.total.bytes_end), (150, 150, 57));
        assert_eq!((closed.groups[0].allocations_then, closed.total.allocations), (2, 4));
        assert_eq!(closed.at_kind_peak, [150], "later allocations do not count toward the peak");
    }

    #[test]
    fn a_late_free_does_not_free_the_next_allocation() {
        // Thread 1 frees 0x10; thread 2 gets this address, and records its allocation first.
        let end = |events: &[Event]| closed(events).total.bytes_end;
        assert_eq!(end(&[malloc(1, 0x10, 100, 0, 1), malloc(5, 0x10, 70, 0, 2), free(6, 0x10, 1)]), 70);
        // If its own thread frees it, or another thread does so much later, the new allocation is freed.
        assert_eq!(end(&[malloc(1, 0x10, 100, 0, 1), malloc(5, 0x10, 70, 0, 2), free(6, 0x10, 2)]), 0);
        assert_eq!(end(&[malloc(1, 0x10, 100, 0, 1), malloc(5, 0x10, 70, 0, 2), free(900, 0x10, 3)]), 0);
        // If one thread records an allocation twice, it counts once.
        assert_eq!(end(&[malloc(1, 0x10, 100, 0, 1), malloc(1, 0x10, 100, 0, 1)]), 100);
    }

    #[test]
    fn unknown_frees_are_counted_separately() {
        let mut ledger = Ledger::default();
        ledger.stack(0, 0, 0);
        ledger.count(free(1, 0x10, 1));
        ledger.count(malloc(2, 0x20, u64::MAX, 0, 1));
        ledger.count(malloc(2, 0x30, u64::MAX, 0, 1));
        assert_eq!(ledger.frees_unknown, 1);
        assert_eq!(ledger.close().total.bytes_end, u64::MAX);
    }
}
