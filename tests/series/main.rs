//! Complete series, plan entries, and fleets on simulated servers: no processes, no clock, all seeded.
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

mod archived;
mod courses;
mod economy;
mod entries;
mod fleets;
mod made_up;
mod runs;
mod whole;
