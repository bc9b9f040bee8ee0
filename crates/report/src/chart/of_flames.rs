//! Flame graphs of native memory, drawn from the top down: each box is a frame, below its caller. Its width shows
//! the bytes allocated by the frame and its callees.

use super::model::{Chart, Figure, Item, Panel, Sign};
use super::owners;
use super::thin::{COLUMNS, WIDTH};
use crate::markup::is_hidden;
use crate::record::{ExplanationRecord, FlameMoment, FlameRecord, FrameCode};
use crate::summary::mib;
use crate::table::Table;
use crate::units::{Bytes, grouped, shortened};
use loadline_base::order::Order as _;
use std::collections::VecDeque;

/// Row height in pixels.
const ROW: u32 = 18;
/// Maximum rows. Deeper graphs collapse single-callee chains, and are then truncated.
const ROWS_MAX: u32 = 40;
/// Two pixels on a large screen. The borders of a narrower box would cover it, so it is omitted.
const NARROWEST: u32 = 2 * WIDTH / COLUMNS;
/// Maximum boxes, each of about 300 bytes in a page.
const BOXES_MAX: usize = 3000;
/// Maximum stacks, and frames per stack, in a record.
const STACKS_MAX: usize = 400;
const DEPTH_MAX: usize = 128;
/// The narrowest plot with names inside, in pixels: the style sheet hides them below this width.
const ROOM: f64 = 560.0;
/// Maximum table rows, and the reciprocal of a frame's minimum share.
const ROWS_OF_TABLE_MAX: usize = 200;
const SHARE_MIN: u64 = 100;
/// The longest name shown on hover, which also applies to two joined names.
const NAME_CHARS: usize = 180;

/// What a box represents.
#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    /// All memory.
    All,
    Frame(u32),
    /// Omitted outer frames.
    Outer,
    Stacks,
}

/// A call, merged over all stacks with the same prefix.
#[derive(Debug)]
struct Node {
    what: What,
    /// Bytes of all stacks through this frame.
    bytes: u64,
    /// Bytes of the stacks that end in this frame.
    own_bytes: u64,
    /// Indexes of its callees, largest first.
    calls: Vec<usize>,
}

/// A flame graph's stacks as a prefix tree; the first node is the root.
struct Tree<'a> {
    flame: &'a FlameRecord,
    nodes: Vec<Node>,
}

/// A node with its position, or a chain of nodes that are each the only callee of the previous one.
#[derive(Debug)]
struct Placed {
    first: usize,
    last: usize,
    nodes: usize,
    row: u32,
    across: (u32, u32),
}

/// A graph per kind of native memory in a recording; figure names contain the trial.
pub(crate) fn flames(found: &ExplanationRecord, trial: u32) -> Vec<Figure> {
    let named = |at: usize| format!("flame-{}-{}", trial + 1, at + 1);
    found.flames.iter().enumerate().map(|(at, flame)| figure(flame, named(at))).collect()
}

fn figure(flame: &FlameRecord, name: String) -> Figure {
    let tree = Tree::new(flame);
    let (boxes, is_joined) = tree.boxes();
    let rows = boxes.iter().map(|of| of.row + 1).max().unwrap_or(0);
    let when = match flame.at {
        FlameMoment::Loaded => "in use at the end",
        FlameMoment::Peak => "at its peak",
    };
    let key = |class: &str, words: &str| (Sign::Area(class.to_owned(), false), words.to_owned());
    let joined = if is_joined { " Neighboring frames that call nothing else share a box." } else { "" };
    let chart = Chart {
        name,
        title: format!("{}: {} {when}, by stack", shortened(&flame.kind, NAME_CHARS), Bytes(flame.bytes)),
        description: format!(
            "A box is a frame, drawn below its caller and as wide as the bytes that it and everything it called \
             allocated.{joined}"
        ),
        legend: vec![
            key("f-own", "application"),
            key("f-library", "framework or JDK"),
            key("f-native", "native code"),
            key("o-none", "everything, including what is not drawn"),
        ],
        panels: vec![Panel::rows(rows * ROW, boxes.iter().map(|of| tree.item(of)).collect())],
        ..Chart::default()
    };
    Figure { chart, table: tree.table() }
}

