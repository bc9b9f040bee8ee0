//! When a watched JVM is weighed: before it is killed, when it grows, or from time to time, as far as that is asked
//! for.

use super::account::file_name;
use super::sample::unreclaimable;
use super::world::Look;
use crate::record::{GrowthRecord, GrowthWord, WhyWeighed};
use std::path::{Path, PathBuf};

/// Shares of the limit at which a JVM is weighed, in percent.
const NEAR_PERCENT: [u64; 3] = [66, 75, 90];
/// Accounts of one JVM in a day, whatever asks for them.
const A_DAY: usize = 5;
const DAY_MS: u64 = 24 * 3600 * 1000;
/// After one account the next is not taken for five minutes.
const GRACE_MS: u64 = 5 * 60 * 1000;

/// When a JVM is weighed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhenWeighed {
    /// At these shares of its limit, in percent.
    pub at_percent: Vec<u64>,
    /// When it begins to grow.
    pub on_growth: bool,
    /// So often.
    pub every_ms: Option<u64>,
    /// Whether it is asked, which holds nothing.
    pub asked: Attaching,
}

impl WhenWeighed {
    /// At 66, 75 and 90 % of the limit.
    pub fn the_kill() -> Self {
        Self { at_percent: NEAR_PERCENT.to_vec(), ..Self::default() }
    }
}

/// Whether JVMs are asked by their attach sockets for what no outside can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Attaching {
    /// Never.
    #[default]
    Never,
    /// Each once in its life, when it is first seen.
    Once,
}

/// What was weighed of a JVM so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Weighed {
    /// The highest share reached since it was last below all of them.
    reached: u64,
    grew: bool,
    /// Ages at which it was weighed, of the last day.
    at_ms: Vec<u64>,
    last_timed_ms: Option<u64>,
}

impl Weighed {
    /// Whether it is to be weighed now, and why.
    pub(super) fn due(&mut self, weighing: &WhenWeighed, look: &Look, growth: &GrowthRecord) -> Option<WhyWeighed> {
        let age_ms = look.sample.age_ms;
        let due = self.why(weighing, look, growth)?;
        self.at_ms.retain(|at| at + DAY_MS > age_ms);
        let rested = self.at_ms.last().is_none_or(|last| last + GRACE_MS <= age_ms);
        // The last step before the kill is worth an account so soon after another.
        let last_chance = matches!(due, WhyWeighed::AtPercent(percent) if percent == NEAR_PERCENT[2]);
        if self.at_ms.len() >= A_DAY || !(rested || last_chance) {
            return None;
        }
        match due {
            WhyWeighed::AtPercent(percent) => self.reached = percent,
            WhyWeighed::Growth => self.grew = true,
            WhyWeighed::Time => self.last_timed_ms = Some(age_ms),
            // Nothing follows from it.
            WhyWeighed::FirstSight => {}
        }
        self.at_ms.push(age_ms);
        Some(due)
    }

    fn why(&mut self, weighing: &WhenWeighed, look: &Look, growth: &GrowthRecord) -> Option<WhyWeighed> {
        let used = unreclaimable(|column| look.sample.get(column))?;
        let percent = used.saturating_mul(100).checked_div(look.bounds.memory).unwrap_or(0);
        let reached = weighing.at_percent.iter().copied().filter(|at| *at <= percent).max().unwrap_or(0);
        if reached == 0 && percent + 10 < self.reached {
            self.reached = 0;
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

    /// The file of the account that was due last, beside the history of the same life.
    pub(super) fn file(&self, history: &Path, due: &WhyWeighed) -> PathBuf {
        file_name(history, self.at_ms.last().copied().unwrap_or(0), due)
    }
}
