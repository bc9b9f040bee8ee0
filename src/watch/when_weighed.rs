//! Decides when to take an account of a watched JVM: before an OOM kill, on growth, or periodically, as requested.

use super::account::AccountFile;
use super::sample::unreclaimable;
use super::world::Look;
use crate::record::{GrowthRecord, GrowthWord, WhyWeighed};

/// Percentages of the limit at which an account is taken.
const NEAR_PERCENT: [u64; 3] = [66, 75, 90];
/// Accounts per JVM and day. Accounts of the last step before a kill are counted separately, so that others cannot use
/// them up.
const A_DAY: usize = 5;
const HOUR_MS: u64 = 3600 * 1000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// The minimum interval between accounts. At the last step, only its own accounts count, and they continue all day:
/// after the first five, an hour apart, so that the last account before a kill is at most that old.
const GRACE_MS: u64 = 5 * 60 * 1000;
/// The delay before a failed account is retried; it doubles each time, up to an hour.
const TRY_AGAIN_MS: u64 = 30 * 1000;

/// When to take accounts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhenWeighed {
    /// At these percentages of its limit.
    pub at_percent: Vec<u64>,
    /// When growth begins.
    pub on_growth: bool,
    /// At this interval.
    pub every_ms: Option<u64>,
    /// Whether to attach to the JVM, which pauses nothing.
    pub asked: Attaching,
}

impl WhenWeighed {
    /// At 66, 75, and 90% of the limit.
    pub fn the_kill() -> Self {
        Self { at_percent: NEAR_PERCENT.to_vec(), ..Self::default() }
    }
}

/// Whether to attach to JVMs for data that is not readable from outside the JVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Attaching {
    /// Never.
    #[default]
    Never,
    /// Once per JVM, when it is first seen.
    Once,
}

/// A JVM's accounts so far.
#[derive(Debug, Clone, Default)]
pub(super) struct WeighingHistory {
    /// The highest step with an account since memory was last well below it.
    reached: u64,
    grew: bool,
    /// The accounts of the last day.
    taken: Vec<AccountMoment>,
    last_timed_ms: Option<u64>,
    failed: Option<Failed>,
}

#[derive(Debug, Clone, Copy)]
struct AccountMoment {
    /// The JVM's age.
    at_ms: u64,
    why: WhyWeighed,
}

/// Consecutive failed attempts.
#[derive(Debug, Clone, Copy)]
struct Failed {
    last: AccountMoment,
    times: u32,
}

impl WeighingHistory {
    /// Starts with existing accounts, possibly from another watch.
    pub(super) fn of(accounts: &[AccountFile]) -> Self {
        let mut weighed = Self::default();
        for account in accounts {
            let percent = account.why.strip_suffix("-percent").and_then(|percent| percent.parse().ok());
            let why = match (account.why.as_str(), percent) {
                (_, Some(percent)) => WhyWeighed::AtPercent(percent),
                ("growth", _) => WhyWeighed::Growth,
                ("time", _) => WhyWeighed::Time,
                _ => continue,
            };
            // A watch that is killed during an account can leave an empty file.
            let is_empty = account.path.metadata().is_ok_and(|about| about.len() == 0);
            weighed.tried(why, account.age_s * 1000, !is_empty);
        }
        weighed
    }

    /// Whether an account is due, and why. Report the outcome to [`Self::tried`].
    pub(super) fn due(&mut self, weighing: &WhenWeighed, look: &Look, growth: &GrowthRecord) -> Option<WhyWeighed> {
        let age_ms = look.sample.age_ms;
        let due = self.why(weighing, look, growth)?;
        self.taken.retain(|taken| taken.at_ms + DAY_MS > age_ms);
        let last_step = weighing.at_percent.iter().max();
        let is_last = |why: &WhyWeighed| matches!(why, WhyWeighed::AtPercent(percent) if Some(percent) == last_step);
        let waits = match is_last(&due) {
            true => {
                let count = self.taken.iter().filter(|taken| is_last(&taken.why)).count();
                let last = self.taken.iter().rfind(|taken| is_last(&taken.why));
                let grace_ms = if count < A_DAY { GRACE_MS } else { HOUR_MS };
                last.is_some_and(|last| last.at_ms + grace_ms > age_ms)
            }
            false => {
                let count = self.taken.iter().filter(|taken| !is_last(&taken.why)).count();
                count >= A_DAY || self.taken.last().is_some_and(|last| last.at_ms + GRACE_MS > age_ms)
            }
        };
        let failed_now = self.failed.is_some_and(|failed| !failed.may_be_tried(due, age_ms));
        (!waits && !failed_now).then_some(due)
    }

