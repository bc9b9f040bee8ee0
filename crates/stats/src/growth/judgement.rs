//! The judgement on growth.

use super::Projection;
use serde::{Deserialize, Serialize};

/// The growth of a thing over time, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "GrowthWord")]
pub enum Verdict {
    /// Nothing that would matter within seven days.
    Steady,
    /// It rises and may still come to rest.
    Warming,
    /// It grows without bound, as far as can be told, and the limit is within reach.
    Grows,
    /// Neither can be told.
    #[default]
    CannotTell,
}

impl Verdict {
    /// As written in documents and labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Warming => "warming",
            Self::Grows => "grows",
            Self::CannotTell => "cannot_tell",
        }
    }
}

/// Growth that three judgements in a row saw, or that a single judgement sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Bytes an hour, of ten-minute cells as in real life.
    pub slope: f64,
    /// The lower end of the interval that holds the slope with 95 % confidence.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Cells of the window in which the growth was seen.
    pub window: usize,
    /// When memory meets the limit.
    pub projection: Projection,
}

/// A rise that is no alarm yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hint {
    /// Bytes an hour.
    pub slope: f64,
    /// The lower end of the interval that holds the slope with 95 % confidence.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Cells over which it rose.
    pub window: usize,
    /// Cells until the limit at this pace.
    pub rest: f64,
}

/// Why nothing can be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unsure {
    /// Too little was seen. The counts are cells: what was seen, and what it takes until growth, and until a steady
    /// state, can be told at the soonest.
    Young {
        /// Cells that were seen.
        seen: usize,
        /// Cells until the shortest window has seen growth three times in a row.
        grows: usize,
        /// Cells until a window of a day.
        steady: usize,
    },
    /// Fewer collections of the old generation than a window needs.
    Collections {
        /// Collections in the longest window there is.
        seen: u32,
        /// Collections that any window needs.
        needed: u32,
    },
    /// Every window has gaps in what was seen.
    Gaps,
    /// Memory moves by this many bytes without a pattern.
    Moves {
        /// Between the lowest and the highest floor of the longest window there is.
        bytes: f64,
    },
}

/// The verdict on one thing at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The word.
    pub verdict: Verdict,
    /// The growth; absent unless the verdict is [`Verdict::Grows`].
    pub growth: Option<Growth>,
    /// The rise; absent unless it is beyond doubt, whether or not it is growth.
    pub hint: Option<Hint>,
    /// Why nothing can be told: with [`Verdict::CannotTell`], and with [`Verdict::Warming`] that is only youth.
    pub unsure: Option<Unsure>,
}
