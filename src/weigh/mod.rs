//! Measures a subject's processes, repeatedly or once: reads them from outside, queries them, and builds their account.
//! Independent of trials.

mod account_record;
mod answering;
mod beside;
pub(crate) mod bundle;
mod compilations;
pub(crate) mod container;
mod direct;
mod direct_reader;
mod flags;
mod identity;

mod loaders;
mod machine_wide;
mod objects;
mod once;
mod outside;
mod processes;
mod sampler;
mod scales;
mod sum;
mod thread_list;
mod thread_pools;
mod tree_samples;
mod used;
mod watched;
mod weighing;

pub(crate) use direct::{DirectMemory, Gate};
pub(crate) use machine_wide::{Candidates, weigh_candidate};
pub(crate) use objects::record as live_objects;
pub(crate) use once::{AccountOptions, Collecting, LIST_JVMS, check_jvm};
pub(crate) use once::{price_of_dump, price_of_objects, tool_options};
pub(crate) use outside::{Ceilings, Outside, OutsideReading};
pub(crate) use processes::Processes;
pub(crate) use sampler::{Cost, Inside, Sampler, Sources};
pub(crate) use scales::Scales;
pub(crate) use tree_samples::Members;
pub(crate) use used::Used;
pub(crate) use watched::Identity;

pub(crate) use weighing::{AskNmt, MarkSettings, Moment};
#[cfg(test)]
pub(crate) use {scales::Living, used::Spending, weighing::MarkReading};
