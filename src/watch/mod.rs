//! Watches running JVMs: memory, growth, time until a limit, and the memory before a kill. It does not attach to or
//! pause them unless an account is requested.
//!
//! ```text
//! World ── samples ─→ History (cells) ─→ verdicts ── growth::Ladder ─→ WatchedJvm ─→ screen · scrape · otlp · document
//!                          └────────────────────────────────────────→ post-mortem
//! ```
//!
//! `watch::Watching` reads each JVM of a `World` in turns: this machine (`watch::here`), or a simulation in tests. A
//! sample has 23 numbers (`watch::Column`), stored in a file of three rings of cells. A new writer continues an
//! interrupted file. Cells are numbered from the JVM's start, so windows refer to its age. `growth` judges the minima
//! of ten-minute cells in a ladder of windows; it knows only numbers, not JVMs.

mod account;
mod bounds;
mod cell;
mod collector;
mod column;
mod course;
mod crew;
mod ends;
mod here;
mod history;
mod keeping;
mod kept;
pub(crate) mod kernel_kills;
mod kills;
mod lane;
mod lives;
mod name;
mod post_mortem;
mod push;
mod sample;
mod sealed;
mod seen;
mod serve;
mod shown;
mod unwritten;
mod verdicts;
mod watching;
mod web_config;
mod when_weighed;
pub mod world;

#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod made_up;
#[cfg(test)]
mod watching_tests;

pub use account::top;
pub use bounds::Bounds;
pub use cell::Cell;
pub use collector::Collector;
pub use column::Column;
pub use ends::Ends;
pub use here::{Here, Which};
pub use history::{Past, Tier, create_folder};
pub use keeping::{Sweeps, keep_within};
pub use kept::{Kept, KilledBy};
pub use post_mortem::{add_accounts, post_mortem};
pub use push::Pushing;
pub use sample::Sample;
pub use seen::{ByAccount, NamedHistories, place};
pub use serve::{HttpRequest, HttpResponse, HttpServer, ListenAddress};
pub use verdicts::Thing;
pub use watching::{Histories, How, Watching};
pub use web_config::{ServerTls, web_config};
pub use when_weighed::{Attaching, WhenWeighed};
pub use world::World;
