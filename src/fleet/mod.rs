//! Many services on many nodes: the entries of a plan, the work that is due tonight, and what the answers say together.
//! An engine that exists (Slurm, Kubernetes, a loop in a shell) starts `loadline work` for each entry.
//!
//! ```text
//! fleet file ┐                                          ┌ search or proof of a service ┐
//! scenarios  ┼→ Fleet ─ settle · build · hash ─→ Plan ──┼ blocks of a comparison       ┼→ results ─→ document
//! last lines ┘          (cli with series)    (fleet)    └ a node each, by an engine    ┘     └──── last lines
//! ```
//!
//! A plan is a value, too: `fleet::Plan` is its text, sealed by the hash of its entries, each of which has a whole
//! scenario. `fleet::Night` decides for each service whether its line is proved or searched. The question and the files
//! that trials read are hashed (`fleet::question`, `Configuration::inputs`), and these hashes are compared with those
//! of the last line. Planning looks at no machine: it builds and hashes (`Preparing::seal`), and a node prepares for
//! itself.
//!
//! `work` does one entry, in a separate folder of its own. Its result gets its final name last, by a link: of two
//! workers, only one gets the name. Functions of `fleet` decide what follows from a proof, which of two results counts,
//! and which doubts a node raises. An entry never spans nodes. Each node is a block, so no difference is between two
//! nodes.
//!
//! `fleet::Standing` decides which results count, and `result` joins the blocks of a comparison. `fleet::slurm` and
//! `fleet::kubernetes` are text: they quote foreign names and paths, and tests check them with bash and the schemas of
//! Kubernetes.

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
