//! Many services on many nodes: what each entry of a plan is, what of it has to be done tonight, and what the answers
//! say together. An engine that exists (Slurm, Kubernetes, a loop in a shell) starts `loadline work` for each entry.

mod economy;
mod entries;
mod estimate;
mod known;
mod kubernetes;
mod place;
mod plan;
mod question;
mod slurm;

pub use economy::{Seen, why_here, why_search};
pub use entries::{Night, Searched, Spread, blocks};
pub use estimate::Estimate;
pub use known::Known;
pub use kubernetes::kubernetes;
pub use place::Place;
pub use plan::Plan;
pub use question::question;
pub use slurm::slurm;
