//! Does memory grow without bound, when does it reach its limit, and how sure is that? The answer comes from the least
//! values of ten-minute cells, judged in a ladder of windows.
//!
//! A leak must be told apart from days, fills of caches, steps of deployments and walks. So each window answers four
//! questions:
//!
//! - Is there a trend against the scatter of the floors?
//! - Are the steps alike?
//! - Has memory risen by more than it ever fell?
//! - Does memory pass the limit even as the fill that bends as much as the floors allow?
//!
//! The last question does most. A fill looks like a line for as long as a window lies inside it. So the less is known
//! of how straight the line is, the nearer the limit must be. In any case it may be only so many windows away. A rise
//! that an earlier life of the same service never had may go further. [What the verdict says](../../docs/watch.md) has
//! the rates at which it errs.
//!
//! Times are counted in cells. A cell is ten minutes long if samples are taken every ten seconds. Faster sampling makes
//! the cells shorter, and all windows with them.

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

/// Cells of an hour in real life, where a cell is ten minutes.
pub const HOUR: usize = 6;
/// Cells of a day.
pub const DAY: usize = 24 * HOUR;
/// Cells between two judgements; three of them in a row decide.
pub const STEP: usize = 3;
