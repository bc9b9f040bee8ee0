//! The growth verdict and its data.

use super::Projection;
use serde::{Deserialize, Serialize};

/// The verdict on growth over time, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "GrowthWord")]
pub enum Verdict {
    /// Nothing that would matter within seven days.
    Steady,
    /// It rises but can still level off.
    Warming,
    /// It appears to grow without bound, and the limit is within reach.
    Grows,
    /// It is too early to tell.
    #[default]
    CannotTell,
}

impl Verdict {
    /// The name in documents and labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Warming => "warming",
            Self::Grows => "grows",
            Self::CannotTell => "cannot_tell",
        }
    }
}

/// Growth seen in three consecutive judgements, or in a single one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Bytes per hour, assuming ten-minute cells.
    pub slope: f64,
    /// The lower end of the slope's 95% confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Cells of the window in which the growth was seen.
    pub window: usize,
    /// When memory reaches the limit.
    pub projection: Projection,
}

/// A rise that does not justify an alarm yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hint {
    /// Bytes per hour.
    pub slope: f64,
    /// The lower end of the slope's 95% confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Cells during which it rose.
    pub window: usize,
    /// Cells until the limit is reached at this rate.
    pub rest: f64,
}

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unsure {
    /// Too little data. The counts are cells: those seen, and the minimum needed to detect growth and a steady state.
    Young {
        /// Cells with data.
        seen: usize,
        /// Cells until the shortest window has seen growth three times in a row.
        grows: usize,
        /// Cells until a window of a day is complete.
        steady: usize,
    },
    /// Fewer old-generation collections than a window needs.
    Collections {
        /// Collections in the longest available window.
        seen: u32,
        /// Collections that every window needs.
        needed: u32,
    },
    /// Every window has gaps.
    Gaps,
    /// Memory varies by this many bytes without a pattern.
    Moves {
        /// Between the lowest and the highest floor of the longest available window.
        bytes: f64,
    },
}

/// The judgment of one series at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The verdict in a word.
    pub verdict: Verdict,
    /// The growth; `None` unless the verdict is [`Verdict::Grows`].
    pub growth: Option<Growth>,
    /// The rise; `None` unless it is certain, whether or not it is growth.
    pub hint: Option<Hint>,
    /// The reason for [`Verdict::CannotTell`], and for a [`Verdict::Warming`] that only reflects a young JVM.
    pub unsure: Option<Unsure>,
}
