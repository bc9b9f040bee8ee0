//! The live view of watched JVMs: a screen that is redrawn after each turn and key, or a line per change.

mod keys;
mod picture;
#[cfg(test)]
mod picture_tests;

pub use keys::{Key, Keys};
pub use picture::{Glyphs, Size};

use super::summary::watch::{holds, summarize_watch, told};
use super::terminal::{LINE_COLUMNS, print, render, with_facts};
use crate::record::{Happened, WatchCourse, WatchDocument, WatchEvent, WhyWeighed};
use crate::units::Bytes;
use picture::{Line, Scene, View, drawn, hidden_lines, in_full, sorted};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DisplayMode {
    Nowhere,
    Lines,
    /// On a terminal, with or without keys.
    Drawn {
        glyphs: Glyphs,
        keys: bool,
    },
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// Redraw.
    Draw,
    /// Exit.
    End,
}

/// The view of watched JVMs.
#[derive(Debug)]
pub struct Screen {
    place: DisplayMode,
    document: Arc<WatchDocument>,
    view: View,
    /// The latest events, below the table.
    lately: Vec<String>,
    size: Size,
}

/// Maximum events kept, one line each.
const LATELY: usize = 20;
/// Lines that a page key scrolls.
const PAGE: usize = 10;
/// Enters the alternate screen, without cursor and line wrapping, and leaves it again.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

impl Screen {
    /// Prints lines to stdout, or nothing.
    pub fn lines(quiet: bool) -> Self {
        Self::at(if quiet { DisplayMode::Nowhere } else { DisplayMode::Lines })
    }

    /// Draws on a terminal. Call [`Screen::enter`] before and [`Screen::leave`] after drawing.
    pub fn drawn(glyphs: Glyphs, keys: bool) -> Self {
        Self::at(DisplayMode::Drawn { glyphs, keys })
    }

    fn at(place: DisplayMode) -> Self {
        let (document, view) = (Arc::default(), View::default());
        Self { place, document, view, lately: Vec::new(), size: Size { columns: 80, lines: 24 } }
    }

    /// Takes over the terminal.
    pub fn enter() {
        // If the terminal is gone, the watch continues.
        let _ = print(ENTER);
    }

    /// Restores the terminal.
    pub fn leave() {
        let _ = print(LEAVE);
    }

    /// Receives a turn's results; prints lines immediately. Ignores a closed pipe.
    pub fn take(&mut self, events: &[WatchEvent], document: impl FnOnce() -> Arc<WatchDocument>) {
        match self.place {
            DisplayMode::Nowhere => return,
            DisplayMode::Lines if events.is_empty() => return,
            DisplayMode::Lines | DisplayMode::Drawn { .. } => {}
        }
        self.document = document();
        let told = events.iter().filter_map(|event| Some((self.line(event, events)?, event)));
        if self.place == DisplayMode::Lines {
            let text = |(line, event): (String, &WatchEvent)| with_facts(&line, &self.facts(event), LINE_COLUMNS);
            let _ = print(&told.map(text).collect::<String>());
            return;
        }
        let lines: Vec<String> = told.map(|(line, _)| line).collect();
        self.lately.extend(lines);
        self.lately.drain(..self.lately.len().saturating_sub(LATELY));
        let chosen = self.view.chosen.filter(|pid| self.document.jvms.iter().any(|jvm| jvm.pid == *pid));
        if chosen.is_none() {
            // The selected JVM is gone; its end is among the events below the list.
            self.view = View { order: self.view.order, ..View::default() };
        }
        self.view.chosen = chosen.or(sorted(&self.document, self.view.order).first().map(|jvm| jvm.pid));
    }

    /// Adds a line to the events.
    pub fn note(&mut self, text: &str) {
        self.lately.push(format!("{} {text}", self.time()));
    }

    /// The pid of the JVM shown in full.
    pub fn in_full(&self) -> Option<u32> {
        in_full(&self.document, &self.view).map(|jvm| jvm.pid)
    }

    /// Draws everything; `course` belongs to the JVM in [`Screen::in_full`].
    pub fn draw(&mut self, course: Option<WatchCourse>, size: Size) {
        let DisplayMode::Drawn { .. } = self.place else { return };
        self.size = size;
        if let Some(pid) = self.in_full().filter(|_| course.is_some()) {
            let jvms = &mut Arc::make_mut(&mut self.document).jvms;
            jvms.iter_mut().filter(|jvm| jvm.pid == pid).for_each(|jvm| jvm.course.clone_from(&course));
        }
        let lines = drawn(&self.scene(), size);
        let last = lines.len() - 1;
        let drawn = |(at, Line { text, chosen }): (usize, &Line)| {
            let end = if at == last { "" } else { "\r\n" };
            if *chosen { format!("\x1b[7m{text}\x1b[K\x1b[m{end}") } else { format!("{text}\x1b[K{end}") }
        };
        let all: String = lines.iter().enumerate().map(drawn).collect();
        let _ = print(&format!("\x1b[H{all}\x1b[J"));
    }

