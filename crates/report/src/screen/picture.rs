//! The lines of a screen of a given size, a function of the watched JVMs and the user's selections.

use crate::page::Part;
use crate::record::{WatchDocument, WatchedJvm};
use crate::summary::watch;
use crate::table::Table;
use crate::terminal::render_within;
use crate::units::{roughly, visible};
use crate::width::{first, width};
use loadline_base::order::Order as _;

/// A terminal's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Width in columns.
    pub columns: usize,
    /// Height in lines.
    pub lines: usize,
}

/// The glyphs for sparklines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Eighth blocks, if the terminal supports UTF-8.
    Blocks,
    /// ASCII characters.
    Ascii,
}

/// How JVMs are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Order {
    #[default]
    Name,
    /// By anonymous memory, largest first.
    Memory,
    /// By share of the limit, largest first.
    Held,
    /// By time to the limit, shortest first.
    Left,
}

/// The user's selections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct View {
    /// The selected pid.
    pub(super) chosen: Option<u32>,
    /// Whether it is shown in full.
    pub(super) open: bool,
    /// Lines scrolled off the top.
    pub(super) scrolled: usize,
    pub(super) order: Order,
}

#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) document: &'a WatchDocument,
    pub(super) view: &'a View,
    /// The latest events, one line each.
    pub(super) lately: &'a [String],
    pub(super) glyphs: Glyphs,
    pub(super) keys: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) chosen: bool,
}

/// The minimum: header, column heads, one line, key help.
const LINES_MIN: usize = 5;
const COLUMNS_MIN: usize = 20;
/// Event lines shown if there is room.
const LATELY: usize = 8;
/// The start of a list line: not selected, and selected.
const MARK: [&str; 2] = ["  ", "> "];

impl Glyphs {
    pub(crate) fn all(self) -> &'static str {
        match self {
            Self::Blocks => "\u{2581}\u{2582}\u{2583}\u{2584}\u{2585}\u{2586}\u{2587}\u{2588}",
            Self::Ascii => "_.-~=+*#",
        }
    }
}

/// Every order with its name; a key cycles through them.
const ORDERS: [(Order, &str); 4] =
    [(Order::Name, "name"), (Order::Memory, "anon"), (Order::Held, "used"), (Order::Left, "left")];

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

/// The JVM shown in full: the opened one, or the only one.
pub(super) fn in_full<'a>(document: &'a WatchDocument, view: &View) -> Option<&'a WatchedJvm> {
    match document.jvms.as_slice() {
        [one] => Some(one),
        several if view.open => several.iter().find(|jvm| Some(jvm.pid) == view.chosen),
        _ => None,
    }
}

/// The lines of a screen, none wider than the screen.
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
    // The sampling interval, in milliseconds if it is less than a second.
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

/// The list, scrolled to the selected JVM, and the events.
fn list(scene: &Scene<'_>, columns: usize, room: usize) -> (Vec<Line>, String) {
    let view = scene.view;
    let hint = format!("up/down: select   Enter: details   s: sort (by {})   q: quit", view.order.name());
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
    // Uses only the column heads; the notes below name the unit instead of the title.
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

/// The latest events that fit.
fn lately(scene: &Scene<'_>, room: usize) -> Vec<String> {
    let shown = scene.lately.len().min(room).min(LATELY);
    scene.lately[scene.lately.len() - shown..].iter().map(|line| format!("  {}", visible(line))).collect()
}

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
    let hint = if alone { format!("q: quit{more}") } else { format!("Esc: back   up/down: scroll{more}") };
    (lines.into_iter().skip(from).take(room).map(plain).collect(), hint)
}

/// Number of lines of a JVM shown in full that do not fit below the header.
pub(super) fn hidden_lines(scene: &Scene<'_>, size: Size) -> usize {
    let room = size.lines.max(LINES_MIN) - 2;
    let all = |jvm| detail(scene, jvm, size.columns.max(COLUMNS_MIN), usize::MAX).0.len();
    in_full(scene.document, scene.view).map_or(0, |jvm| all(jvm).saturating_sub(room))
}
