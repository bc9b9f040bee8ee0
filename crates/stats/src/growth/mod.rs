//! Does memory grow without bound, when does it reach its limit, and how certain is the answer? It comes from the
//! minima of ten-minute cells, judged in a ladder of windows.
//!
//! A leak must be distinguished from daily cycles, cache fills, deployment steps, and random walks. So each window
//! answers four questions:
//!
//! - Is there a trend, compared to the scatter of the floors?
//! - Are the steps similar?
//! - Has memory risen by more than it ever dropped?
//! - Does memory exceed the limit even if it is a fill that bends as much as the floors allow?
//!
//! The last question matters most. A fill looks like a line while the window is inside it. So the less certain it is
//! that the line is straight, the nearer the limit must be. In any case, the limit can be at most a few windows away. A
//! rise that an earlier life of the same service never had can be extrapolated further.
//! [The meaning of the verdict](../../docs/watch.md) has the error rates.
//!
//! Times are counted in cells. A cell is ten minutes long if samples are taken every ten seconds. Faster sampling
//! shortens the cells, and all windows with them.

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

/// Cells per hour, with ten-minute cells.
pub const HOUR: usize = 6;
/// Cells per day.
pub const DAY: usize = 24 * HOUR;
/// Cells between two judgements; three consecutive ones decide.
pub const STEP: usize = 3;
