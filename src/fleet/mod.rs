//! Many services on many nodes: what each entry of a plan is, what of it has to be done tonight, and what the answers
//! say together. An engine that exists (Slurm, Kubernetes, a loop in a shell) starts `loadline work` for each entry.

mod answer;
mod economy;
mod entries;
mod estimate;
mod known;
mod kubernetes;
mod layout;
mod place;
mod plan;
mod question;
mod service;
mod slurm;
mod standing;
mod started;
mod table;

pub use answer::{LineConditions, Proof, folder_of, last_of, outweighs, proof_below, proof_of, proved};
pub use economy::{ServiceVersions, why_here, why_search};
pub use entries::{Night, Searched, Spread, blocks};
pub use estimate::Estimate;
pub use known::KnownServices;
pub use kubernetes::kubernetes;
pub use layout::JobSettings;
pub use place::{PlaceSeen, place_doubts};
pub use plan::Plan;
pub use question::question;
pub use slurm::slurm;
pub use standing::{ResultCopies, Standing};
pub use started::{EntrySelection, Started};
pub use table::document;
