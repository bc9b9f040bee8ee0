//! Renders charts as SVG. Fluid charts for the page keep the size of text and strokes, and zoom by moving inner
//! viewports. Fixed charts are separate files.

use super::model::{Anchor, Axis, Chart, Guide, Item, Panel, SHAPES, Sign};
use super::thin::{Point, WIDTH};
use crate::markup::{Attribute, Markup};
use crate::units::{shortened, trimmed};
use crate::width::width;
use std::fmt::{Display, Write};

/// Room for y axis labels; the page's style sheet has the same value.
const LEFT: u32 = 58;
/// Left margin of rows, for half a label.
const LEFT_ROWS: u32 = 12;
/// Room for half of the x axis's last label.
const RIGHT: u32 = 18;
/// Line height of small text.
const LINE: u32 = 14;
/// Gap between panels.
const GAP: u32 = 10;
/// Width of a small character in the widest available font, so that text does not overlap.
const CHARACTER: f64 = 7.3;
/// The narrowest plot with nonoverlapping labels: a phone.
const NARROWEST: f64 = 300.0;
/// Distance from the center of a marker to its text.
const BESIDE_SIGN: i32 = 9;
const LABEL_ROWS: usize = 4;
/// Longest name of a guide, band, or legend entry.
const NAME_CHARS: usize = 48;
/// Longest title or description.
const TEXT_CHARS: usize = 400;
/// Width of a fixed chart.
pub(crate) const FIXED_WIDTH: u32 = 960;

/// How to write widths.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Frame {
    /// As shares of a width that depends on the reader's window.
    Fluid,
    /// In pixels, for a plot of this width.
    Fixed(f64),
}

impl Frame {
    fn x(self, x: u32) -> String {
        let share = f64::from(x) / f64::from(WIDTH);
        match self {
            Self::Fluid => format!("{}%", short(share * 100.0)),
            Self::Fixed(width) => short(share * width),
        }
    }

    fn path(self, points: &[Point]) -> String {
        match self {
            Self::Fluid => relative(points),
            Self::Fixed(_) => {
                let signs = std::iter::once('M').chain(std::iter::repeat('L'));
                signs.zip(points).map(|(sign, (x, y))| format!("{sign}{} {}", self.x(*x), tenths(*y))).collect()
            }
        }
    }

    /// Strokes from each point with this extent: horizontally in [`WIDTH`] units, vertically in tenths of a pixel.
    fn strokes(self, strokes: impl Iterator<Item = (Point, (u32, i64))>) -> String {
        let mut d = String::new();
        let (mut x0, mut y0) = (0i64, 0i64);
        for ((x, y), (across, down)) in strokes {
            match self {
                Self::Fluid => {
                    let (dx, dy) = (i64::from(x) - x0, i64::from(y) - y0);
                    let _ = write!(d, "m{dx}{}{dy}", if dy < 0 { "" } else { " " });
                    let _ = if down == 0 { write!(d, "h{across}") } else { write!(d, "v{down}") };
                    (x0, y0) = (i64::from(x + across), i64::from(y) + down);
                }
                Self::Fixed(_) => {
                    let stroke = match (across, down) {
                        // Some renderers omit a stroke of length 0.
                        (0, 0) => "h0.01".to_owned(),
                        (_, 0) => format!("h{}", self.x(across)),
                        _ => format!("v{}", short(down as f64 / 10.0)),
                    };
                    let _ = write!(d, "M{} {}{stroke}", self.x(x), tenths(y));
                }
            }
        }
        // A path begins with an absolute move.
        if let Some(first) = d.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        d
    }
}

/// A path in whole numbers, each point relative to the previous one.
fn relative(points: &[Point]) -> String {
    let mut d = String::with_capacity(points.len() * 5);
    let mut before: Option<Point> = None;
    for (x, y) in points {
        match before {
            None => {
                let _ = write!(d, "M{x} {y}l");
            }
            Some((x0, y0)) => {
                let (dx, dy) = (i64::from(*x) - i64::from(x0), i64::from(*y) - i64::from(y0));
                let separator = if dx < 0 || d.ends_with('l') { "" } else { " " };
                let _ = write!(d, "{separator}{dx}{}{dy}", if dy < 0 { "" } else { " " });
            }
        }
        before = Some((*x, *y));
    }
    if points.len() == 1 {
        d.push_str("0 0");
    }
    d
}

