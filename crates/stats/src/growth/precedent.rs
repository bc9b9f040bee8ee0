//! An earlier life of the same service, and whether it ever rose as much.
//!
//! Within one life, a fill and a leak look alike for a long time. If an earlier life reached this age and never rose as
//! much, this rise is new. An equally large earlier rise says nothing: leaks and fills both repeat.

use super::Floors;
use super::floors::{WARM_UP, trailing_minima};
use super::ladder::RUNGS;

/// A rise counts as known if the earlier life rose by at least this share of it.
const KNOWN: f64 = 0.5;
/// Only windows that began at this share of the age or later count: a fill after startup is no precedent for a later
/// rise.
const AS_OLD: f64 = 0.2;
/// Ages by powers of two, in cells: up to 32,768 of them, or seven months.
const AGES: usize = 16;

/// An earlier life, by window width.
#[derive(Debug, Clone, PartialEq)]
pub struct Precedent {
    /// The age that the life reached, in cells.
    age: usize,
    rises: Vec<Rises>,
}

/// The largest rise over one width.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rises {
    width: usize,
    /// The largest rise in windows that began at an age or later.
    most: [f64; AGES],
}

/// The index of an age in `Rises::most`.
fn place(age: usize) -> usize {
    ((usize::BITS - age.leading_zeros()) as usize).min(AGES - 1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// The earlier life never rose this much, although it reached this age.
    Never,
    /// The earlier life rose this much too.
    Rose,
    /// The earlier life did not reach this age.
    TooYoung,
}

impl Precedent {
    /// Computes the precedent from the floors of an earlier life.
    pub fn of(floors: &Floors) -> Self {
        let count = floors.values.len();
        let rises = RUNGS.iter().map(|(size, many)| {
            let width = size * many;
            let minima = trailing_minima(floors.values, *size);
            let from = (WARM_UP + size).saturating_sub(floors.age);
            let mut most = [f64::NEG_INFINITY; AGES];
            for end in from + width..count {
                let (rise, place) = (minima[end] - minima[end - width], place(floors.age + end - width));
                if rise.is_finite() {
                    most[place] = most[place].max(rise);
                }
            }
            for place in (1..AGES).rev() {
                most[place - 1] = most[place - 1].max(most[place]);
            }
            Rises { width, most }
        });
        Self { age: floors.age + count, rises: rises.collect() }
    }

    /// Judges a rise over `width` cells at this age.
    pub(super) fn tells(&self, rise: f64, width: usize, age: usize) -> Told {
        let Some(rises) = self.rises.iter().find(|rises| rises.width == width) else { return Told::TooYoung };
        let most = rises.most[place((AS_OLD * age as f64) as usize)];
        match most < KNOWN * rise {
            true if self.age >= age => Told::Never,
            true => Told::TooYoung,
            false => Told::Rose,
        }
    }
}
