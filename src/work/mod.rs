//! One entry of a plan, from its index to its result, however often an engine begins it. Finished work is left alone,
//! work that was cut off is resumed, and the result gets its name last. The caller supplies the maker of trials.

mod aside;
mod entry;
mod home;
mod seeing;

pub use entry::{Blocks, By, Done, Runner, Searched, Stopped, WorkerInput, work};
pub use seeing::{place_after, place_before};
