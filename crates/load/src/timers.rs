//! The times at which the engine returns to a connection: when a rest ends, bytes may be sent, or a wait is over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The connection has rested or thought, and is free for a request.
    Free,
    Send,
    /// The connection may continue reading.
    Receive,
    /// The connection has waited long enough for `100 Continue`.
    Continue,
}

/// Times and connections, earliest first. Entries are never removed: the engine checks whether they still matter.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(u64, usize, Due)>>);

impl Timers {
    pub(super) fn set(&mut self, at_ns: u64, index: usize, due: Due) {
        self.0.push(Reverse((at_ns, index, due)));
    }

    /// The next time; `u64::MAX` if no entry is left.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.0.peek().map_or(u64::MAX, |Reverse((at_ns, _, _))| *at_ns)
    }

    /// Removes and returns one entry that is due now.
    #[inline]
    pub(super) fn pop(&mut self, now_ns: u64) -> Option<(usize, Due)> {
        if self.next_ns() > now_ns {
            return None;
        }
        self.0.pop().map(|Reverse((_, index, due))| (index, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_not_early() {
        let mut timers = Timers::default();
        assert_eq!((timers.next_ns(), timers.pop(u64::MAX)), (u64::MAX, None));
        timers.set(20, 1, Due::Free);
        timers.set(10, 2, Due::Send);
        assert_eq!((timers.next_ns(), timers.pop(9)), (10, None));
        assert_eq!(timers.pop(10), Some((2, Due::Send)));
        assert_eq!((timers.pop(19), timers.pop(25)), (None, Some((1, Due::Free))));
    }
}
