//! Owners in charts: their order, their keys, and bars that are divided among them.

use super::model::{Axis, Item, Sign};
use super::palette::owner_style;
use super::thin::WIDTH;
use super::values::MIB;
use crate::owner::{label, place};
use crate::width::width;
use loadline_base::order::Order as _;

/// Pixels of a bar on a page.
const BAR_PIXELS: f64 = 860.0;

/// Whether a text inside an area fits into `room` pixels; a character takes 6.6.
pub(super) fn fits(text: &str, room: f64) -> bool {
    width(text) as f64 * 6.6 + 8.0 < room
}

/// Each of these owners once, in the order of the account.
pub(crate) fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.order_by_key(|name| (place(name), *name));
    names.dedup();
    names
}

/// The class that colours an owner.
pub(crate) fn class(name: &str) -> String {
    owner_style(name).0
}

/// The sign of an owner with its words.
pub(crate) fn key(name: &str, words: String) -> (Sign, String) {
    let (class, hatched) = owner_style(name);
    (Sign::Area(class, hatched), words)
}

/// A bar divided among owners, from their names and bytes, with names inside if they are wanted and fit.
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