    /// Records the outcome of an account at this age; only a completed one counts.
    pub(super) fn tried(&mut self, why: WhyWeighed, age_ms: u64, was_taken: bool) {
        let last = AccountMoment { at_ms: age_ms, why };
        if !was_taken {
            let times = self.failed.map_or(0, |failed| failed.times).saturating_add(1);
            self.failed = Some(Failed { last, times });
            return;
        }
        self.failed = None;
        self.taken.push(last);
        match why {
            WhyWeighed::AtPercent(percent) => self.reached = percent,
            WhyWeighed::Growth => self.grew = true,
            WhyWeighed::Time => self.last_timed_ms = Some(age_ms),
            // Has no further effect.
            WhyWeighed::FirstSight => {}
        }
    }

    fn why(&mut self, weighing: &WhenWeighed, look: &Look, growth: &GrowthRecord) -> Option<WhyWeighed> {
        let used = unreclaimable(|column| look.sample.get(column))?;
        let percent = used.saturating_mul(100).checked_div(look.bounds.memory).unwrap_or(0);
        let reached = weighing.at_percent.iter().copied().filter(|at| *at <= percent).max().unwrap_or(0);
        if percent + 10 < self.reached {
            // The higher steps become due again.
            self.reached = self.reached.min(reached);
        }
        if reached > self.reached {
            return Some(WhyWeighed::AtPercent(reached));
        }
        let grows = growth.verdict == GrowthWord::Grows;
        self.grew &= grows;
        if weighing.on_growth && grows && !self.grew {
            return Some(WhyWeighed::Growth);
        }
        let every = weighing.every_ms?;
        let last = self.last_timed_ms.get_or_insert(look.sample.age_ms);
        (look.sample.age_ms >= *last + every).then_some(WhyWeighed::Time)
    }
}

impl Failed {
    /// A higher step is tried immediately, because the next try at the lower one may come too late.
    fn may_be_tried(&self, due: WhyWeighed, age_ms: u64) -> bool {
        let step = |why| if let WhyWeighed::AtPercent(percent) = why { percent } else { 0 };
        let pause_ms = (TRY_AGAIN_MS << (self.times - 1).min(7)).min(HOUR_MS);
        step(due) > step(self.last.why) || self.last.at_ms + pause_ms <= age_ms
    }
}

#[cfg(test)]
mod tests {
    use super::super::bounds::Bounds;
    use super::super::column::Column;
    use super::super::sample::Sample;
    use super::*;
    use crate::record::WatchLimit;
    use std::path::PathBuf;

    /// A JVM at this percentage of its limit and age.
    fn look(minutes: u64, percent: u64) -> Look {
        let mut sample = Sample::at(minutes * 60_000);
        sample.set(Column::RssAnon, percent << 20);
        let bounds = Bounds { memory: 100 << 20, ..Bounds::default() };
        Look { sample, bounds, limit: WatchLimit::default(), charge: None, took_ns: 0 }
    }

    /// The readings, as (minutes, percent), that trigger an account, each with the step of that account.
    fn taken(weighing: &WhenWeighed, looks: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
        let mut weighed = WeighingHistory::default();
        let mut taken = Vec::new();
        for (minutes, percent) in looks {
            let Some(why) = weighed.due(weighing, &look(minutes, percent), &GrowthRecord::default()) else { continue };
            weighed.tried(why, minutes * 60_000, true);
            taken.push((minutes, if let WhyWeighed::AtPercent(step) = why { step } else { 0 }));
        }
        taken
    }

    /// Alternates between two percentages, six minutes each.
    fn swings(low: u64, high: u64, times: u64) -> impl Iterator<Item = (u64, u64)> {
        (0..times).flat_map(move |at| [(12 * at, low), (12 * at + 6, high)])
    }

