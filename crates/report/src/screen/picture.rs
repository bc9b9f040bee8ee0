//! The lines of a screen of a given size, as a function of the watched JVMs and of the choices made with the keys.

use crate::page::Part;
use crate::record::{WatchDocument, WatchedJvm};
use crate::summary::watch;
use crate::table::Table;
use crate::terminal::render_within;
use crate::units::{roughly, visible};
use crate::width::{first, width};
use loadline_base::order::Order as _;

/// Columns and lines of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Across.
    pub columns: usize,
    /// Down.
    pub lines: usize,
}

/// The glyphs that draw courses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Blocks of eighths, if the terminal writes UTF-8.
    Blocks,
    /// Letters that every terminal has.
    Ascii,
}

/// The key by which JVMs are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Order {
    #[default]
    Name,
    /// The largest anonymous memory first.
    Memory,
    /// The largest share of the limit first.
    Held,
    /// The JVM that meets its limit soonest first.
    Left,
}

/// The choices made with the keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct View {
    /// By its pid.
    pub(super) chosen: Option<u32>,
    /// Whether it is shown in full.
    pub(super) open: bool,
    /// Its lines above the screen.
    pub(super) scrolled: usize,
    pub(super) order: Order,
}

/// All inputs of a picture.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) document: &'a WatchDocument,
    pub(super) view: &'a View,
    /// The latest events, a line each.
    pub(super) lately: &'a [String],
    pub(super) glyphs: Glyphs,
    /// Whether there are keys to press.
    pub(super) keys: bool,
}

/// A line, and whether it is the chosen one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) chosen: bool,
}

/// The fewest lines drawn: head, heads of the columns, a line, help for the keys.
const LINES_MIN: usize = 5;
const COLUMNS_MIN: usize = 20;
/// Lines of events that are shown if there is room.
const LATELY: usize = 8;
/// The beginning of a line of a list: not chosen, and chosen.
const MARK: [&str; 2] = ["  ", "> "];

impl Glyphs {
    pub(crate) fn all(self) -> &'static str {
        match self {
            Self::Blocks => "\u{2581}\u{2582}\u{2583}\u{2584}\u{2585}\u{2586}\u{2587}\u{2588}",
            Self::Ascii => "_.-~=+*#",
        }
    }
}

/// Every order with its name; a key chooses the next one in this list.
const ORDERS: [(Order, &str); 4] =
    [(Order::Name, "name"), (Order::Memory, "anon"), (Order::Held, "held"), (Order::Left, "left")];

impl Order {
    fn place(self) -> usize {
        ORDERS.iter().position(|(order, _)| *order == self).unwrap_or(0)
    }

    pub(super) fn next(self) -> Self {
        ORDERS[(self.place() + 1) % ORDERS.len()].0
    }

    fn name(self) -> &'static str {
        ORDERS[self.place()].1
    }
}

/// The JVMs in the order that was chosen.
pub(super) fn sorted(document: &WatchDocument, order: Order) -> Vec<&WatchedJvm> {
    let mut jvms: Vec<&WatchedJvm> = document.jvms.iter().collect();
    let held = |jvm: &WatchedJvm| jvm.now.unreclaimable_bytes.unwrap_or(0);
    let share = |jvm: &WatchedJvm| {
        let limit = jvm.limit.as_ref().map_or(u64::MAX, |limit| limit.bytes.max(1));
        held(jvm).saturating_mul(1 << 20) / limit
    };
    match order {
        Order::Name => {}
        Order::Memory => jvms.largest_first(|jvm| held(jvm)),
        Order::Held => jvms.largest_first(|jvm| share(jvm)),
        Order::Left => jvms.order_by(|a, b| {
            let left = |jvm: &WatchedJvm| jvm.growth.limit_in_s.unwrap_or(f64::INFINITY);
            left(a).total_cmp(&left(b))
        }),
    }
    jvms
}

/// The JVM that is shown in full: the one that was opened, or the only one.
pub(super) fn in_full<'a>(document: &'a WatchDocument, view: &View) -> Option<&'a WatchedJvm> {
    match document.jvms.as_slice() {
        [one] => Some(one),
        several if view.open => several.iter().find(|jvm| Some(jvm.pid) == view.chosen),
        _ => None,
    }
}

/// The lines of a screen of this size, none longer than it is wide.
pub(super) fn drawn(scene: &Scene<'_>, size: Size) -> Vec<Line> {
    let size = Size { columns: size.columns.max(COLUMNS_MIN), lines: size.lines.max(LINES_MIN) };
    let mut lines = vec![plain(head(scene.document, size.columns))];
    let room = size.lines - 2;
    let (body, hint) = match in_full(scene.document, scene.view) {
        Some(jvm) => detail(scene, jvm, size.columns, room),
        None => list(scene, size.columns, room),
    };
    lines.extend(body);
    lines.resize(size.lines - 1, plain(String::new()));
    lines.push(plain(format!("  {}", if scene.keys { hint } else { "Ctrl-C ends".to_owned() })));
    for line in &mut lines {
        line.text = first(&line.text, size.columns).to_owned();
    }
    lines
}

