//! Executes one entry of a plan, however often an engine starts it. Finished work is left alone, interrupted work is
//! resumed, and the result gets its name last. The caller supplies the runner of trials.

mod aside;
mod entry;
mod home;
mod seeing;

pub use entry::{Blocks, By, Done, Runner, Searched, Stopped, WorkerInput, work};
pub use seeing::{place_after, place_before};