    /// Prints the last screen as permanent output or, in line mode, the verdicts on running JVMs. Restore the terminal
    /// before calling this.
    pub fn end(&self, document: impl FnOnce() -> WatchDocument) {
        if self.place == DisplayMode::Lines {
            let document = document();
            if !document.jvms.is_empty() {
                let _ = print(&format!("\n{}", render(&summarize_watch(&document))));
            }
        }
        if let DisplayMode::Drawn { glyphs, .. } = self.place {
            let scene = Scene { keys: false, ..self.scene() };
            let all =
                Size { lines: self.size.lines.max(2 + hidden_lines(&scene, self.size) + self.size.lines), ..self.size };
            let lines = drawn(&Scene { glyphs, ..scene }, all);
            let shown = lines[..lines.len() - 1].iter().map(|line| line.text.trim_end());
            let text = shown.collect::<Vec<_>>().join("\n");
            let _ = print(&format!("{}\n", text.trim_end()));
        }
    }

    /// Applies a key to the view.
    pub fn press(&mut self, key: Key) -> Pressed {
        let full = self.in_full().is_some();
        let alone = self.document.jvms.len() <= 1;
        match key {
            Key::Quit if alone || !full => return Pressed::End,
            Key::Close if alone || !full => {}
            Key::Close | Key::Quit => (self.view.open, self.view.scrolled) = (false, 0),
            Key::Open => self.view.open = true,
            Key::Sort => self.view.order = self.view.order.next(),
            Key::Redraw => {}
            Key::Up | Key::Down | Key::PageUp | Key::PageDown | Key::First | Key::Last if full => {
                let hidden = hidden_lines(&self.scene(), self.size);
                self.view.scrolled = moved(key, self.view.scrolled.min(hidden), hidden);
            }
            Key::Up | Key::Down | Key::PageUp | Key::PageDown | Key::First | Key::Last => {
                let jvms = sorted(&self.document, self.view.order);
                let chosen = jvms.iter().position(|jvm| Some(jvm.pid) == self.view.chosen).unwrap_or(0);
                self.view.chosen = jvms.get(moved(key, chosen, jvms.len().saturating_sub(1))).map(|jvm| jvm.pid);
            }
        }
        Pressed::Draw
    }

    fn scene(&self) -> Scene<'_> {
        let (glyphs, keys) = match self.place {
            DisplayMode::Drawn { glyphs, keys } => (glyphs, keys),
            DisplayMode::Nowhere | DisplayMode::Lines => (Glyphs::Ascii, false),
        };
        Scene { document: &self.document, view: &self.view, lately: &self.lately, glyphs, keys }
    }

    /// An event as a line; `None` if another event of this turn contains the same information.
    fn line(&self, event: &WatchEvent, turn: &[WatchEvent]) -> Option<String> {
        let of_name = |other: &&WatchEvent| other.name == event.name;
        let appeared = |other: &WatchEvent| matches!(other.what, Happened::Appeared(_));
        let what = match &event.what {
            Happened::Verdict(_) | Happened::Rises(_) if turn.iter().filter(of_name).any(appeared) => return None,
            what => happened(what),
        };
        Some(format!("{} {}: {what}", self.time(), event.name))
    }

    /// The facts of a new JVM; a screen shows them in its list.
    fn facts(&self, event: &WatchEvent) -> Vec<(&'static str, String)> {
        let jvm = self.document.jvms.iter().find(|jvm| matches!(event.what, Happened::Appeared(pid) if pid == jvm.pid));
        jvm.map(|jvm| std::iter::once(("verdict", told(&jvm.growth))).chain(holds(jvm)).collect()).unwrap_or_default()
    }

    /// An event's time; on a screen, without the date, which is in the header.
    fn time(&self) -> &str {
        let taken = self.document.taken.as_str();
        if self.place == DisplayMode::Lines { taken } else { taken.split_once('T').map_or(taken, |(_, time)| time) }
    }
}

/// The position that a key moves to, between 0 and `last`.
fn moved(key: Key, from: usize, last: usize) -> usize {
    match key {
        Key::Up => from.saturating_sub(1),
        Key::Down => (from + 1).min(last),
        Key::PageUp => from.saturating_sub(PAGE),
        Key::PageDown => (from + PAGE).min(last),
        Key::First => 0,
        Key::Last => last,
        _ => from,
    }
}

fn happened(what: &Happened) -> String {
    match what {
        Happened::Appeared(pid) => format!("watched, pid {pid}"),
        Happened::Ended(pid) => format!("exited, pid {pid}"),
        Happened::Killed(pid) => {
            format!("killed because memory ran out, pid {pid} (see `loadline watch --post-mortem {pid}`)")
        }
        Happened::GrowsNoMore(growth) => format!("no longer grows; {}", told(growth)),
        Happened::Verdict(growth) | Happened::Rises(growth) => told(growth),
        Happened::NearLimit { headroom_bytes, limit_bytes } => {
            let (left, limit) = (Bytes(*headroom_bytes), Bytes(*limit_bytes));
            format!("only {left} left below its {limit} limit; at this rate, that will run out within an hour")
        }
        Happened::Weighed(why, path) => {
            let why = match why {
                WhyWeighed::AtPercent(percent) => format!("weighed at {percent}% of its limit"),
                WhyWeighed::Growth => "weighed because it is growing".to_owned(),
                WhyWeighed::Time => "weighed on request".to_owned(),
                WhyWeighed::FirstSight => "queried once".to_owned(),
            };
            format!("{why}: {}", path.display())
        }
        Happened::Failed(why) => why.clone(),
    }
}
