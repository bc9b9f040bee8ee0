//! Tuning as a strategy: remedies tried under the load, kept only where they help, and proved in fresh trials. Pure: it
//! is given trials and asks for one, so that it can be tested on made-up servers, and goes on from an archive.
//!
//! `docs/tune.md` explains the method and has what simulations say of it.

mod conclusion;
mod fates;
mod judging;
mod outcome;
mod question;
mod scheduler;
mod setting;
mod strategy;

pub(crate) use conclusion::found;
pub(crate) use question::{LINE_AS_IS, LINE_TUNED, check, lines, settle};
pub(crate) use strategy::Tuner;

#[cfg(test)]
mod simulation_tests;
#[cfg(test)]
mod tests;
