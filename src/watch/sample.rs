//! One look at a JVM.

use super::column::{COLUMNS, Column, Unit};

/// The value of a column where nothing was seen.
pub(super) const UNSEEN: u32 = u32::MAX;

/// The values of a JVM at one moment, a number of 32 bits for each column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// How old the JVM was, in milliseconds; neither a clock that is set nor a restart of the watch changes that.
    pub age_ms: u64,
    values: [u32; COLUMNS],
}

impl Sample {
    /// Nothing seen yet at this age.
    pub fn at(age_ms: u64) -> Self {
        Self { age_ms, values: [UNSEEN; COLUMNS] }
    }

    /// From the numbers of a file.
    pub(super) fn from_values(age_ms: u64, values: [u32; COLUMNS]) -> Self {
        Self { age_ms, values }
    }

    pub(super) fn values(&self) -> &[u32; COLUMNS] {
        &self.values
    }

    /// Sets a column to the value seen: bytes, a count, milliseconds. A value too large for it stays at its most.
    pub fn set(&mut self, column: Column, seen: u64) {
        let kept = match column.unit() {
            Unit::Bytes => seen / KIB,
            Unit::Count | Unit::Total => seen,
            Unit::TotalMs => seen / 10,
            Unit::TotalMib => seen / (KIB * KIB),
        };
        self.values[column as usize] = u32::try_from(kept).unwrap_or(UNSEEN).min(UNSEEN - 1);
    }

    /// Returns the value seen, in bytes, counts or milliseconds; `None` where there was none.
    pub fn get(&self, column: Column) -> Option<u64> {
        spoken(column, self.values[column as usize])
    }
}

/// A number of a column as bytes, a count or milliseconds.
pub(super) fn spoken(column: Column, value: u32) -> Option<u64> {
    let value = u64::from((value != UNSEEN).then_some(value)?);
    Some(match column.unit() {
        Unit::Bytes => value * KIB,
        Unit::Count | Unit::Total => value,
        Unit::TotalMs => value * 10,
        Unit::TotalMib => value * KIB * KIB,
    })
}

const KIB: u64 = 1024;

/// Returns the memory that no reclaim takes back: of the cgroup that bounds the JVM, else of the JVM itself.
pub(super) fn unreclaimable(of: impl Fn(Column) -> Option<u64>) -> Option<u64> {
    let and = |column| of(column).unwrap_or(0);
    match of(Column::ChargeAnon) {
        Some(anon) => Some(anon + and(Column::ChargeKernel)),
        None => Some(of(Column::RssAnon)? + and(Column::RssShmem) + and(Column::Swap)),
    }
}
