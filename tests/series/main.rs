//! Complete series, plan entries, and fleets on simulated servers: no processes, no clock, all seeded.
#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on should stop it")]

mod archived;
mod courses;
mod economy;
mod entries;
mod fleets;
mod made_up;
mod runs;
mod whole;
