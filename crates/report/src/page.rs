//! A page as values. Builders (`summary`) create it from a document, printers (`terminal`, `html`, `export::markdown`)
//! write it. Numbers stay quantities until they are printed.

use super::chart::Figure;
use super::table::Table;
use super::words::Standing;
use loadline_base::order::Order as _;

/// The complete report on a result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The title.
    pub title: String,
    /// From top to bottom.
    pub sections: Vec<Section>,
}

/// The kind of a section, in page order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Topic {
    /// The answer and its evidence.
    #[default]
    Answer,
    /// Owners of memory.
    Memory,
    /// Findings.
    StandsOut,
    /// Memory over time, and individual trials.
    Course,
    /// Requests and response times.
    Load,
    /// All measurements.
    Details,
    /// Machine, configurations, and the command to repeat the result.
    Conditions,
    /// Reasons to distrust a number.
    Doubts,
}

/// How a page shows a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fold {
    /// Always expanded.
    #[default]
    Never,
    /// Initially expanded.
    Open,
    /// Initially collapsed.
    Closed,
}

/// Parts under a heading.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Its kind, which determines its position.
    pub topic: Topic,
    /// Anchor within an HTML page; empty if nothing links to it.
    pub id: String,
    /// The heading; may be empty.
    pub heading: String,
    /// Whether terminals omit the heading because the parts have their own titles.
    pub titled: bool,
    /// How HTML or Markdown shows it.
    pub fold: Fold,
    /// From top to bottom.
    pub parts: Vec<Part>,
}

/// A part of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// Labels with their text.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// The table in several orders, each named, default first.
    Orders(Vec<(&'static str, Table)>),
    /// A text bar chart.
    Bars(Bars),
    /// A chart with its table, for graphical pages.
    Figure(Box<Figure>),
    /// Sentences with verdicts.
    Verdicts(Vec<Verdict>),
    /// Observations with next steps.
    Doubts(Vec<(String, String)>),
    /// Lines to copy unchanged.
    Literal(Literal),
    /// A nested section.
    Section(Section),
}

/// Lines to copy unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Literal {
    /// Where the lines belong.
    pub title: String,
    /// The lines.
    pub lines: Vec<String>,
}

/// A sentence with a verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The kind of verdict.
    pub standing: Standing,
    /// The verdict in a word or two.
    pub word: String,
    /// The subject; empty if the text names it.
    pub about: String,
    /// The rest of the sentence.
    pub text: String,
}

/// Bars on one scale, divided into the same parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bars {
    /// The title with its unit.
    pub title: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
    /// The letter for each part, and its description.
    pub legend: Vec<(char, String)>,
}

/// A bar.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bar {
    /// The label at the left.
    pub label: String,
    /// Sizes in bytes, one per legend entry.
    pub parts: Vec<u64>,
}

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct Depth {
    /// Show every trial, even in a comparison.
    #[arg(long)]
    pub each: bool,
    /// Show every compared metric, not just the judged ones.
    #[arg(long)]
    pub details: bool,
    /// Print only the result and anything unusual.
    #[arg(long, conflicts_with_all = ["each", "details"])]
    pub brief: bool,
    /// The verdicts alone, without a heading.
    #[arg(skip)]
    pub line: bool,
    /// Pictures and complete lists, for which an HTML page has room.
    #[arg(skip)]
    pub whole: bool,
}

impl Depth {
    /// A terminal summary; a constant, unlike `Default`.
    pub const NONE: Self = Self { each: false, details: false, brief: false, line: false, whole: false };
}

impl Page {
    /// A page of these sections in topic order, without empty ones.
    pub fn new(title: impl Into<String>, sections: impl IntoIterator<Item = Section>) -> Self {
        let mut sections: Vec<Section> = sections.into_iter().filter(|section| !section.parts.is_empty()).collect();
        sections.order_by_key(|section| section.topic);
        Self { title: title.into(), sections }
    }

    /// The requested part of the page: everything, the answer, or its verdicts.
    pub(crate) fn within(mut self, depth: Depth) -> Self {
        if depth.line {
            self.sections.retain(|section| section.parts.iter().any(|part| matches!(part, Part::Verdicts(_))));
            self.sections.truncate(1);
            self.sections.iter_mut().for_each(|section| section.parts.retain(|part| matches!(part, Part::Verdicts(_))));
            self.title.clear();
        } else if depth.brief {
            self.sections.retain(|section| section.topic == Topic::Answer);
            // Tables supplement an answer in words; without one, they are the answer.
            if self.sections.first().is_some_and(|first| !first.has_tables()) {
                self.sections.retain(|section| !section.has_tables());
            }
        }
        self
    }

