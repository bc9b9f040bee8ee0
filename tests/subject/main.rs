//! Real processes under the real guardian: whatever dies, nothing is left. Also covers the processes' charges.
#![expect(clippy::disallowed_methods, reason = "these tests start helpers that are killed")]
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

mod containers;
mod ending;
mod file_pages;
mod guarding;
mod limits;
#[path = "../shared/small_disk.rs"]
mod small_disk;
mod support;
#[path = "../shared/waiting.rs"]
mod waiting;
