//! The GitHub action, the component of GitLab and the workflows of the documents: scripts are run with the variables
//! that a runner sets, against a made-up API on loopback; their YAML is held to its form, and to actionlint.
#![expect(clippy::disallowed_methods, reason = "these tests call the scripts themselves")]
#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on should stop it")]

mod api;
#[path = "../shared/archive_halves.rs"]
mod archive_halves;
mod metadata;
mod runner;
mod scripts;
#[path = "../shared/skipping.rs"]
mod skipping;
