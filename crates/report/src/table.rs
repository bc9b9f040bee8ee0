//! A table whose cells stay a text, a quantity or a verdict until a printer writes them.

use super::quantity::{Estimate, Quantity};
use super::words::{Standing, dash, word_of};
use serde::Serialize;
use std::fmt;

/// A table: the first column names the rows, the others hold numbers, the last ones perhaps words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The name of the table with the unit of its numbers.
    pub title: String,
    /// A cell above each column.
    pub head: Vec<String>,
    /// Cells; an absent number is `-`.
    pub rows: Vec<Vec<Cell>>,
    /// How many of the first columns hold words; the very first always does.
    pub lead: usize,
    /// How many of the last columns hold words.
    pub words: usize,
    /// Lines below.
    pub notes: Vec<String>,
}

impl Table {
    /// A table whose first column alone holds words, without notes.
    pub(crate) fn new<C: Into<Cell>>(
        title: impl Into<String>,
        head: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Vec<C>>,
    ) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        let rows = rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect();
        Self { title: title.into(), head, rows, ..Self::default() }
    }

    /// The table with words in the first `lead` and the last `words` columns.
    pub(crate) fn worded(self, lead: usize, words: usize) -> Self {
        Self { lead, words, ..self }
    }

    /// The table with these notes.
    pub(crate) fn noted(self, notes: impl IntoIterator<Item = String>) -> Self {
        Self { notes: notes.into_iter().collect(), ..self }
    }

    /// The table, if it has any row.
    pub(crate) fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// Whether a column holds numbers: it comes after the leading words and before the trailing ones.
    pub(crate) fn has_numbers(&self, column: usize) -> bool {
        (self.lead.max(1)..self.head.len().saturating_sub(self.words)).contains(&column)
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Words, or a number whose unit is in the title of the table.
    Text(String),
    /// A number with its unit.
    Quantity(Quantity),
    /// The ends of an interval; the cell before it has the estimate and the unit.
    Interval(Estimate),
    /// A verdict, which a page gives a sign and a colour.
    Verdict(Standing, String),
}

impl Cell {
    /// A verdict in its word.
    pub(crate) fn judged(verdict: impl Into<Standing> + Serialize + Copy) -> Self {
        Self::Verdict(verdict.into(), word_of(verdict))
    }

    /// An estimate, and its interval for the cell behind it.
    pub(crate) fn estimate(estimate: Estimate) -> [Self; 2] {
        [estimate.centre.clone().into(), Self::Interval(estimate)]
    }

    /// A metric with its unit; a dash without a value.
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
