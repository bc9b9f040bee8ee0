//! A chart as values: panels that share an x axis, and their items. `svg` renders it.

use super::scale::Scale;
use super::thin::{Point, WIDTH};
use crate::table::Table;
use crate::units::shortened;

/// Longest name next to a marker.
const BESIDE_CHARS: usize = 28;

/// A chart with a table of the same data.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub(crate) chart: Chart,
    pub(crate) table: Table,
}

/// Vertically stacked panels with a common x axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Chart {
    /// File name stem and ID prefix, of `a-z`, `0-9`, and `-`.
    pub(crate) name: String,
    /// The title: what the chart shows, in a few words.
    pub(crate) title: String,
    /// A one-sentence description for screen readers.
    pub(crate) description: String,
    /// Charts in the same group zoom together; empty for no zoom.
    pub(crate) group: String,
    /// The bottom axis; `None` if the panels are rows of another kind.
    pub(crate) x: Option<Axis>,
    /// From top to bottom.
    pub(crate) panels: Vec<Panel>,
    /// Labeled lines through all panels.
    pub(crate) guides: Vec<Guide>,
    /// Lightly shaded x ranges.
    pub(crate) bands: Vec<Band>,
    /// Markers with their meanings.
    pub(crate) legend: Vec<(Sign, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    /// The quantity and unit.
    pub(crate) title: String,
    /// Unit of values shown on hover, such as ` ms`.
    pub(crate) unit: &'static str,
    /// Values with labels, ascending.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis with round ticks.
    pub(crate) fn new(scale: Scale, title: &str, unit: &'static str, most: usize) -> Self {
        let ticks = scale.ticks(most);
        let ticks = ticks.iter().map(|tick| (*tick, super::scale::tick_text(*tick, &ticks))).collect();
        Self { scale, title: title.to_owned(), unit, ticks }
    }

    /// An axis of differences: positive numbers have a plus sign and this unit.
    pub(crate) fn signed(mut self, unit: &str) -> Self {
        for (tick, text) in &mut self.ticks {
            *text = format!("{}{text}{unit}", if *tick > 0.0 { "+" } else { "" });
        }
        self
    }

    /// A value's distance from the left, in [`WIDTH`] units.
    pub(crate) fn across(&self, value: f64) -> u32 {
        (self.scale.place(value) * f64::from(WIDTH)).round() as u32
    }

    /// A value's distance from the top of a panel with this height in pixels, in tenths of a pixel.
    pub(crate) fn down(&self, value: f64, height: u32) -> u32 {
        ((1.0 - self.scale.place(value)) * f64::from(height * 10)).round() as u32
    }
}

/// A plot with a y axis, or rows without one; the height is in pixels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panel {
    /// The title above the plot; empty if the chart's title suffices.
    pub(crate) title: String,
    /// The left axis.
    pub(crate) y: Option<Axis>,
    pub(crate) height: u32,
    /// Items in drawing order.
    pub(crate) items: Vec<Item>,
}

impl Panel {
    pub(crate) fn plot(title: impl Into<String>, y: Axis, height: u32, items: Vec<Item>) -> Self {
        Self { title: title.into(), y: Some(y), height, items }
    }

    /// Rows without a y axis.
    pub(crate) fn rows(height: u32, items: Vec<Item>) -> Self {
        Self { title: String::new(), y: None, height, items }
    }
}

/// A named position from the left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Guide {
    pub(crate) x: u32,
    pub(crate) label: String,
}

/// A named range, from the left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Band {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) label: String,
}

/// The name of a style class: one or two words of `chart.css`.
pub(crate) type Class = String;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sign {
    /// A line segment.
    Line(Class),
    Dot(Class),
    /// An area; hatched if the second value is true.
    Area(Class, bool),
    /// One of [`SHAPES`].
    Mark(usize, Class),
    Cross,
}

/// Markers that are distinguishable without color, each about 9 pixels wide.
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

