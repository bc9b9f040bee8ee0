//! A page: its content as values. Builders (`summary`) make it from a document, printers (`terminal`, `html`,
//! `export::markdown`) write it. A number stays a quantity until a printer writes it.

use super::chart::Figure;
use super::table::Table;
use super::words::Standing;
use loadline_base::order::Order as _;

/// The whole report on a result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// Names the page.
    pub title: String,
    /// Top to bottom.
    pub sections: Vec<Section>,
}

/// A place of a page. Every page has its sections in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Topic {
    /// The answer to the question, and its evidence.
    #[default]
    Answer,
    /// The holders of memory.
    Memory,
    /// Findings.
    StandsOut,
    /// Memory over time, and trials one by one.
    Course,
    /// Requests and their times.
    Load,
    /// Everything that was measured.
    Details,
    /// Machine, configurations, the command that repeats it.
    Conditions,
    /// Reasons to distrust a number.
    Doubts,
}

/// How a page shows a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fold {
    /// As it is.
    #[default]
    Never,
    /// It can be folded away.
    Open,
    /// Only on demand.
    Closed,
}

/// Parts under a heading.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Its place on the page.
    pub topic: Topic,
    /// Names the section within a page of HTML; empty if nothing refers to it.
    pub id: String,
    /// The heading; empty if the section needs none.
    pub heading: String,
    /// Whether a terminal prints no heading, since the parts have titles of their own.
    pub titled: bool,
    /// How a page of HTML or Markdown shows it.
    pub fold: Fold,
    /// Top to bottom.
    pub parts: Vec<Part>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// Labels with their text.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// The same table in several orders, each with its word, the usual one first.
    Orders(Vec<(&'static str, Table)>),
    /// A picture of letters.
    Bars(Bars),
    /// A chart with its table, for pages that show pictures.
    Figure(Box<Figure>),
    /// Sentences that judge.
    Verdicts(Vec<Verdict>),
    /// Observations, each with the next step.
    Doubts(Vec<(String, String)>),
    /// Lines to copy unchanged.
    Literal(Literal),
    /// A section within.
    Section(Section),
}

/// Lines to copy unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Literal {
    /// The place where the lines go.
    pub title: String,
    /// The lines.
    pub lines: Vec<String>,
}

/// A sentence that judges.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The kind of judgement.
    pub standing: Standing,
    /// The verdict in a word or two.
    pub word: String,
    /// The subject of the sentence; empty if the text names it.
    pub about: String,
    /// The rest of the sentence.
    pub text: String,
}

/// Bars of one scale, each divided into the same parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bars {
    /// The name of the picture with its unit.
    pub title: String,
    /// Top to bottom.
    pub bars: Vec<Bar>,
    /// The letter that draws each part, and its words.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct Depth {
    /// Every trial, also where trials are compared.
    #[arg(long)]
    pub each: bool,
    /// Every metric that was compared, not only those judged.
    #[arg(long)]
    pub details: bool,
    /// The answer and what stands out, and nothing else.
    #[arg(long, conflicts_with_all = ["each", "details"])]
    pub brief: bool,
    /// The verdicts alone, without a heading.
    #[arg(skip)]
    pub line: bool,
    /// Pictures and whole lists, which a page of HTML has room for.
    #[arg(skip)]
    pub whole: bool,
}

impl Depth {
    /// The summary of a terminal; also for constants, which `Default` cannot make.
    pub const NONE: Self = Self { each: false, details: false, brief: false, line: false, whole: false };
}

impl Page {
    /// A page of these sections in the order of their topics, without empty sections.
    pub fn new(title: impl Into<String>, sections: impl IntoIterator<Item = Section>) -> Self {
        let mut sections: Vec<Section> = sections.into_iter().filter(|section| !section.parts.is_empty()).collect();
        sections.order_by_key(|section| section.topic);
        Self { title: title.into(), sections }
    }