/// A number with at most two decimals.
fn short(value: f64) -> String {
    trimmed(value, 2)
}

fn tenths(y: u32) -> String {
    short(f64::from(y) / 10.0)
}

/// A position or width in a phone's plot, in pixels.
fn on_a_phone(x: u32) -> f64 {
    f64::from(x) / f64::from(WIDTH) * NARROWEST
}

/// Estimated width of small text, in pixels.
fn text_width(text: &str) -> f64 {
    width(text) as f64 * CHARACTER
}

/// Positions of a chart's parts, in pixels from its top.
struct ChartLayout {
    left: u32,
    /// Top edge of each panel.
    tops: Vec<u32>,
    /// Row of each guide's label; `None` if there is no room.
    rows: Vec<Option<usize>>,
    /// Top edge of the guides' labels.
    labels: u32,
    /// Bottom edge of the last panel.
    bottom: u32,
    height: u32,
}

impl ChartLayout {
    fn new(chart: &Chart, top: u32) -> Self {
        let rows = label_rows(chart);
        let used = rows.iter().flatten().max().map_or(0, |most| *most as u32 + 1);
        let bands = if chart.bands.is_empty() { 0 } else { LINE + 2 };
        let mut y = top + used * LINE + bands;
        let mut tops = Vec::new();
        for panel in &chart.panels {
            y += if panel.title.is_empty() { 4 } else { LINE + 4 };
            tops.push(y);
            y += panel.height + GAP;
        }
        let bottom = y - GAP;
        let below = match &chart.x {
            Some(axis) if axis.title.is_empty() => 22,
            Some(_) => 40,
            None => 6,
        };
        let left = if chart.panels.iter().any(|panel| panel.y.is_some()) { LEFT } else { LEFT_ROWS };
        Self { left, tops, rows, labels: top, bottom, height: bottom + below }
    }

    fn top(&self) -> u32 {
        self.tops.first().copied().unwrap_or(0)
    }
}

/// A row for each guide's label, without overlaps even on a phone.
fn label_rows(chart: &Chart) -> Vec<Option<usize>> {
    let mut ends = [f64::NEG_INFINITY; LABEL_ROWS];
    let place = |guide: &Guide| {
        let at = on_a_phone(guide.x);
        let width = text_width(&shortened(&guide.label, NAME_CHARS)) + 8.0;
        // A label follows its line, or precedes it near the right end.
        let (from, to) = if guide_ends(guide.x) { (at - width, at) } else { (at, at + width) };
        let row = ends.iter().position(|end| *end <= from)?;
        ends[row] = to;
        Some(row)
    };
    chart.guides.iter().map(place).collect()
}

/// Whether each axis label fits on a phone after the previous ones. The last label takes precedence over its neighbor.
fn ticks_that_fit(axis: &Axis) -> Vec<bool> {
    let reach = |(tick, text): &(f64, String)| {
        let (at, half) = (on_a_phone(axis.across(*tick)), text_width(text) / 2.0);
        (at - half, at + half)
    };
    let last = axis.ticks.last().map_or(f64::INFINITY, |tick| reach(tick).0);
    let mut end = f64::NEG_INFINITY;
    let fits = |(index, tick)| {
        let (from, to) = reach(tick);
        let fits = from > end && (to < last || index + 1 == axis.ticks.len());
        end = if fits { to } else { end };
        fits
    };
    axis.ticks.iter().enumerate().map(fits).collect()
}

fn guide_ends(x: u32) -> bool {
    x > WIDTH * 7 / 10
}

