//! The conductor of one trial: start, ready, marks, phases, end. Emits events and yields a record; knows nothing of
//! terminals, files or other trials.

mod account_record;
mod accounting;
mod answering;
mod cgroup_record;
mod conductor;
mod crowd;
mod direct;
mod doubts;
mod driver;
mod driving;
mod ending;
mod event;
mod files;
mod guard;
mod loading;
mod mark;
mod others;
mod own;
mod phase;
mod reach;
mod sampler;
mod sum;
mod tally;
mod tools;
mod unweighable;
mod watched;
mod weigh;
mod weighing;
mod work_record;

pub use conductor::{Conducted, conduct};
pub use event::{Event, Sink};
pub use loading::{LoadEvent, Loaded, Loading, is_measured};
pub use phase::describe;
pub use reach::{Reached, reach};
pub use tools::Tools;
pub use weighing::{Weighed, Weighing};

/// Seconds from one reading of the clock to another.
fn seconds_since(origin_ns: u64, now_ns: u64) -> f64 {
    now_ns.saturating_sub(origin_ns) as f64 / 1e9
}
