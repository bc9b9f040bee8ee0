//! Many services on many nodes: a plan's entries, the work due tonight, and the combined results. An existing engine
//! (Slurm, Kubernetes, a shell loop) starts `loadline work` for each entry.
//!
//! ```text
//! fleet file ┐                                          ┌ search or proof of a service ┐
//! scenarios  ┼→ Fleet ─ settle · build · hash ─→ Plan ──┼ blocks of a comparison       ┼→ results ─→ document
//! last lines ┘          (cli with series)    (fleet)    └ a node each, by an engine    ┘     └──── last lines
//! ```
//!
//! A plan is a value: `fleet::Plan` is its text, sealed by the hash of its entries, each of which contains a complete
//! scenario. `fleet::Night` decides for each service whether to confirm its line or search for it. The hashes of the
//! question and of the trials' input files (`fleet::question`, `Configuration::inputs`) are compared with those of the
//! last line. Planning inspects no machine: it builds and hashes (`Preparing::seal`), and each node prepares for
//! itself.
//!
//! `work` executes one entry in its own directory. Its result gets its final name last, through a link, so that only
//! one of two workers gets the name. Functions in `fleet` decide what follows from a confirmation, which of two results
//! counts, and which doubts a node raises. Entries and blocks never span nodes, so nothing is compared across nodes.
//!
//! `fleet::Standing` decides which results count, and `result` combines a comparison's blocks. `fleet::slurm` and
//! `fleet::kubernetes` generate text: they quote untrusted names and paths, and tests check the output with bash and
//! the Kubernetes schemas.

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
