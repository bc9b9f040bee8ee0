//! Does memory grow without bound, when is it at its limit, and how sure is that: from the least values of ten-minute
//! cells, judged in a ladder of windows.
//!
//! Leaks are told from days, fills of caches, steps of deployments and walks by asking of each window: is there a trend
//! against the scatter of the floors, are the steps alike, has memory risen by more than it ever fell, and does it pass
//! the limit even as the fill that bends as much as the floors allow? The last one does most: a fill looks like a line
//! for as long as a window lies inside it, so that the limit may be the nearer the less is known of how straight the
//! line is, and only so many windows away at all. A rise that an earlier life of the same service never had may go
//! further. [What the verdict says](../../docs/watch.md) has the rates at which it errs.
//!
//! Times are counted in cells, of ten minutes each where samples are taken every ten seconds; who samples faster has
//! shorter cells, and all windows with them.

mod floors;
mod judgement;
mod ladder;
mod precedent;
mod projection;
mod window;

pub use floors::{Floors, trailing_minima};
pub use judgement::{Growth, Hint, Judgement, Unsure, Verdict};
pub use ladder::{Judge, Ladder};
pub use precedent::Precedent;
pub use projection::Projection;
pub use window::{fitted, median_slope};

/// Cells of an hour, as it is in life: a cell is ten minutes.
pub const HOUR: usize = 6;
/// Cells of a day.
pub const DAY: usize = 24 * HOUR;
/// Cells between two judgements; three of them in a row decide.
pub const STEP: usize = 3;
