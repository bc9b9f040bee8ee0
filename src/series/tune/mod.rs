//! Tuning as a strategy: tries remedies under load, keeps only those that help, and confirms them in fresh trials.
//! Pure: it maps trials to the next trial, so it can be tested on simulated servers and can resume from an archive.
//!
//! `docs/tune.md` explains the method and shows simulation results.

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
