//! Handwritten documents for page and export tests in `crates/report` and `tests/browser`. The numbers are invented,
//! but as consistent as measured ones.
#![expect(clippy::unwrap_used, reason = "a sample that cannot be built should fail its test")]

pub mod documents;
pub mod find;
pub mod fleet;
pub mod history;
pub mod tune;
