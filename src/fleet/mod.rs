//! Many services on many nodes: what each entry of a plan is, what of it has to be done tonight, and what the answers
//! say together. An engine that exists (Slurm, Kubernetes, a loop in a shell) starts `loadline work` once for each
//! entry.

mod answer;
mod economy;
mod place;
mod plan;
mod question;
mod started;

pub use answer::{Known, Proof, folder_of, last_of, outweighs, proof_below, proof_of, proved};
pub use economy::{Seen, why_here, why_search};
pub use place::{PlaceSeen, place_doubts};
pub use plan::Plan;
pub use question::question;
pub use started::{Started, Typed};
