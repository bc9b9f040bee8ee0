//! What to say of recorded trials and how: `summary` makes the sentences and tables as values, the others print them.
//! The only module that writes to stdout or holds markup.

mod chart;
pub mod export;
#[cfg(test)]
mod find_sample;
#[cfg(test)]
mod fleet_sample;
#[cfg(test)]
mod history_sample;
mod html;
mod json;
mod markup;
mod progress;
mod quantity;
mod screen;
mod snippets;
mod summary;
mod terminal;
#[cfg(test)]
mod tune_sample;
mod width;
mod words;

pub use chart::{Plot, plots};
pub use html::{fleet_page, history_page, html, post_mortem_page};
pub use json::document;
pub use progress::{Progress, load_line};
pub use screen::{Glyphs, Key, Keys, Pressed, Screen, Size};
pub use summary::{
    Bar, Bars, Block, Depth, Detail, Summary, Table, summarize, summarize_account, summarize_accounts,
    summarize_changes, summarize_fleet, summarize_history, summarize_load, summarize_post_mortem, summarize_remedies,
    summarize_watch, unanswered,
};
pub use terminal::{print, render};
