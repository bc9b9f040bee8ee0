//! When memory reaches the limit, as an interval.

use super::window::Fill;
use super::{DAY, Floors, HOUR};

/// Cells from now until the limit is reached, with 95% confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projection {
    /// The limit is not reached before this.
    pub earliest: f64,
    /// The limit is reached by then; `None` if memory may level off first, or there is no complete day.
    pub latest: Option<f64>,
}

/// Number of days whose peaks count.
const DAYS: usize = 7;

impl Projection {
    /// Projects from slopes in bytes per cell, `low` and `high` of their interval, and the most curved fill that the
    /// floors allow. The earliest time starts from the highest floor of the last week, carried along the trend to now,
    /// plus an allowance for a peak that this week has not shown. The latest time starts from the lowest floor of the
    /// last hour. A window shorter than a day does not show how slow the nights are, so it gives no latest time.
    pub(super) fn of(floors: &Floors, cells: usize, limit: f64, (low, high): (f64, f64), fill: Option<Fill>) -> Self {
        let slope = f64::midpoint(low, high);
        let week = cells.saturating_sub(DAYS * DAY).max(super::floors::WARM_UP.min(cells - 1));
        let carried = |at: usize| floors.values[at] + slope * (cells - at) as f64;
        let highest = (week..cells).map(carried).fold(f64::NEG_INFINITY, f64::max).max(floors.values[cells - 1]);
        let hour = &floors.values[cells.saturating_sub(HOUR)..cells];
        let least = hour.iter().copied().fold(f64::INFINITY, f64::min);
        let unseen = (highest - least) * DAY as f64 / (cells - week) as f64;
        let room = (limit - least).max(0.0);
        let latest = |fill: Fill| (low > 0.0).then(|| Some(fill.until(room)?.max(room / low)))?;
        Self {
            earliest: (limit - highest - unseen).max(0.0) / high.max(f64::MIN_POSITIVE),
            latest: fill.and_then(latest),
        }
    }
}
