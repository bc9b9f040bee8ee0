//! A chart as values: panels that share an x axis, and the items in them. `svg` turns it into SVG.

use super::scale::Scale;
use super::thin::{Point, WIDTH};
use crate::table::Table;
use crate::units::shortened;

/// Longest name next to a sign.
const BESIDE_CHARS: usize = 28;

/// A chart with the table that says the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub(crate) chart: Chart,
    pub(crate) table: Table,
}

/// Panels one below the other that share their x axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Chart {
    /// Stem of a file's name, and the beginning of ids; of `a-z`, `0-9` and `-`.
    pub(crate) name: String,
    /// The title: what the chart shows, in a few words.
    pub(crate) title: String,
    /// The chart in a sentence, for those who do not see it.
    pub(crate) description: String,
    /// Charts of one group are zoomed together; empty if nothing is zoomed.
    pub(crate) group: String,
    /// The axis at the bottom; `None` if the panels are rows of another kind.
    pub(crate) x: Option<Axis>,
    /// Top to bottom.
    pub(crate) panels: Vec<Panel>,
    /// Labelled lines through all panels.
    pub(crate) guides: Vec<Guide>,
    /// Stretches of x, faintly shaded.
    pub(crate) bands: Vec<Band>,
    /// The signs with their meanings.
    pub(crate) legend: Vec<(Sign, String)>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    /// The quantity on the axis, with the unit.
    pub(crate) title: String,
    /// Unit of a number that is read off, such as ` ms`.
    pub(crate) unit: &'static str,
    /// Values with their text, ascending.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis with round ticks.
    pub(crate) fn new(scale: Scale, title: &str, unit: &'static str, most: usize) -> Self {
        let ticks = scale.ticks(most);
        let ticks = ticks.iter().map(|tick| (*tick, super::scale::tick_text(*tick, &ticks))).collect();
        Self { scale, title: title.to_owned(), unit, ticks }
    }

    /// The axis of differences: its numbers have a sign above 0, and this unit.
    pub(crate) fn signed(mut self, unit: &str) -> Self {
        for (tick, text) in &mut self.ticks {
            *text = format!("{}{text}{unit}", if *tick > 0.0 { "+" } else { "" });
        }
        self
    }

    /// A value's place from the left, in [`WIDTH`].
    pub(crate) fn across(&self, value: f64) -> u32 {
        (self.scale.place(value) * f64::from(WIDTH)).round() as u32
    }

    /// A value's place from the top of a panel of this height in pixels, in tenths of a pixel.
    pub(crate) fn down(&self, value: f64, height: u32) -> u32 {
        ((1.0 - self.scale.place(value)) * f64::from(height * 10)).round() as u32
    }
}

/// A plot with a y axis, or rows without one; its height is in pixels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panel {
    /// The title above the plot; empty if the chart's title is enough.
    pub(crate) title: String,
    /// The axis at the left.
    pub(crate) y: Option<Axis>,
    pub(crate) height: u32,
    /// Things in the order of drawing.
    pub(crate) items: Vec<Item>,
}

impl Panel {
    /// A plot with an axis at the left.
    pub(crate) fn plot(title: impl Into<String>, y: Axis, height: u32, items: Vec<Item>) -> Self {
        Self { title: title.into(), y: Some(y), height, items }
    }

    /// Rows without an axis of their own.
    pub(crate) fn rows(height: u32, items: Vec<Item>) -> Self {
        Self { title: String::new(), y: None, height, items }
    }
}

/// A moment with a name: its place from the left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Guide {
    pub(crate) x: u32,
    pub(crate) label: String,
}

/// A stretch with a name: both ends from the left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Band {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) label: String,
}

/// The name of a style class: a word of `chart.css`, or two.
pub(crate) type Class = String;

/// A sign with the class that colours it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sign {
    /// A stretch of line.
    Line(Class),
    /// A small dot.
    Dot(Class),
    /// An area; hatched if the second value is true.
    Area(Class, bool),
    /// One of [`SHAPES`].
    Mark(usize, Class),
    /// A cross.
    Cross,
}

