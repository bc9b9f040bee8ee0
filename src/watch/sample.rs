//! A sample of a JVM.

use super::column::{COLUMNS, Column, Unit};

/// Marks a column without a value.
pub(super) const UNSEEN: u32 = u32::MAX;

/// A JVM's values at one point in time, 32 bits per column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The JVM's age in milliseconds, independent of wall-clock changes and restarts of the watch.
    pub age_ms: u64,
    values: [u32; COLUMNS],
}

impl Sample {
    /// An empty sample at this age.
    pub fn at(age_ms: u64) -> Self {
        Self { age_ms, values: [UNSEEN; COLUMNS] }
    }

    pub(super) fn from_values(age_ms: u64, values: [u32; COLUMNS]) -> Self {
        Self { age_ms, values }
    }

    pub(super) fn values(&self) -> &[u32; COLUMNS] {
        &self.values
    }

    /// Sets a column, in bytes, counts, or milliseconds. Saturates at the maximum.
    pub fn set(&mut self, column: Column, seen: u64) {
        let kept = match column.unit() {
            Unit::Bytes => seen / KIB,
            Unit::Count | Unit::Total => seen,
            Unit::TotalMs => seen / 10,
            Unit::TotalMib => seen / (KIB * KIB),
        };
        self.values[column as usize] = u32::try_from(kept).unwrap_or(UNSEEN).min(UNSEEN - 1);
    }

    /// The value in bytes, counts, or milliseconds, if any.
    pub fn get(&self, column: Column) -> Option<u64> {
        spoken(column, self.values[column as usize])
    }
}

/// Converts a stored number to bytes, counts, or milliseconds.
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

/// The unreclaimable memory of the cgroup that limits the JVM, else of the JVM itself.
pub(super) fn unreclaimable(of: impl Fn(Column) -> Option<u64>) -> Option<u64> {
    let and = |column| of(column).unwrap_or(0);
    match of(Column::ChargeAnon) {
        Some(anon) => Some(anon + and(Column::ChargeKernel)),
        None => Some(of(Column::RssAnon)? + and(Column::RssShmem) + and(Column::Swap)),
    }
}
