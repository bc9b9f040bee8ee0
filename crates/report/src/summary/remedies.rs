//! The table of remedies for users.

use super::tune::price_words;
use crate::diagnosis::remedy::TABLE;
use crate::page::{Page, Part, Section, Topic};

/// Every remedy with its effect, owners, cost, and source.
pub fn summarize_remedies() -> Page {
    let of = |remedy: &crate::diagnosis::remedy::Remedy| {
        let owners: Vec<&str> = remedy.owners.iter().map(|owner| owner.entry().label).collect();
        let facts = [
            ("effect", remedy.what.to_owned()),
            ("affects", owners.join("; ")),
            ("cost", price_words(remedy.price).to_owned()),
            ("source", remedy.source.to_owned()),
            ("caveat", remedy.against.to_owned()),
        ];
        Section::new(Topic::Answer, remedy.id, [Part::facts(facts)])
    };
    let note = "`loadline tune … --dry-run` lists the remedies that it would try on your server, with their values.";
    let note = Section::new(Topic::Answer, "", [Part::Text(note.to_owned())]);
    Page::new("", TABLE.iter().map(of).chain([note]))
}
