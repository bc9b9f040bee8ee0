//! Many services on many nodes: what each entry of a plan is, what of it has to be done tonight, and what the answers
//! say together. An engine that exists (Slurm, Kubernetes, a loop in a shell) starts `loadline work` for each entry.
//!
//! ```text
//! fleet file ┐                                          ┌ search or proof of a service ┐
//! scenarios  ┼→ Fleet ─ settle · build · hash ─→ Plan ──┼ blocks of a comparison       ┼→ results ─→ document
//! last lines ┘          (cli with series)    (fleet)    └ a node each, by an engine    ┘     └──── last lines
//! ```
//!
//! A plan is a value, too: `fleet::Plan` is its text, sealed by the hash of its entries, each of which has a whole
//! scenario. `fleet::Night` decides for each service whether its line is proved or searched: what is asked and what
//! trials read are hashes (`fleet::question`, `Configuration::inputs`), which are compared with those of the last line.
//! Planning looks at no machine: it builds and hashes (`Preparing::seal`), and a node prepares for itself. `work` does
//! one entry: aside, in a folder of its own, whose result gets its name last, by a link that one of two gets. What a
//! proof that was made leads to, which of two results stands and what a node is doubted for are functions of `fleet`.
//! An entry never spans nodes; a node is a block, so that no difference is between two of them. `fleet::Standing`
//! decides which results count, `result` joins the blocks of a comparison. `fleet::slurm` and `fleet::kubernetes` are
//! text: names and paths of others are quoted there, and tests hold them to bash and to the schemas of Kubernetes.

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