    /// The requested part of the page: all of it, the answer, or its verdicts.
    pub(crate) fn within(mut self, depth: Depth) -> Self {
        if depth.line {
            self.sections.retain(|section| section.parts.iter().any(|part| matches!(part, Part::Verdicts(_))));
            self.sections.truncate(1);
            self.sections.iter_mut().for_each(|section| section.parts.retain(|part| matches!(part, Part::Verdicts(_))));
            self.title.clear();
        } else if depth.brief {
            self.sections.retain(|section| section.topic == Topic::Answer);
            // Tables follow an answer in words; without one they are the answer.
            if self.sections.first().is_some_and(|first| !first.has_tables()) {
                self.sections.retain(|section| !section.has_tables());
            }
        }
        self
    }

    /// Every verdict of the page.
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

    /// A section with a heading that every printer writes.
    pub fn new(topic: Topic, heading: impl Into<String>, parts: impl IntoIterator<Item = Part>) -> Self {
        Self { topic, heading: heading.into(), parts: parts.into_iter().collect(), ..Self::default() }
    }

    /// A section whose parts have titles of their own, so that a terminal needs no heading.
    pub(crate) fn titled(topic: Topic, heading: impl Into<String>, parts: impl IntoIterator<Item = Part>) -> Self {
        Self { titled: true, ..Self::new(topic, heading, parts) }
    }

    /// The heading as a page shows it. A heading of Loadline's own, which links may refer to, begins with a capital.
    pub(crate) fn caption(&self) -> String {
        let mut heading = self.heading.clone();
        if !self.id.is_empty() {
            heading.get_mut(..1).map(str::make_ascii_uppercase);
        }
        heading
    }

    /// The section under this name within a page of HTML.
    pub(crate) fn id(self, id: impl Into<String>) -> Self {
        Self { id: id.into(), ..self }
    }

    /// The section, shown like this.
    pub(crate) fn folded(self, fold: Fold) -> Self {
        Self { fold, ..self }
    }
}

impl Part {
    /// A section within a section.
    pub(crate) fn under(heading: impl Into<String>, parts: impl IntoIterator<Item = Self>) -> Self {
        Self::Section(Section::new(Topic::default(), heading, parts))
    }

    /// A table that a page folds away under its title.
    pub(crate) fn on_demand(table: Table) -> Self {
        let title = table.title.clone();
        Self::Section(Section::titled(Topic::default(), title, [Self::Table(table)]).folded(Fold::Closed))
    }

    /// Labels with their text, without labels that have no text.
    pub(crate) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let told = facts.into_iter().filter(|(_, text)| !text.is_empty());
        Self::Facts(told.map(|(label, text)| (label.to_owned(), text)).collect())
    }

    pub(crate) fn figure(figure: Figure) -> Self {
        Self::Figure(Box::new(figure))
    }

    /// The part, if it is not empty.
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

/// Labels with their text, while they are collected.
#[derive(Debug, Default)]
pub(crate) struct Facts(pub(crate) Vec<(String, String)>);

impl Facts {
    /// Adds a label, if there is a text for it.
    pub(crate) fn add(&mut self, label: &str, text: impl Into<Option<String>>) {
        let text: Option<String> = text.into();
        self.list(label, text);
    }

    /// Adds a line for each text; the first line has the label.
    pub(crate) fn list(&mut self, label: &str, texts: impl IntoIterator<Item = String>) {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        self.0.extend(labels.zip(texts).map(|(label, text)| (label.to_owned(), text)));
    }
}

impl Verdict {
    /// A sentence with its verdict in a word or two.
    pub(crate) fn new(standing: Standing, word: impl Into<String>, text: String) -> Self {
        Self { standing, word: word.into(), about: String::new(), text }
    }

    /// A sentence that judges nothing.
    pub(crate) fn told(text: impl Into<String>) -> Self {
        Self::new(Standing::Told, "", text.into())
    }

    /// A sentence about a failure.
    pub(crate) fn failing(text: String) -> Self {
        Self::new(Standing::Fail, "failed", text)
    }

    /// Sets the subject of the sentence.
    pub(crate) fn about(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// The whole sentence.
    pub(crate) fn sentence(&self) -> String {
        match self.about.is_empty() {
            true => self.text.clone(),
            false => format!("{}: {}", self.about, self.text),
        }
    }
}