/// Signs that are distinct without colour, each about 9 pixels wide around its place.
pub(crate) const SHAPES: [&str; 8] = [
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M-4-4h8v8h-8z",
    "M0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
    "M0-5.2l5 8.7h-10z",
    "M0 5.2l5-8.7h-10z",
    "M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    "M0-5l4.8 3.5l-1.8 5.6h-6l-1.8-5.6z",
    "M-5-2.5h10v5h-10z",
];

/// The position of a text relative to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// Behind it.
    Start,
    /// Before it.
    End,
    /// Behind a sign that is there.
    BehindSign,
    /// Before a sign that is there.
    BeforeSign,
}

/// A thing in a panel. `across` is from the left in [`WIDTH`], `down` from the top in tenths of a pixel, `class` its
/// style; `words` are shown when a pointer rests on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// A line through points in the order of x, with the name under which it is read off.
    Line { points: Vec<Point>, class: Class, name: String },
    /// An area within these points.
    Fill { points: Vec<Point>, class: Class },
    /// Upright lines from the bottom of the panel to these points.
    Stems { points: Vec<Point>, class: Class, name: String },
    /// Many small dots of one kind.
    Dots { points: Vec<Point>, class: Class },
    /// Level stretches of equal thickness: left end, and length in [`WIDTH`].
    Stretches { runs: Vec<(Point, u32)>, thick: u32, class: Class },
    /// An upright rectangle, with a label inside if there is room.
    Area { across: (u32, u32), down: (u32, u32), class: Class, hatched: bool, words: String, label: String },
    /// The sign of this index in [`SHAPES`].
    Mark { at: Point, shape: usize, class: Class, words: String },
    /// Crosses.
    Crosses(Vec<Point>),
    /// A level line with upright ends.
    Interval { across: (u32, u32), y: u32, class: Class },
    /// An upright line.
    Rule { x: u32, down: (u32, u32), class: Class },
    /// A text whose line of writing begins or ends at a place.
    Words { at: Point, anchor: Anchor, text: String, class: Class },
}

impl Item {
    /// A line, thinned to the visible points.
    pub(crate) fn line(points: &[Point], class: impl Into<Class>, name: impl Into<String>) -> Self {
        Self::Line { points: super::thin::line(points), class: class.into(), name: name.into() }
    }

    pub(crate) fn mark(at: Point, shape: usize, class: impl Into<Class>, words: String) -> Self {
        Self::Mark { at, shape, class: class.into(), words }
    }

    pub(crate) fn words(at: Point, anchor: Anchor, text: String, class: &str) -> Self {
        Self::Words { at, anchor, text, class: class.to_owned() }
    }

    /// A level line through a plot, with its name above its end.
    pub(crate) fn bound(down: u32, name: String, words: String) -> [Self; 2] {
        let words = Self::words((WIDTH, down.saturating_sub(30)), Anchor::End, words, "faint");
        [Self::line(&[(0, down), (WIDTH, down)], "line bound", name), words]
    }

    /// A name next to a sign; `taken` holds the places of earlier names. A name moves down until it touches no
    /// neighbour.
    pub(crate) fn beside(at: Point, name: &str, class: &str, taken: &mut Vec<Point>) -> Self {
        let mut y = at.1 + 40;
        while taken.iter().any(|other| other.0.abs_diff(at.0) < WIDTH / 3 && other.1.abs_diff(y) < 130) {
            y += 130;
        }
        taken.push((at.0, y));
        let anchor = if at.0 > WIDTH * 6 / 10 { Anchor::BeforeSign } else { Anchor::BehindSign };
        Self::words((at.0, y), anchor, shortened(name, BESIDE_CHARS), class)
    }

    /// A part of a bar that begins at this height, in a style of the palette.
    pub(crate) fn part(across: (u32, u32), top: u32, (class, hatched): (Class, bool), words: String) -> Self {
        let (down, label) = ((top, top + 200), String::new());
        Self::Area { across, down, class: format!("part {class}"), hatched, words, label }
    }

    /// The area with a label inside; any other item unchanged.
    pub(crate) fn labelled(mut self, text: &str) -> Self {
        if let Self::Area { label, .. } = &mut self {
            text.clone_into(label);
        }
        self
    }
}
