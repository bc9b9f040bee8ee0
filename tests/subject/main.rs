//! Real processes under the real guardian: whatever dies, and however, nothing is left; what they are charged for.
#![expect(clippy::disallowed_methods, reason = "these tests start helpers that are killed")]
#![expect(clippy::print_stdout, reason = "a skipped test says why")]
#![expect(clippy::unwrap_used, reason = "a helper of a test that cannot go on should stop it")]

mod ending;
mod file_pages;
mod guarding;
mod java;
mod limits;
mod support;
