//! The search for the load line: which trial comes next, and what all of them say. Pure: it is given trials and asks
//! for one, so that a search can be tested on made-up functions, and goes on from an archive.
//!
//! `docs/find.md` explains the method and has what simulations say of it.

mod answers;
mod cause;
mod conclusion;
mod course;
mod edge;
mod grid;
mod guarding;
mod heap;
mod needs;
mod question;
mod rules;
mod ruling;
mod spec;
mod strategy;

pub use cause::{cause_of, is_disturbed};
pub use conclusion::{PROOF_CONFIDENCE, conclude, cpu_per_request, failing_share_max};
pub use course::{Attempt, Move, next};
pub use edge::{Answer, EdgeStep, Patience, Stage, next as next_on_edge};
pub use grid::Grid;
pub use needs::Needs;
pub use question::{check, found, settle, usual_target};
pub use rules::rules;
pub(super) use ruling::{DISCARDED_MAX, Ruling, discarded};
pub use spec::SearchSpec;
pub use strategy::Search;
