//! The search for the load line: determines the next trial, and the result from all trials.
//!
//! This crate only computes: it takes trials and returns the next one, so a search can be tested on simulated functions
//! and continue from an archive. `docs/find.md` explains the method and shows simulation results.

use loadline_base::{error, numbers, units};
use loadline_comparison as comparison;
use loadline_model::{doubt, record, scenario};

mod advice;
mod answers;
mod cause;
mod conclusion;
mod course;
mod edge;
mod grid;
pub mod guarding;
mod heap;
mod needs;
mod over;
mod pace;
mod question;
mod rules;
mod ruling;
mod seen;
mod soak;
mod spec;

pub use advice::{HeapSeen, PartSeen, Seen, advise};
pub use cause::cause_of;
pub use conclusion::{
    PROOF_CONFIDENCE, conclude, cpu_per_request, cpu_without_jit_per_request, failing_share_max, gc_cpu_per_request,
};
pub use course::{Attempt, next};
pub use edge::Stage;
pub use over::line_over;
pub use pace::least_s;
pub use question::{check, found, given, settle, spec, usual_target};
pub use rules::rules;
pub use ruling::{DISCARDED_MAX, Ruling, discarded, is_short_of_memory};
pub use spec::SearchSpec;