    #[test]
    fn earlier_accounts_do_not_prevent_the_last_one_before_a_kill() {
        let looks = swings(60, 78, 20).chain([(241, 92)]);
        let all = taken(&WhenWeighed::the_kill(), looks);
        assert_eq!((all.len(), all.last()), (A_DAY + 1, Some(&(241, 90))), "{all:?}");
        let often = WhenWeighed { at_percent: vec![90], every_ms: Some(HOUR_MS), ..WhenWeighed::default() };
        let all = taken(&often, (0..12).map(|hour| (60 * hour, 50)).chain([(661, 92)]));
        assert_eq!((all.len(), all.last()), (A_DAY + 1, Some(&(661, 90))), "{all:?}");
    }

    #[test]
    fn the_last_step_is_the_highest_requested() {
        for last in [50, 85, 95, 99] {
            let weighing = WhenWeighed { at_percent: vec![last, 40], ..WhenWeighed::default() };
            let all = taken(&weighing, [(10, 45), (11, last)]);
            assert_eq!(all, [(10, 40), (11, last)], "an account at the last step is due one minute after another");
        }
        let weighing = WhenWeighed { at_percent: vec![90, 95], ..WhenWeighed::default() };
        assert_eq!(taken(&weighing, [(10, 91), (11, 79), (12, 91)]), [(10, 90)], "95% is the last step, not 90%");
    }

    #[test]
    fn a_day_at_the_last_step_has_hourly_accounts() {
        let all = taken(&WhenWeighed::the_kill(), swings(70, 92, 24 * 5));
        let last: Vec<u64> = all.iter().filter(|(_, step)| *step == 90).map(|(at, _)| *at).collect();
        assert!((A_DAY + 20..=A_DAY + 24).contains(&last.len()), "{last:?}");
        assert!(last.windows(2).all(|pair| pair[1] - pair[0] <= 72), "{last:?}");
        // It never fell below 66%, so reaching it again is not new.
        assert_eq!(all.iter().filter(|(_, step)| *step == 66).count(), 1, "{all:?}");
    }

    #[test]
    fn failed_accounts_are_retried_with_backoff() {
        let weighing = WhenWeighed::the_kill();
        let growth = GrowthRecord::default();
        let mut weighed = WeighingHistory::default();
        let mut tried = Vec::new();
        for minutes in 0..24 * 60 {
            if let Some(why) = weighed.due(&weighing, &look(minutes, 70), &growth) {
                weighed.tried(why, minutes * 60_000, false);
                tried.push(minutes);
            }
        }
        assert_eq!(tried[..6], [0, 1, 2, 4, 8, 16]);
        assert!(tried.len() < 32, "{tried:?}");
        let due = weighed.due(&weighing, &look(24 * 60, 92), &growth);
        assert_eq!(due, Some(WhyWeighed::AtPercent(90)), "a higher step is due immediately after a failed account");
        weighed.tried(WhyWeighed::AtPercent(90), 24 * HOUR_MS, true);
        // Memory fell and rose again; nothing failed since, and only the completed account counts.
        assert_eq!(weighed.due(&weighing, &look(24 * 60 + 1, 50), &growth), None);
        assert_eq!(weighed.due(&weighing, &look(24 * 60 + 6, 70), &growth), Some(WhyWeighed::AtPercent(66)));
    }

    #[test]
    fn a_new_watch_respects_existing_accounts() {
        let account = |age_s: u64, why: &str| AccountFile { age_s, why: why.to_owned(), path: PathBuf::new() };
        let accounts: Vec<AccountFile> =
            (0..5).map(|at| account(at * 600, "75-percent")).chain([account(3000, "asked")]).collect();
        let mut weighed = WeighingHistory::of(&accounts);
        let weighing = WhenWeighed::the_kill();
        let mut due = |minutes, percent| weighed.due(&weighing, &look(minutes, percent), &GrowthRecord::default());
        assert_eq!(due(60, 76), None, "no second account is due for the same step");
        assert_eq!((due(61, 50), due(62, 76)), (None, None), "no account is due after the daily limit");
        assert_eq!(due(63, 92), Some(WhyWeighed::AtPercent(90)));
    }
}
