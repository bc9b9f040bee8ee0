//! The table of remedies, as listed for the user.

use super::tune::price_words;
use crate::diagnosis::remedy::TABLE;
use crate::page::{Page, Part, Section, Topic};

/// Every remedy with its effect, the owners it moves, its cost, and the source of these measurements.
pub fn summarize_remedies() -> Page {
    let of = |remedy: &crate::diagnosis::remedy::Remedy| {
        let owners: Vec<&str> = remedy.owners.iter().map(|owner| owner.entry().label).collect();
        let facts = [
            ("does", remedy.what.to_owned()),
            ("moves", owners.join(", ")),
            ("price", price_words(remedy.price).to_owned()),
            ("source", remedy.source.to_owned()),
            ("against", remedy.against.to_owned()),
        ];
        Section::new(Topic::Answer, remedy.id, [Part::facts(facts)])
    };
    let note = "What is set, and whether it is tried at all, follows from the account of the server as it is: \
                `loadline tune … --dry-run` says it.";
    let note = Section::new(Topic::Answer, "", [Part::Text(note.to_owned())]);
    Page::new("", TABLE.iter().map(of).chain([note]))
}
