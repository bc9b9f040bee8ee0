//! A table whose cells stay text, quantities, or verdicts until they are printed.

use super::quantity::{Estimate, Quantity};
use super::words::{Standing, dash, word_of};
use serde::Serialize;
use std::fmt;

/// A table: the first column names the rows; the others contain numbers, and possibly words at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The title with its unit.
    pub title: String,
    /// The heading of each column.
    pub head: Vec<String>,
    /// Cells; a missing number is `-`.
    pub rows: Vec<Vec<Cell>>,
    /// The number of leading text columns, at least 1.
    pub lead: usize,
    /// The number of trailing text columns.
    pub words: usize,
    /// Lines below the table.
    pub notes: Vec<String>,
}

impl Table {
    /// A table with one text column and no notes.
    pub(crate) fn new<C: Into<Cell>>(
        title: impl Into<String>,
        head: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Vec<C>>,
    ) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        let rows = rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect();
        Self { title: title.into(), head, rows, ..Self::default() }
    }

    /// Sets the number of leading and trailing text columns.
    pub(crate) fn worded(self, lead: usize, words: usize) -> Self {
        Self { lead, words, ..self }
    }

    pub(crate) fn noted(self, notes: impl IntoIterator<Item = String>) -> Self {
        Self { notes: self.notes.into_iter().chain(notes).collect(), ..self }
    }

    /// The table unless it is empty.
    pub(crate) fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// Whether a column contains numbers.
    pub(crate) fn has_numbers(&self, column: usize) -> bool {
        (self.lead.max(1)..self.head.len().saturating_sub(self.words)).contains(&column)
    }
}

/// A table cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text, or a number whose unit is in the table's title.
    Text(String),
    /// A number with its unit.
    Quantity(Quantity),
    /// An interval; the previous cell has the estimate and the unit.
    Interval(Estimate),
    /// A verdict, which pages show with a marker and color.
    Verdict(Standing, String),
}

impl Cell {
    pub(crate) fn judged(verdict: impl Into<Standing> + Serialize + Copy) -> Self {
        Self::Verdict(verdict.into(), word_of(verdict))
    }

    pub(crate) fn estimate(estimate: Estimate) -> [Self; 2] {
        [estimate.centre.clone().into(), Self::Interval(estimate)]
    }

    /// A value with its unit; a dash if there is no value.
    pub(crate) fn known(quantity: Option<Quantity>) -> Self {
        quantity.map_or_else(|| Self::Text(dash()), Self::Quantity)
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Verdict(_, text) => f.write_str(text),
            Self::Quantity(quantity) => quantity.fmt(f),
            Self::Interval(estimate) => f.write_str(&estimate.interval()),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Quantity> for Cell {
    fn from(quantity: Quantity) -> Self {
        Self::Quantity(quantity)
    }
}

/// Tests compare cells with their printed text.
#[cfg(test)]
impl PartialEq<&str> for Cell {
    fn eq(&self, text: &&str) -> bool {
        self.to_string().as_str() == *text
    }
}