    pub(crate) fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.sections.iter().flat_map(|section| &section.parts).flat_map(|part| match part {
            Part::Verdicts(all) => all.as_slice(),
            _ => &[],
        })
    }
}

impl Section {
    fn has_tables(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Table(_) | Part::Orders(_) | Part::Literal(_)))
    }

    /// A section whose heading every printer writes.
    pub fn new(topic: Topic, heading: impl Into<String>, parts: impl IntoIterator<Item = Part>) -> Self {
        Self { topic, heading: heading.into(), parts: parts.into_iter().collect(), ..Self::default() }
    }

    /// A section whose parts have their own titles, so a terminal needs no heading.
    pub(crate) fn titled(topic: Topic, heading: impl Into<String>, parts: impl IntoIterator<Item = Part>) -> Self {
        Self { titled: true, ..Self::new(topic, heading, parts) }
    }

    /// The heading as shown. Loadline's own headings, which links may target, are capitalized.
    pub(crate) fn caption(&self) -> String {
        let mut heading = self.heading.clone();
        if !self.id.is_empty() {
            heading.get_mut(..1).map(str::make_ascii_uppercase);
        }
        heading
    }

    /// Sets the anchor within an HTML page.
    pub(crate) fn id(self, id: impl Into<String>) -> Self {
        Self { id: id.into(), ..self }
    }

    pub(crate) fn folded(self, fold: Fold) -> Self {
        Self { fold, ..self }
    }
}

impl Part {
    /// A nested section.
    pub(crate) fn under(heading: impl Into<String>, parts: impl IntoIterator<Item = Self>) -> Self {
        Self::Section(Section::new(Topic::default(), heading, parts))
    }

    /// A collapsible table with its title.
    pub(crate) fn on_demand(table: Table) -> Self {
        let title = table.title.clone();
        Self::Section(Section::titled(Topic::default(), title, [Self::Table(table)]).folded(Fold::Closed))
    }

    /// Labeled strings, without empty ones.
    pub(crate) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let told = facts.into_iter().filter(|(_, text)| !text.is_empty());
        Self::Facts(told.map(|(label, text)| (label.to_owned(), text)).collect())
    }

    pub(crate) fn figure(figure: Figure) -> Self {
        Self::Figure(Box::new(figure))
    }

    /// The part unless it is empty.
    pub(crate) fn filled(self) -> Option<Self> {
        let is_empty = match &self {
            Self::Facts(all) | Self::Doubts(all) => all.is_empty(),
            Self::Verdicts(all) => all.is_empty(),
            Self::Table(table) => table.rows.is_empty(),
            Self::Literal(of) => of.lines.is_empty(),
            Self::Section(within) => within.parts.is_empty(),
            Self::Text(_) | Self::Orders(_) | Self::Bars(_) | Self::Figure(_) => false,
        };
        (!is_empty).then_some(self)
    }
}

/// A collector of labeled strings.
#[derive(Debug, Default)]
pub(crate) struct Facts(pub(crate) Vec<(String, String)>);

impl Facts {
    /// Adds a label if there is text.
    pub(crate) fn add(&mut self, label: &str, text: impl Into<Option<String>>) {
        let text: Option<String> = text.into();
        self.list(label, text);
    }

    /// Adds a line per text; the first one has the label.
    pub(crate) fn list(&mut self, label: &str, texts: impl IntoIterator<Item = String>) {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        self.0.extend(labels.zip(texts).map(|(label, text)| (label.to_owned(), text)));
    }
}

impl Verdict {
    pub(crate) fn new(standing: Standing, word: impl Into<String>, text: String) -> Self {
        Self { standing, word: word.into(), about: String::new(), text }
    }

    /// A sentence without a verdict.
    pub(crate) fn told(text: impl Into<String>) -> Self {
        Self::new(Standing::Told, "", text.into())
    }

    /// A sentence about a failure.
    pub(crate) fn failing(text: String) -> Self {
        Self::new(Standing::Fail, "failed", text)
    }

    pub(crate) fn about(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    pub(crate) fn sentence(&self) -> String {
        match self.about.is_empty() {
            true => self.text.clone(),
            false => format!("{}: {}", self.about, self.text),
        }
    }
}
