//! Weighing the processes of a subject, again and again or once: what is read from outside, what they are asked, and
//! the account of it. Knows no trial.

mod account_record;
mod accounting;
mod answering;
mod charge;
mod direct;
mod once;
mod process_tree;
mod sampler;
mod sum;
mod tree_samples;
mod unweighable;
mod watched;
mod weighing;

pub(crate) use direct::{DirectMemory, Gate};
pub use once::{Weighed, Weighing};
pub(crate) use process_tree::{ProcessTree, Used, same_kind};
pub(crate) use sampler::{Sampler, Sources};
pub(crate) use sum::{Part, doubt as sum_doubt, sum};
pub(crate) use watched::Watched;
pub(crate) use weighing::{AskNmt, Moment, Taken, Weigh};
