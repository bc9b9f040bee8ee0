//! Owners in charts: order, legend, and divided bars.

use super::model::{Axis, Item, Sign};
use super::palette::owner_style;
use super::thin::WIDTH;
use super::values::MIB;
use crate::owner::{label, place};
use crate::width::width;
use loadline_base::order::Order as _;

/// Width of a bar on a page, in pixels.
const BAR_PIXELS: f64 = 860.0;

/// Whether text inside an area fits into `room` pixels, at 6.6 pixels per character.
pub(super) fn fits(text: &str, room: f64) -> bool {
    width(text) as f64 * 6.6 + 8.0 < room
}

/// The distinct owners in account order.
pub(crate) fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.order_by_key(|name| (place(name), *name));
    names.dedup();
    names
}

pub(crate) fn class(name: &str) -> String {
    owner_style(name).0
}

pub(crate) fn key(name: &str, words: String) -> (Sign, String) {
    let (class, hatched) = owner_style(name);
    (Sign::Area(class, hatched), words)
}

/// A bar divided by owner, with names inside if wanted and if they fit.
pub(crate) fn bar<'a>(parts: impl Iterator<Item = (&'a str, f64)>, x: &Axis, top: u32, is_named: bool) -> Vec<Item> {
    let mut sum = 0.0;
    let mut items = Vec::new();
    for (name, bytes) in parts {
        let across = (x.across(sum / MIB), x.across((sum + bytes) / MIB));
        sum += bytes;
        if across.0 < across.1 {
            let room = f64::from(across.1 - across.0) / f64::from(WIDTH) * BAR_PIXELS;
            let name_of = label(name);
            let fits = is_named && fits(name_of, room);
            let words = format!("{name_of}: {:.1} MiB", bytes / MIB);
            items.push(Item::part(across, top, owner_style(name), words).labelled(if fits { name_of } else { "" }));
        }
    }
    items
}
