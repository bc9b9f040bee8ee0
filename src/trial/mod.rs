//! The conductor of one trial: start, ready, marks, phases, end. It emits events and produces a record; it is
//! independent of terminals, files, and other trials.

mod cgroup_record;
mod conductor;
mod description;
mod doubts;
mod driver;
mod ending;
mod engine_thread;
mod event;
mod explain;
mod files;
mod guard;
mod here;
mod inside;
mod loading;
#[cfg(test)]
mod made_up;
mod mark;
mod markers;
mod own;
mod phase;
mod reach;
mod tally;
#[cfg(test)]
mod tests;
mod tools;
mod trialling;
mod usage;
mod warming;
mod work_record;
mod world;

pub use conductor::{conduct, first_answer};
pub use description::describe_load;
pub use ending::Conducted;
pub use event::{Event, Sink};
pub use loading::{LoadEvent, Loaded, Loading, is_measured};
pub use reach::{Reached, reach};
pub use tools::Tools;
