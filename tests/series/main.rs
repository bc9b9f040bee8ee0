//! Whole series, entries of plans and fleets on made-up servers: no process, no clock, all of it seeded.
#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on should stop it")]

mod archived;
mod courses;
mod economy;
mod entries;
mod fleets;
mod made_up;
mod runs;
mod whole;
