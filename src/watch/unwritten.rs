//! Cells and extremes that the disk has not accepted yet, up to a limit.

use super::cell::Cell;
use super::column::Column;
use super::sample::Sample;
use std::collections::{BTreeMap, VecDeque};

/// The maximum per tier: ten minutes of samples, an hour of minutes, a day of ten-minute cells; 80 KB per JVM.
const MOST: [usize; 3] = [60, 60, 144];

/// Cells and extremes that are not in the file.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    cells: [VecDeque<Cell>; 3],
    extremes: BTreeMap<Column, Sample>,
    /// Samples without any record.
    pub(super) lost: u64,
}

impl Unwritten {
    /// Adds a cell to a tier; drops the oldest if there are too many.
    pub(super) fn push(&mut self, tier: usize, cell: Cell) {
        if self.cells[tier].len() >= MOST[tier] {
            self.cells[tier].pop_front();
            self.lost += u64::from(tier == 0);
        }
        self.cells[tier].push_back(cell);
    }

    /// Adds the sample at a column's maximum so far.
    pub(super) fn push_extreme(&mut self, column: Column, sample: &Sample) {
        self.extremes.insert(column, *sample);
    }

    /// A tier's cells, oldest first.
    pub(super) fn cells(&self, tier: usize) -> impl Iterator<Item = &Cell> {
        self.cells[tier].iter()
    }

    /// Samples at their columns' maxima.
    pub(super) fn extremes(&self) -> impl Iterator<Item = (Column, &Sample)> {
        self.extremes.iter().map(|(column, sample)| (*column, sample))
    }

    /// Writes all data, oldest first, until a write fails; the rest stays queued. Errors: the first failure.
    pub(super) fn write<E>(
        &mut self,
        mut cell: impl FnMut(usize, &Cell) -> Result<(), E>,
        mut extreme: impl FnMut(Column, &Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        for (tier, cells) in self.cells.iter_mut().enumerate() {
            while let Some(first) = cells.front() {
                cell(tier, first)?;
                cells.pop_front();
            }
        }
        while let Some((column, sample)) = self.extremes.first_key_value() {
            extreme(*column, sample)?;
            self.extremes.pop_first();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::Filling;
    use super::*;

    fn cell(number: u64) -> Cell {
        let mut filling = Filling::new(number);
        filling.add(&Sample::at(0));
        filling.cell().clone()
    }

    #[test]
    fn unwritten_data_is_limited_and_kept_in_order() {
        let mut unwritten = Unwritten::default();
        (0..100).for_each(|number| unwritten.push(0, cell(number)));
        unwritten.push(2, cell(1));
        unwritten.push_extreme(Column::Swap, &Sample::at(7));
        assert_eq!((unwritten.lost, unwritten.cells(0).count()), (40, MOST[0]));
        // The disk accepts five writes, then fails.
        let mut written = Vec::new();
        let full = |written: &Vec<(usize, u64)>| if written.len() < 5 { Ok(()) } else { Err("full") };
        let cells = |tier: usize, cell: &Cell| full(&written).map(|()| written.push((tier, cell.number)));
        assert_eq!(unwritten.write(cells, |_, _| Err("full")), Err("full"));
        assert_eq!(written, (40..45).map(|number| (0, number)).collect::<Vec<_>>());
        let mut rest = Vec::new();
        let cells = |tier: usize, cell: &Cell| {
            rest.push((tier, cell.number));
            Ok(())
        };
        assert_eq!(
            unwritten.write(cells, |column, _| if column == Column::Swap { Err("full") } else { Ok(()) }),
            Err("full")
        );
        assert_eq!((rest.len(), rest[0], rest[55]), (56, (0, 45), (2, 1)));
        assert_eq!(unwritten.extremes().count(), 1, "the extreme value is still unwritten");
        unwritten.write(|_, _| Err("none is left"), |_, _| Ok(())).unwrap();
        assert_eq!((unwritten.extremes().count(), unwritten.lost), (0, 40));
    }
}