fn plain(text: String) -> Line {
    Line { text, chosen: false }
}

fn head(document: &WatchDocument, columns: usize) -> String {
    // A time between samples is shown as the user typed it.
    let ms = document.every_ms;
    let every = if ms < 1000 { format!("{ms} ms") } else { roughly(ms as f64 / 1e3) };
    let left = watch::counted(&document.jvms, &every);
    let right = document.taken.replace('T', " ");
    let gap = columns.saturating_sub(width(&left) + width(&right));
    if gap == 0 { left } else { format!("{left}{}{right}", " ".repeat(gap)) }
}

fn rendered(blocks: Vec<Part>, columns: usize) -> Vec<String> {
    render_within(&blocks, columns).lines().map(str::to_owned).collect()
}

/// The list, scrolled so that the chosen JVM is visible, and the events below it.
fn list(scene: &Scene<'_>, columns: usize, room: usize) -> (Vec<Line>, String) {
    let view = scene.view;
    let hint = format!("up down: choose   Enter: in full   s: sort (by {})   q: end", view.order.name());
    let mut foot: Vec<String> = watch::hidden(scene.document).into_iter().map(|text| format!("  {text}")).collect();
    let jvms = sorted(scene.document, view.order);
    if jvms.is_empty() {
        let mut lines = rendered(vec![Part::Text(watch::nobody(scene.document).to_owned())], columns);
        lines.extend(lately(scene, room.saturating_sub(lines.len() + 1)));
        return (lines.into_iter().take(room).map(plain).collect(), hint);
    }
    let mut table: Table = watch::lines(&jvms, columns);
    let notes = std::mem::take(&mut table.notes);
    let lines = rendered(vec![Part::Table(table)], columns);
    // Only the heads of the columns are used; the notes below name the unit in place of the title.
    let heads = lines.get(1).cloned().unwrap_or_default();
    let chosen = jvms.iter().position(|jvm| Some(jvm.pid) == view.chosen).unwrap_or(0);
    let rows = room.saturating_sub(1).min(jvms.len());
    let first = chosen.saturating_sub(rows.saturating_sub(1)).min(jvms.len() - rows);
    let mut body = vec![plain(heads)];
    for (at, text) in lines.iter().skip(2).enumerate().skip(first).take(rows) {
        let is_chosen = scene.keys && at == chosen;
        let text = text.strip_prefix(MARK[0]).unwrap_or(text);
        body.push(Line { text: format!("{}{text}", MARK[usize::from(is_chosen)]), chosen: is_chosen });
    }
    let notes = notes.into_iter().map(|note| format!("MiB; {note}")).map(Part::Text).collect();
    foot.splice(0..0, rendered(notes, columns));
    let below = room.saturating_sub(body.len());
    let lately = lately(scene, below.saturating_sub(1));
    let left = below.saturating_sub(lately.len());
    foot.truncate(left.saturating_sub(1));
    for part in [lately, foot].into_iter().filter(|part| !part.is_empty()) {
        body.push(plain(String::new()));
        body.extend(part.into_iter().map(plain));
    }
    body.truncate(room);
    (body, hint)
}

/// Returns the latest events that fit.
fn lately(scene: &Scene<'_>, room: usize) -> Vec<String> {
    let shown = scene.lately.len().min(room).min(LATELY);
    scene.lately[scene.lately.len() - shown..].iter().map(|line| format!("  {}", visible(line))).collect()
}

/// One JVM, scrolled.
fn detail(scene: &Scene<'_>, jvm: &WatchedJvm, columns: usize, room: usize) -> (Vec<Line>, String) {
    let alone = scene.document.jvms.len() == 1;
    let mut lines = Vec::new();
    if alone {
        let table = Table { notes: Vec::new(), ..watch::lines(&[jvm], columns) };
        lines.extend(rendered(vec![Part::Table(table)], columns).into_iter().skip(1));
        lines.push(String::new());
    }
    lines.extend(rendered(watch::in_full(jvm, columns, scene.glyphs.all()).map(Part::Section).into(), columns));
    let own = lately(scene, LATELY);
    if alone && !own.is_empty() {
        lines.push(String::new());
        lines.extend(own);
    }
    let below = lines.len().saturating_sub(room);
    let from = scene.view.scrolled.min(below);
    let more = if below > from { format!("   down: {} more lines", below - from) } else { String::new() };
    let hint = if alone { format!("q: end{more}") } else { format!("Esc: back   up down: scroll{more}") };
    (lines.into_iter().skip(from).take(room).map(plain).collect(), hint)
}

/// Lines of one JVM in full that do not fit below a screen's head.
pub(super) fn hidden_lines(scene: &Scene<'_>, size: Size) -> usize {
    let room = size.lines.max(LINES_MIN) - 2;
    let all = |jvm| detail(scene, jvm, size.columns.max(COLUMNS_MIN), usize::MAX).0.len();
    in_full(scene.document, scene.view).map_or(0, |jvm| all(jvm).saturating_sub(room))
}
