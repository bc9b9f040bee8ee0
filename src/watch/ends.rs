//! The number of lives that ended per name, and how: metrics that outlive a JVM.

use crate::record::{Happened, WatchEnds, WatchEvent};
use std::collections::BTreeMap;
use std::time::Duration;

/// Forgets a name without a live JVM after this time, because pod names are never reused.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);
/// The maximum number of names; those whose lives ended longest ago are dropped first.
const NAMES_MAX: usize = 1000;

/// The ends of all observed lives.
#[derive(Debug, Default)]
pub struct Ends {
    names: BTreeMap<String, One>,
}

#[derive(Debug, Default)]
struct One {
    living: u64,
    killed: u64,
    other: u64,
    last: Duration,
}

impl Ends {
    /// Records events that happened at this time.
    pub fn take(&mut self, events: &[WatchEvent], now: Duration) {
        for event in events {
            let (came, killed, ended) = match event.what {
                Happened::Appeared(_) => (1, 0, 0),
                Happened::Killed(_) => (0, 1, 0),
                Happened::Ended(_) => (0, 0, 1),
                _ => continue,
            };
            let one = self.names.entry(event.name.clone()).or_default();
            one.living = (one.living + came).saturating_sub(killed + ended);
            one.killed += killed;
            one.other += ended;
            one.last = now;
        }
        self.names.retain(|_, one| one.living > 0 || now.saturating_sub(one.last) < FORGOTTEN_AFTER);
        while self.names.len() > NAMES_MAX {
            let gone = self.names.iter().filter(|(_, one)| one.living == 0).min_by_key(|(_, one)| one.last);
            let Some(name) = gone.map(|(name, _)| name.clone()) else { break };
            self.names.remove(&name);
        }
    }

    /// The ends by name. A name in its first life has 0, so that the first end is visible as an increase.
    pub fn all(&self) -> Vec<WatchEnds> {
        let ends =
            |(name, one): (&String, &One)| WatchEnds { name: name.clone(), killed: one.killed, other: one.other };
        self.names.iter().map(ends).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, what: Happened) -> WatchEvent {
        WatchEvent { name: name.to_owned(), what }
    }

    #[test]
    fn ends_are_counted_by_name_across_lives() {
        let (mut ends, now) = (Ends::default(), Duration::from_secs(1));
        ends.take(&[event("a", Happened::Appeared(1)), event("b", Happened::Appeared(2))], now);
        let told = |name: &str, killed, other| WatchEnds { name: name.to_owned(), killed, other };
        assert_eq!(ends.all(), [told("a", 0, 0), told("b", 0, 0)], "both names are listed before any JVM has ended");
        ends.take(&[event("a", Happened::Killed(1)), event("b", Happened::Ended(2))], now);
        ends.take(&[event("a", Happened::Appeared(3)), event("a", Happened::Killed(3))], now);
        assert_eq!(ends.all(), [told("a", 2, 0), told("b", 0, 1)]);
        ends.take(&[event("b", Happened::Appeared(4))], now);
        ends.take(&[], now + FORGOTTEN_AFTER);
        assert_eq!(ends.all(), [told("b", 0, 1)], "a live JVM's name is kept after the retention time");
    }

    #[test]
    fn names_that_never_recur_do_not_accumulate() {
        let mut ends = Ends::default();
        for at in 0..3 * NAMES_MAX as u64 {
            let name = format!("pod-{at:05}");
            let events = [event(&name, Happened::Appeared(1)), event(&name, Happened::Killed(1))];
            ends.take(&events, Duration::from_millis(at));
        }
        let all = ends.all();
        assert_eq!((all.len(), all[0].name.as_str()), (NAMES_MAX, "pod-02000"));
    }
}