/// A chart for the page. Its plots take the full width, and the style sheet leaves room for axis labels. Contains the
/// data that the script needs for zooming and hovering.
pub(crate) fn fluid(chart: &Chart) -> Markup {
    let layout = ChartLayout::new(chart, 0);
    let mut out = Markup::new();
    let id = format!("{}-d", chart.name);
    let title = shortened(&chart.title, TEXT_CHARS);
    let x = chart.x.as_ref().filter(|_| !chart.group.is_empty()).map(data_of);
    let mut attributes: Vec<Attribute<'_>> = vec![
        ("class", if layout.left == LEFT { &"chart" } else { &"chart rows" }),
        ("width", &"90%"),
        ("height", &layout.height),
        ("overflow", &"visible"),
        ("role", &"img"),
        ("aria-label", &title),
        ("aria-describedby", &id),
        ("data-top", &layout.labels),
    ];
    // Only charts that respond to keys are in the page's tab order.
    if let Some(x) = &x {
        attributes.extend([("tabindex", &"0" as &dyn Display), ("data-group", &chart.group), ("data-x", x)]);
    }
    out.element("svg", &attributes, |out| {
        out.words("desc", &[("id", &id)], shortened(&chart.description, TEXT_CHARS));
        parts(out, chart, &layout, Frame::Fluid);
    });
    out
}

/// Range, kind, and unit of an axis for the script.
fn data_of(axis: &Axis) -> String {
    format!("{} {} {:?} {}", axis.scale.low, axis.scale.high, axis.scale.kind, axis.unit.trim())
}

/// A chart as a separate file: includes title and legend, with the light theme's colors inlined.
pub(crate) fn fixed(chart: &Chart, style: &str) -> String {
    let keys = legend_places(&chart.legend);
    let head = 40 + keys.last().map_or(0, |(_, y)| y + 20);
    let layout = ChartLayout::new(chart, head);
    let plot = FIXED_WIDTH - layout.left - RIGHT;
    let height = layout.height + 8;
    let mut out = Markup::new();
    let view = format!("0 0 {FIXED_WIDTH} {height}");
    let attributes: [Attribute<'_>; 7] = [
        ("xmlns", &"http://www.w3.org/2000/svg"),
        ("width", &FIXED_WIDTH),
        ("height", &height),
        ("viewBox", &view),
        ("role", &"img"),
        ("aria-label", &shortened(&chart.title, TEXT_CHARS)),
        ("class", &"chart"),
    ];
    out.element("svg", &attributes, |out| {
        out.line().words("title", &[], shortened(&chart.title, TEXT_CHARS)).line();
        out.words("desc", &[], shortened(&chart.description, TEXT_CHARS)).line();
        out.words("style", &[], style).line();
        out.append(&definitions()).line();
        out.empty("rect", &[("width", &"100%"), ("height", &"100%"), ("class", &"paper")]).line();
        out.words("text", &[("x", &layout.left), ("y", &26), ("class", &"head")], shortened(&chart.title, 110));
        for ((sign, words), (x, y)) in chart.legend.iter().zip(&keys) {
            let (x, y) = (layout.left + x, 46 + y);
            draw_sign(out, sign, x, y);
            out.words("text", &[("x", &(x + 24)), ("y", &(y + 4))], shortened(words, NAME_CHARS)).line();
        }
        parts(out, chart, &layout, Frame::Fixed(f64::from(plot)));
    });
    let mut text = out.as_str().to_owned();
    text.push('\n');
    text
}

/// Positions of legend entries in rows, from the upper left corner.
fn legend_places(legend: &[(Sign, String)]) -> Vec<(u32, u32)> {
    let (mut x, mut y) = (0, 0);
    let mut places = Vec::new();
    for (_, words) in legend {
        let width = 40 + text_width(&shortened(words, NAME_CHARS)) as u32;
        if x > 0 && x + width > FIXED_WIDTH - LEFT - RIGHT {
            (x, y) = (0, y + 18);
        }
        places.push((x, y));
        x += width;
    }
    places
}

/// Shapes and hatching, defined once per document.
pub(crate) fn definitions() -> Markup {
    let mut out = Markup::new();
    out.element("defs", &[], |out| {
        for (index, shape) in SHAPES.iter().enumerate() {
            out.empty("path", &[("id", &format!("m{index}")), ("d", shape)]);
        }
        out.empty("path", &[("id", &"cross"), ("d", &"M-3.5-3.5l7 7m0-7l-7 7"), ("class", &"cross")]);
        let pattern: [Attribute<'_>; 5] = [
            ("id", &"hatch"),
            ("width", &"5"),
            ("height", &"5"),
            ("patternUnits", &"userSpaceOnUse"),
            ("patternTransform", &"rotate(45)"),
        ];
        out.element("pattern", &pattern, |out| {
            out.empty("path", &[("d", &"M1 0v5"), ("class", &"hatching")]);
        });
    });
    out
}

