//! The pieces a summary is made of, as values: whoever prints them decides how.

/// Everything to say, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Top to bottom.
    pub blocks: Vec<Block>,
}

/// A piece of a summary.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What does not hold, before everything else, a line each.
    Failing(Vec<String>),
    /// Begins a section.
    Heading(String),
    /// Labels with their text.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A picture.
    Bars(Bars),
    /// A paragraph.
    Text(String),
    /// What was seen and what to do next.
    Doubts(Vec<(String, String)>),
    /// Lines to copy as they stand.
    Literal {
        /// The place where the lines go.
        title: String,
        /// The lines.
        lines: Vec<String>,
    },
}

/// A table: the first column names the rows, the others hold numbers, the last ones perhaps words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The name of the table with the unit of its numbers.
    pub title: String,
    /// A cell above each column.
    pub head: Vec<String>,
    /// Cells; an absent number is `-`.
    pub rows: Vec<Vec<String>>,
    /// How many of the first columns hold words; the very first always does.
    pub lead: usize,
    /// How many of the last columns hold words.
    pub words: usize,
    /// Lines below.
    pub notes: Vec<String>,
}

impl Table {
    /// A table whose first column alone holds words, without notes.
    pub(in crate::report) fn new(
        title: impl Into<String>,
        head: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Self { title: title.into(), head, rows: rows.into_iter().collect(), ..Self::default() }
    }

    /// The table with words in so many of the first and so many of the last columns.
    pub(in crate::report) fn worded(self, lead: usize, words: usize) -> Self {
        Self { lead, words, ..self }
    }

    /// The table with these notes.
    pub(in crate::report) fn noted(self, notes: impl IntoIterator<Item = String>) -> Self {
        Self { notes: notes.into_iter().collect(), ..self }
    }

    /// Whether a column holds numbers: it stands behind those that lead and before those of words.
    pub(in crate::report) fn has_numbers(&self, column: usize) -> bool {
        (self.lead.max(1)..self.head.len().saturating_sub(self.words)).contains(&column)
    }
}

/// Bars of one scale, each divided into the same parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bars {
    /// The name of the picture with its unit.
    pub title: String,
    /// Top to bottom.
    pub bars: Vec<Bar>,
    /// For each part the letter that draws it and its words.
    pub legend: Vec<(char, String)>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bar {
    /// The name at the left of the bar.
    pub label: String,
    /// Sizes in bytes, as many as the legend has entries.
    pub parts: Vec<u64>,
}

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Every trial, also where trials are compared.
    pub each: bool,
    /// Every metric that was compared, not only those judged.
    pub details: bool,
}
