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

/// Growth that three judgements in a row saw, or that one sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Bytes an hour, of cells as they are in life, and the interval that holds it with 95 % confidence.
    pub slope: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Cells of the window that it was seen in.
    pub window: usize,
    /// When it meets the limit.
    pub projection: Projection,
}

/// A rise that is no alarm yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hint {
    /// Bytes an hour.
    pub slope: f64,
    /// Cells over which it rose.
    pub window: usize,
    /// Cells until the limit at this pace.
    pub rest: f64,
}

/// Why nothing can be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unsure {
    /// Less than a day was seen.
    Young,
    /// Too few collections of the old generation, of so many that a window needs.
    Collections {
        /// In the longest window there is.
        seen: u32,
        /// By any window.
        needed: u32,
    },
    /// There are gaps in what was seen, in every window.
    Gaps,
    /// It moves by so many bytes without a pattern.
    Moves {
        /// Between the least and the most floor of the longest window there is.
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
    /// The reason; absent unless the verdict is [`Verdict::CannotTell`].
    pub unsure: Option<Unsure>,
}
