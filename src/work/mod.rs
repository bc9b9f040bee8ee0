//! One entry of a plan, from its index to its result, however often an engine begins it: what is done already is left,
//! what was cut off is gone on with, and what comes of it gets its name last. Who makes the trials is handed in.

mod aside;
mod entry;
mod home;
mod seeing;

pub use entry::{Asked, Blocks, By, Done, Runner, Searched, Stopped, work};
pub use seeing::{place_after, place_before};
