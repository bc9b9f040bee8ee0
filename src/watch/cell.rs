//! A time span summarized by the minimum, mean, and maximum of each column.

use super::column::{COLUMNS, Column};
use super::sample::{Sample, UNSEEN, spoken};

/// The minimum, mean, and maximum per column over a time span.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The index of the span, counted from the JVM's start.
    pub number: u64,
    /// Samples in it.
    pub samples: u32,
    least: [u32; COLUMNS],
    most: [u32; COLUMNS],
    mean: [u32; COLUMNS],
}

#[derive(Debug, Clone)]
pub(super) struct Filling {
    cell: Cell,
    sums: [u64; COLUMNS],
    seen: [u32; COLUMNS],
}

impl Filling {
    pub(super) fn new(number: u64) -> Self {
        let unseen = *Sample::at(0).values();
        let cell = Cell { number, samples: 0, least: unseen, most: unseen, mean: unseen };
        Self { cell, sums: [0; COLUMNS], seen: [0; COLUMNS] }
    }

    /// Adds a sample to the cell with this number; returns the previous cell if a new one begins.
    pub(super) fn go_on(under_way: &mut Option<Self>, number: u64, sample: &Sample) -> Option<Cell> {
        let done = under_way.take_if(|filling| filling.cell.number != number);
        under_way.get_or_insert_with(|| Self::new(number)).add(sample);
        done.map(|filling| filling.cell)
    }

    pub(super) fn add(&mut self, sample: &Sample) {
        self.cell.samples = self.cell.samples.saturating_add(1);
        for (at, value) in sample.values().iter().enumerate().filter(|(_, value)| **value != UNSEEN) {
            let Cell { least, most, mean, .. } = &mut self.cell;
            least[at] = least[at].min(*value);
            most[at] = if most[at] == UNSEEN { *value } else { most[at].max(*value) };
            self.sums[at] += u64::from(*value);
            self.seen[at] += 1;
            mean[at] = (self.sums[at] / u64::from(self.seen[at])) as u32;
        }
    }

    pub(super) fn cell(&self) -> &Cell {
        &self.cell
    }
}

impl Cell {
    /// A column's minimum, converted like [`Sample::get`].
    pub fn least(&self, column: Column) -> Option<u64> {
        spoken(column, self.least[column as usize])
    }

    /// A column's maximum, converted likewise.
    pub fn most(&self, column: Column) -> Option<u64> {
        spoken(column, self.most[column as usize])
    }

    /// The sample of a cell with only one; otherwise, the mean.
    pub(super) fn sample(&self) -> Sample {
        Sample::from_values(0, self.mean)
    }

    /// The numbers in file order: minimum, mean, maximum.
    pub(super) fn parts(&self) -> [&[u32; COLUMNS]; 3] {
        [&self.least, &self.mean, &self.most]
    }

    pub(super) fn of_parts(number: u64, samples: u32, [least, mean, most]: [[u32; COLUMNS]; 3]) -> Self {
        Self { number, samples, least, most, mean }
    }
}
