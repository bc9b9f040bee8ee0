//! Many services on many nodes: what each entry of a plan is, what of it has to be done tonight, and what the answers
//! say together. An engine that exists (Slurm, Kubernetes, a loop in a shell) starts `loadline work` once for each
//! entry.

mod economy;
mod plan;
mod question;
mod service;
mod standing;
mod table;

pub use economy::{Seen, why_here, why_search};
pub use plan::Plan;
pub use question::question;
pub use standing::{Found, Standing};
pub use table::document;
