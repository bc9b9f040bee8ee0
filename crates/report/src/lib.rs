//! Presents results: `summary` builds a page for each, and `terminal`, `html`, and `export::markdown` print it. Only
//! this crate writes to stdout or contains markup. It neither measures nor judges.

use loadline_base::{error, units};
use loadline_comparison as comparison;
use loadline_diagnosis as diagnosis;
use loadline_jvm::owner;
use loadline_model::{doubt, record, scenario};
#[cfg(test)]
use loadline_samples::{find as find_sample, fleet as fleet_sample, history as history_sample, tune as tune_sample};
use loadline_search as search;

mod chart;
pub mod export;
mod html;
mod json;
mod markup;
mod page;
mod progress;
mod quantity;
mod screen;
mod snippets;
mod summary;
mod table;
mod terminal;
mod width;
mod words;

pub use chart::{Plot, plots};
pub use html::{account_page, fleet_page, history_page, html, post_mortem_page};
pub use json::document;
pub use page::{Bar, Bars, Depth, Page, Part, Section, Topic, Verdict};
pub use progress::{Progress, load_line};
pub use screen::{Glyphs, Key, Keys, Pressed, Screen, Size};
pub use snippets::{PatchHost, patch};
pub use summary::{
    Detail, summarize, summarize_account, summarize_accounts, summarize_advice, summarize_archived, summarize_changes,
    summarize_charge, summarize_fleet, summarize_history, summarize_load, summarize_oom, summarize_post_mortem,
    summarize_remedies, summarize_watch, unanswered,
};
pub use table::{Cell, Table};
pub use terminal::{print, render};