impl<'a> Tree<'a> {
    fn new(flame: &'a FlameRecord) -> Self {
        let mut tree = Self { flame, nodes: Vec::new() };
        tree.push(What::All);
        for stack in flame.stacks.iter().take(STACKS_MAX) {
            let outer = (stack.outer_left_out > 0).then_some(What::Outer);
            let frames = stack.frames.iter().take(DEPTH_MAX).map(|place| What::Frame(*place));
            tree.add(outer.into_iter().chain(frames), stack.bytes);
        }
        if flame.left_out_bytes > 0 {
            tree.add(std::iter::once(What::Stacks), flame.left_out_bytes);
        }
        let weights: Vec<(bool, u64)> = tree.nodes.iter().map(|of| (of.what != What::Stacks, of.bytes)).collect();
        for node in &mut tree.nodes {
            node.calls.largest_first(|call| weights[*call]);
        }
        tree
    }

    fn push(&mut self, what: What) -> usize {
        self.nodes.push(Node { what, bytes: 0, own_bytes: 0, calls: Vec::new() });
        self.nodes.len() - 1
    }

    fn add(&mut self, stack: impl Iterator<Item = What>, bytes: u64) {
        let mut at = 0;
        self.nodes[at].bytes = self.nodes[at].bytes.saturating_add(bytes);
        for what in stack {
            let known = self.nodes[at].calls.iter().find(|call| self.nodes[**call].what == what).copied();
            let next = known.unwrap_or_else(|| self.push(what));
            if known.is_none() {
                self.nodes[at].calls.push(next);
            }
            at = next;
            self.nodes[at].bytes = self.nodes[at].bytes.saturating_add(bytes);
        }
        self.nodes[at].own_bytes = self.nodes[at].own_bytes.saturating_add(bytes);
    }

    /// The boxes to draw, callers first, and whether chains were collapsed.
    fn boxes(&self) -> (Vec<Placed>, bool) {
        let each = self.placed(false);
        match each.iter().any(|of| of.row >= ROWS_MAX) {
            true => (self.placed(true).into_iter().filter(|of| of.row < ROWS_MAX).take(BOXES_MAX).collect(), true),
            false => (each.into_iter().take(BOXES_MAX).collect(), false),
        }
    }

    fn placed(&self, join: bool) -> Vec<Placed> {
        let total = self.nodes[0].bytes.max(1) as f64;
        let place = |bytes: u64| (bytes as f64 / total * f64::from(WIDTH)).round() as u32;
        let mut boxes = Vec::new();
        let mut open = VecDeque::from([(0, 0, 0)]);
        while let Some((first, before, row)) = open.pop_front() {
            let (mut last, mut nodes) = (first, 1);
            while let Some(next) = self.only_call(last).filter(|_| join) {
                (last, nodes) = (next, nodes + 1);
            }
            let across = (place(before), place(before.saturating_add(self.nodes[first].bytes)));
            if across.1 - across.0 < NARROWEST {
                continue;
            }
            boxes.push(Placed { first, last, nodes, row, across });
            let mut from = before;
            for call in &self.nodes[last].calls {
                open.push_back((*call, from, row + 1));
                from = from.saturating_add(self.nodes[*call].bytes);
            }
        }
        boxes
    }

    /// The only callee of a node, if it allocated all of the node's bytes and neither belongs to the application.
    fn only_call(&self, at: usize) -> Option<usize> {
        let is_other = |at: usize| matches!(self.nodes[at].what, What::Frame(_)) && self.class(at) != "f-own";
        let [call] = self.nodes[at].calls[..] else { return None };
        (self.nodes[at].own_bytes == 0 && is_other(at) && is_other(call)).then_some(call)
    }