/// A marker, 18 pixels wide, whose left edge is at `x`.
pub(crate) fn draw_sign(out: &mut Markup, sign: &Sign, x: u32, y: u32) {
    let (middle, end) = (x + 9, x + 18);
    match sign {
        // With round caps, a stroke of length 0 is a dot.
        Sign::Dot(class) => {
            out.empty("path", &[("d", &format!("M{middle} {y}h0.01")), ("class", class)]);
        }
        Sign::Line(class) => {
            out.empty("path", &[("d", &format!("M{x} {y}H{end}")), ("class", class)]);
        }
        Sign::Area(class, hatched) => {
            let place: [Attribute<'_>; 4] =
                [("x", &(x + 2)), ("y", &(y.saturating_sub(6))), ("width", &14), ("height", &12)];
            for class in layers(class, *hatched) {
                out.empty("rect", &[&place[..], &[("class", &class)]].concat());
            }
        }
        Sign::Mark(shape, class) => {
            out.empty("use", &[("href", &reference(*shape)), ("x", &middle), ("y", &y), ("class", class)]);
        }
        Sign::Cross => {
            out.empty("use", &[("href", &"#cross"), ("x", &middle), ("y", &y)]);
        }
    }
}

/// The classes of an area's layers.
fn layers(class: &str, hatched: bool) -> impl Iterator<Item = &str> {
    std::iter::once(class).chain(hatched.then_some("hatch"))
}

/// A reference to one of [`SHAPES`].
fn reference(shape: usize) -> String {
    format!("#m{}", shape % SHAPES.len())
}

/// The text shown on hover.
fn hover(out: &mut Markup, words: &str) {
    if !words.is_empty() {
        out.words("title", &[], shortened(words, TEXT_CHARS));
    }
}

fn parts(out: &mut Markup, chart: &Chart, layout: &ChartLayout, frame: Frame) {
    let left = if frame == Frame::Fluid { 0 } else { layout.left };
    // Guides and bands are behind all panels, in their own plot.
    let plot = |out: &mut Markup, y: u32, height: u32, data: Option<String>, inside: &dyn Fn(&mut Markup)| {
        viewport(out, frame, (left, y, height), data, inside);
    };
    plot(out, 0, layout.bottom, None, &|out| backdrop(out, chart, layout, frame));
    for (panel, top) in chart.panels.iter().zip(&layout.tops) {
        if !panel.title.is_empty() {
            let title = shortened(&panel.title, 100);
            out.words("text", &[("x", &left), ("y", &(top - 6)), ("class", &"title")], title);
        }
        if let Some(axis) = &panel.y {
            for (tick, text) in &axis.ticks {
                let y = f64::from(*top) + f64::from(axis.down(*tick, panel.height)) / 10.0;
                let place: [Attribute<'_>; 3] =
                    [("x", &(i64::from(left) - 7)), ("y", &short(y + 4.0)), ("class", &"y")];
                out.words("text", &place, text);
            }
        }
        let data = panel.y.as_ref().map(data_of);
        plot(out, *top, panel.height, data, &|out| items(out, panel, frame));
        out.line();
    }
    if let Some(axis) = &chart.x {
        plot(out, layout.bottom, 40, None, &|out| {
            for ((tick, text), fits) in axis.ticks.iter().zip(ticks_that_fit(axis)) {
                let x = frame.x(axis.across(*tick));
                let class = if fits { "x tick" } else { "x tick wide" };
                out.words("text", &[("x", &x), ("y", &18), ("class", &class)], text);
            }
        });
        let x = match frame {
            Frame::Fluid => "100%".to_owned(),
            Frame::Fixed(width) => short(f64::from(left) + width),
        };
        let place: [Attribute<'_>; 3] = [("x", &x), ("y", &(layout.bottom + 36)), ("class", &"y title")];
        out.words("text", &place, shortened(&axis.title, 100));
    }
}

/// A plot's viewport: `at` gives its left edge, top edge, and height.
fn viewport(out: &mut Markup, frame: Frame, at: (u32, u32, u32), data: Option<String>, inside: &dyn Fn(&mut Markup)) {
    let (left, top, height) = at;
    if let Frame::Fixed(_) = frame {
        out.element("g", &[("transform", &format!("translate({left} {top})"))], inside);
        return;
    }
    let mut attributes: Vec<Attribute<'_>> = vec![
        ("class", &"plot"),
        ("x", &left),
        ("y", &top),
        ("width", &"100%"),
        ("height", &height),
        ("overflow", &"visible"),
    ];
    if let Some(data) = &data {
        attributes.push(("data-y", data));
    }
    out.element("svg", &attributes, |out| {
        let place: [Attribute<'_>; 4] =
            [("class", &"zoom"), ("width", &"100%"), ("height", &height), ("overflow", &"visible")];
        out.element("svg", &place, inside);
    });
}

/// Bands, grid, and guides with labels; `y` is relative to the chart's top.
fn backdrop(out: &mut Markup, chart: &Chart, layout: &ChartLayout, frame: Frame) {
    for (index, band) in chart.bands.iter().enumerate() {
        let (from, width) = (frame.x(band.from), frame.x(band.to.saturating_sub(band.from)));
        let y = layout.top().saturating_sub(LINE * 2 + 5);
        let height = layout.bottom - y;
        let class = if index % 2 == 0 { "band" } else { "band odd" };
        let place: [Attribute<'_>; 5] =
            [("x", &from), ("y", &y), ("width", &width), ("height", &height), ("class", &class)];
        out.element("rect", &place, |out| {
            out.words("title", &[], shortened(&band.label, TEXT_CHARS));
        });
        let label = shortened(&band.label, NAME_CHARS);
        if text_width(&label) < on_a_phone(band.to.saturating_sub(band.from)) {
            let middle = frame.x((band.from + band.to) / 2);
            out.words("text", &[("x", &middle), ("y", &(y + 11)), ("class", &"x faint")], label);
        }
    }
    if let Some(axis) = &chart.x {
        for (panel, top) in chart.panels.iter().zip(&layout.tops) {
            for (tick, _) in &axis.ticks {
                let x = frame.x(axis.across(*tick));
                stroke(out, (&x, &x), (top, &(top + panel.height)), "grid tick");
            }
        }
    }
    for (guide, row) in chart.guides.iter().zip(&layout.rows) {
        let x = frame.x(guide.x);
        let y = layout.labels + LINE * row.unwrap_or(0) as u32;
        stroke(out, (&x, &x), (&(y + 2), &layout.bottom), "guide");
        if row.is_some() {
            let (class, shift) = if guide_ends(guide.x) { ("y mark", -4) } else { ("mark", 4) };
            let place: [Attribute<'_>; 4] = [("x", &x), ("y", &(y + 11)), ("dx", &shift), ("class", &class)];
            out.words("text", &place, shortened(&guide.label, NAME_CHARS));
        }
    }
}

/// A straight line between two points.
fn stroke(out: &mut Markup, x: (&String, &String), y: (&dyn Display, &dyn Display), class: &str) {
    out.empty("line", &[("x1", x.0), ("x2", x.1), ("y1", y.0), ("y2", y.1), ("class", &class)]);
}

fn items(out: &mut Markup, panel: &Panel, frame: Frame) {
    if let Some(axis) = &panel.y {
        for (tick, _) in &axis.ticks {
            let y = tenths(axis.down(*tick, panel.height));
            stroke(out, (&"0".to_owned(), &frame.x(WIDTH)), (&y, &y), "grid");
        }
    }
    for same in panel.items.chunk_by(|left, right| is_path(left) == is_path(right)) {
        match (is_path(&same[0]), frame) {
            (true, Frame::Fluid) => {
                // Paths stretch only horizontally, and the style sheet keeps stroke widths constant.
                let view = format!("0 0 {WIDTH} {}", panel.height * 10);
                let place: [Attribute<'_>; 5] = [
                    ("viewBox", &view),
                    ("preserveAspectRatio", &"none"),
                    ("width", &"100%"),
                    ("height", &panel.height),
                    ("overflow", &"visible"),
                ];
                out.element("svg", &place, |out| same.iter().for_each(|item| path(out, item, panel.height, frame)));
            }
            (true, Frame::Fixed(_)) => same.iter().for_each(|item| path(out, item, panel.height, frame)),
            (false, _) => same.iter().for_each(|item| shape(out, item, frame)),
        }
    }
}

fn is_path(item: &Item) -> bool {
    matches!(
        item,
        Item::Line { .. } | Item::Fill { .. } | Item::Stems { .. } | Item::Dots { .. } | Item::Stretches { .. }
    )
}

fn path(out: &mut Markup, item: &Item, height: u32, frame: Frame) {
    match item {
        Item::Line { points, class, name } => {
            out.empty("path", &[("d", &frame.path(points)), ("class", class), ("data-n", &shortened(name, 100))]);
        }
        Item::Fill { points, class } => {
            out.empty("path", &[("d", &format!("{}z", frame.path(points))), ("class", class)]);
        }
        Item::Stems { points, class, name } => {
            let stems = points.iter().map(|(x, y)| ((*x, *y), (0, i64::from(height * 10) - i64::from(*y))));
            let d = frame.strokes(stems.filter(|(_, (_, down))| *down > 0));
            out.empty("path", &[("d", &d), ("class", class), ("data-n", &shortened(name, 100)), ("data-stems", &"")]);
        }
        Item::Dots { points, class } => {
            let d = frame.strokes(points.iter().map(|point| (*point, (0, 0))));
            out.empty("path", &[("d", &d), ("class", class)]);
        }
        Item::Stretches { runs, thick, class } => {
            let d = frame.strokes(runs.iter().map(|(point, across)| (*point, (*across, 0))));
            let thick = if frame == Frame::Fluid { thick.to_string() } else { tenths(*thick) };
            out.empty("path", &[("d", &d), ("class", class), ("stroke-width", &thick)]);
        }
        _ => {}
    }
}

fn shape(out: &mut Markup, item: &Item, frame: Frame) {
    match item {
        Item::Area { across, down, class, hatched, words, label } => {
            let (x, y) = (frame.x(across.0), tenths(down.0));
            let (width, height) = (frame.x(across.1.saturating_sub(across.0)), tenths(down.1.saturating_sub(down.0)));
            let place: [Attribute<'_>; 4] = [("x", &x), ("y", &y), ("width", &width), ("height", &height)];
            for class in layers(class, *hatched) {
                out.element("rect", &[&place[..], &[("class", &class)]].concat(), |out| hover(out, words));
            }
            if !label.is_empty() {
                let middle = frame.x(u32::midpoint(across.0, across.1));
                let y = short(f64::from(down.0 + down.1) / 20.0 + 4.0);
                out.words("text", &[("x", &middle), ("y", &y), ("class", &"x inside")], label);
            }
        }
        Item::Mark { at, shape, class, words } => {
            let (x, y) = (frame.x(at.0), tenths(at.1));
            let place: [Attribute<'_>; 4] = [("href", &reference(*shape)), ("x", &x), ("y", &y), ("class", class)];
            out.element("use", &place, |out| hover(out, words));
        }
        Item::Crosses(points) => {
            for (x, y) in points {
                out.empty("use", &[("href", &"#cross"), ("x", &frame.x(*x)), ("y", &tenths(*y))]);
            }
        }
        Item::Interval { across, y, class } => {
            let ((from, to), y) = ((frame.x(across.0), frame.x(across.1)), f64::from(*y) / 10.0);
            let (top, bottom, middle) = (short(y - 5.0), short(y + 5.0), short(y));
            stroke(out, (&from, &to), (&middle, &middle), class);
            stroke(out, (&from, &from), (&top, &bottom), class);
            stroke(out, (&to, &to), (&top, &bottom), class);
        }
        Item::Rule { x, down, class } => {
            let x = frame.x(*x);
            stroke(out, (&x, &x), (&tenths(down.0), &tenths(down.1)), class);
        }
        Item::Words { at, anchor, text, class } => {
            let (anchor, shift) = match anchor {
                Anchor::Start => ("", 0),
                Anchor::End => ("y ", 0),
                Anchor::BehindSign => ("", BESIDE_SIGN),
                Anchor::BeforeSign => ("y ", -BESIDE_SIGN),
            };
            let (x, y, class) = (frame.x(at.0), tenths(at.1), format!("{anchor}{class}"));
            let place: [Attribute<'_>; 4] = [("x", &x), ("y", &y), ("class", &class), ("dx", &shift)];
            out.words("text", &place[..if shift == 0 { 3 } else { 4 }], shortened(text, NAME_CHARS));
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "svg_tests.rs"]
mod tests;
