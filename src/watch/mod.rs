//! Watching JVMs that run: what each holds, what grows, when it meets its limit, and what it held when it was killed.
//! Nothing is asked of them and nothing is held, unless an account is asked for.
//!
//! ```text
//! World ── samples ─→ History (cells) ─→ verdicts ── growth::Ladder ─→ WatchedJvm ─→ screen · scrape · otlp · document
//!                          └────────────────────────────────────────→ post-mortem
//! ```
//!
//! `watch::Watching` looks at each JVM of a `World` in turns: this machine (`watch::here`), or a made-up one in tests.
//! A sample is 23 numbers (`watch::Column`), which go into a file of three rings of cells. The next writer of the file
//! goes on where the last one was cut off. Cells are numbered from the JVM's start, so that windows are those of its
//! age. `growth` judges the least values of ten-minute cells, in a ladder of windows; it knows numbers and no JVM.

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
