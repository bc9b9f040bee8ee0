//! Decides whether a vanished JVM was killed, from the kill count of its cgroup.

use std::time::Duration;

/// A killed JVM stays visible while the kernel frees its memory, which takes seconds for a large heap. An increase in
/// the count this long before its end is attributed to it.
const DIES_WITHIN: Duration = Duration::from_secs(30);

/// The kill count of a JVM's cgroup over time.
#[derive(Debug, Default)]
pub(super) struct Kills {
    count: Option<u64>,
    rose: Option<Duration>,
}

impl Kills {
    /// Records the count read at this time, if any.
    pub(super) fn saw(&mut self, count: Option<u64>, at: Duration) {
        if count.zip(self.count).is_some_and(|(now, before)| now > before) {
            self.rose = Some(at);
        }
        self.count = count.or(self.count);
    }

    /// Whether this JVM, which is no longer visible at this time, may have been killed, given the current count.
    pub(super) fn may_be_its_own(&self, count: Option<u64>, at: Duration) -> bool {
        count.zip(self.count).is_some_and(|(now, before)| now > before)
            || self.rose.is_some_and(|rose| at.saturating_sub(rose) <= DIES_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_may_be_counted_before_or_after_the_last_reading() {
        let at = Duration::from_secs;
        let mut kills = Kills::default();
        kills.saw(Some(3), at(10));
        assert!(!kills.may_be_its_own(Some(3), at(20)), "kills before this life do not count");
        assert!(kills.may_be_its_own(Some(4), at(20)));
        kills.saw(Some(4), at(20));
        kills.saw(None, at(30));
        assert!(kills.may_be_its_own(Some(4), at(30)), "a kill counted shortly before the end may be its own");
        assert!(kills.may_be_its_own(None, at(30)), "a kill may be its own even if its cgroup is gone");
        kills.saw(Some(4), at(60));
        assert!(!kills.may_be_its_own(Some(4), at(60)), "a kill counted 40 s earlier is another process's");
    }
}