    fn class(&self, at: usize) -> &'static str {
        let What::Frame(place) = self.nodes[at].what else { return "o-none" };
        match self.flame.frames.get(place as usize).map(|frame| frame.code) {
            Some(FrameCode::Application) => "f-own",
            Some(FrameCode::Framework | FrameCode::Jdk) => "f-library",
            Some(FrameCode::Native) => "f-native",
            None => "o-none",
        }
    }

    fn name(&self, at: usize) -> &str {
        match self.nodes[at].what {
            What::All => &self.flame.kind,
            What::Frame(place) => self.flame.frames.get(place as usize).map_or("unknown", |frame| &frame.name),
            What::Outer => "outer frames that are not drawn",
            What::Stacks => "smaller stacks that are not drawn",
        }
    }

    fn item(&self, of: &Placed) -> Item {
        let bytes = self.nodes[of.first].bytes;
        let share = 100.0 * bytes as f64 / self.nodes[0].bytes.max(1) as f64;
        let (first, last) = (self.name(of.first), self.name(of.last));
        let name = match of.nodes {
            1 => shortened(first, NAME_CHARS),
            more => {
                let ends = [first, last].map(|name| shortened(name, NAME_CHARS / 2));
                format!("{} \u{2026} {}, {} frames", ends[0], ends[1], more)
            }
        };
        let room = f64::from(of.across.1 - of.across.0) / f64::from(WIDTH) * ROOM;
        Item::Area {
            across: of.across,
            down: (of.row * ROW * 10, (of.row + 1) * ROW * 10),
            class: format!("part {}", self.class(of.first)),
            hatched: matches!(self.nodes[of.first].what, What::Outer | What::Stacks),
            words: format!("{name}: {}, {share:.1}% of all", Bytes(bytes)),
            label: if of.nodes == 1 { label(first, room) } else { joined(first, last, of.nodes, room) },
        }
    }

    /// The graph as rows, each frame before its callees.
    fn table(&self) -> Table {
        let total = self.nodes[0].bytes;
        let mut rows = Vec::new();
        let mut open = vec![(0, 0)];
        while let Some((at, level)) = open.pop() {
            let node = &self.nodes[at];
            if node.bytes >= total / SHARE_MIN {
                let sizes = [node.bytes, node.own_bytes].map(mib);
                let share = format!("{:.1}", 100.0 * node.bytes as f64 / total.max(1) as f64);
                let name = shortened(self.name(at), NAME_CHARS);
                rows.push([vec![name, level.to_string()], sizes.to_vec(), vec![share]].concat());
                open.extend(node.calls.iter().rev().map(|call| (*call, level + 1)));
            }
        }
        let more = self.nodes.len() - rows.len().min(ROWS_OF_TABLE_MAX);
        rows.truncate(ROWS_OF_TABLE_MAX);
        let note = (more > 0).then(|| format!("{} more calls are not drawn here.", grouped(more as u64)));
        let head = ["frame", "depth", "MiB", "self MiB", "% of all"];
        Table::new("Stacks as a table", head, rows).noted(note)
    }
}

/// The part of a name that fits: without package, without line, or only the method or symbol.
fn label(name: &str, room: f64) -> String {
    let texts = match name.split_once('`') {
        Some((_, symbol)) => [name, name, symbol],
        None => {
            let end = name.find('(').unwrap_or(name.len());
            let mut dots = name[..end].rmatch_indices('.').map(|(at, _)| at + 1);
            let (method, class) = (dots.next().unwrap_or(0), dots.next().unwrap_or(0));
            [&name[class..], &name[class..end], &name[method..end]]
        }
    };
    texts.into_iter().find(|text| fits(text, room)).unwrap_or_default().to_owned()
}

/// The names of both ends, if they fit.
fn joined(first: &str, last: &str, frames: usize, room: f64) -> String {
    let ends = [first, last].map(|name| label(name, room / 2.0));
    let text = format!("{} \u{2026} {} ({frames} frames)", ends[0], ends[1]);
    if ends.iter().all(|end| !end.is_empty()) && fits(&text, room) { text } else { String::new() }
}

/// Whether text fits. Text with characters that are escaped by number never does.
fn fits(text: &str, room: f64) -> bool {
    !text.contains(is_hidden) && owners::fits(text, room)
}

#[cfg(test)]
#[path = "of_flames_tests.rs"]
mod tests;