/// The placement of text relative to its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// After it.
    Start,
    /// Before it.
    End,
    BehindSign,
    BeforeSign,
}

/// An item in a panel. `across` is from the left in [`WIDTH`] units, `down` from the top in tenths of a pixel, `class`
/// its style; `words` are shown on hover.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// A line through points sorted by x, with its name on hover.
    Line {
        points: Vec<Point>,
        class: Class,
        name: String,
    },
    /// A filled polygon.
    Fill {
        points: Vec<Point>,
        class: Class,
    },
    /// Vertical lines from the bottom of the panel to these points.
    Stems {
        points: Vec<Point>,
        class: Class,
        name: String,
    },
    /// Many small dots of the same kind.
    Dots {
        points: Vec<Point>,
        class: Class,
    },
    /// Horizontal segments of equal thickness: left end, and length in [`WIDTH`] units.
    Stretches {
        runs: Vec<(Point, u32)>,
        thick: u32,
        class: Class,
    },
    /// A rectangle, with a label inside if there is room.
    Area {
        across: (u32, u32),
        down: (u32, u32),
        class: Class,
        hatched: bool,
        words: String,
        label: String,
    },
    /// The marker with this index in [`SHAPES`].
    Mark {
        at: Point,
        shape: usize,
        class: Class,
        words: String,
    },
    Crosses(Vec<Point>),
    /// A horizontal line with caps at both ends.
    Interval {
        across: (u32, u32),
        y: u32,
        class: Class,
    },
    /// A vertical line.
    Rule {
        x: u32,
        down: (u32, u32),
        class: Class,
    },
    /// Text whose baseline starts or ends at a position.
    Words {
        at: Point,
        anchor: Anchor,
        text: String,
        class: Class,
    },
}

impl Item {
    pub(crate) fn line(points: &[Point], class: impl Into<Class>, name: impl Into<String>) -> Self {
        Self::Line { points: super::thin::line(points), class: class.into(), name: name.into() }
    }

    pub(crate) fn mark(at: Point, shape: usize, class: impl Into<Class>, words: String) -> Self {
        Self::Mark { at, shape, class: class.into(), words }
    }

    pub(crate) fn words(at: Point, anchor: Anchor, text: String, class: &str) -> Self {
        Self::Words { at, anchor, text, class: class.to_owned() }
    }

    /// A horizontal line across a plot, with its name above its end.
    pub(crate) fn bound(down: u32, name: String, words: String) -> [Self; 2] {
        let words = Self::words((WIDTH, down.saturating_sub(30)), Anchor::End, words, "faint");
        [Self::line(&[(0, down), (WIDTH, down)], "line bound", name), words]
    }

    /// A name next to a marker; `taken` contains the positions of earlier names. Moves the name down until it does not
    /// overlap.
    pub(crate) fn beside(at: Point, name: &str, class: &str, taken: &mut Vec<Point>) -> Self {
        let mut y = at.1 + 40;
        while taken.iter().any(|other| other.0.abs_diff(at.0) < WIDTH / 3 && other.1.abs_diff(y) < 130) {
            y += 130;
        }
        taken.push((at.0, y));
        let anchor = if at.0 > WIDTH * 6 / 10 { Anchor::BeforeSign } else { Anchor::BehindSign };
        Self::words((at.0, y), anchor, shortened(name, BESIDE_CHARS), class)
    }

    /// A segment of a bar at this height, in a palette style.
    pub(crate) fn part(across: (u32, u32), top: u32, (class, hatched): (Class, bool), words: String) -> Self {
        let (down, label) = ((top, top + 200), String::new());
        Self::Area { across, down, class: format!("part {class}"), hatched, words, label }
    }

    /// An area with a label inside; other items stay unchanged.
    pub(crate) fn labelled(mut self, text: &str) -> Self {
        if let Self::Area { label, .. } = &mut self {
            text.clone_into(label);
        }
        self
    }
}
