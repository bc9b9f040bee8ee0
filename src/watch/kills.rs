//! Whether a JVM that has gone was killed, by the count of kills in its cgroup.

use std::time::Duration;

/// A JVM that was killed is still seen while the kernel takes its memory apart, which takes seconds of a large heap: a
/// count that rose this long before its end is of its own kill.
const DIES_WITHIN: Duration = Duration::from_secs(30);

/// The kills in the cgroup of a JVM, as counted from look to look.
#[derive(Debug, Default)]
pub(super) struct Kills {
    count: Option<u64>,
    rose: Option<Duration>,
}

impl Kills {
    /// A look at this time saw this count, or none.
    pub(super) fn saw(&mut self, count: Option<u64>, at: Duration) {
        if count.zip(self.count).is_some_and(|(now, before)| now > before) {
            self.rose = Some(at);
        }
        self.count = count.or(self.count);
    }

    /// Whether one of them may be of the JVM, which is seen no more at this time, when so many are counted.
    pub(super) fn may_be_its_own(&self, count: Option<u64>, at: Duration) -> bool {
        count.zip(self.count).is_some_and(|(now, before)| now > before)
            || self.rose.is_some_and(|rose| at.saturating_sub(rose) <= DIES_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_counted_before_or_after_the_last_look() {
        let at = Duration::from_secs;
        let mut kills = Kills::default();
        kills.saw(Some(3), at(10));
        assert!(!kills.may_be_its_own(Some(3), at(20)), "kills of earlier lives");
        assert!(kills.may_be_its_own(Some(4), at(20)));
        kills.saw(Some(4), at(20));
        kills.saw(None, at(30));
        assert!(kills.may_be_its_own(Some(4), at(30)), "it was dying at the last look");
        assert!(kills.may_be_its_own(None, at(30)), "its cgroup went first");
        kills.saw(Some(4), at(60));
        assert!(!kills.may_be_its_own(Some(4), at(60)), "another process of the cgroup, long ago");
    }
}
