//! One table of remedies that may lower the resident memory of a JVM. Each has its change, the owners that it moves,
//! its possible cost, the evidence for and against it, and when it is worth a trial. This code only computes.
//!
//! `docs/reference/remedies.md` shows the same table. A setting that lowers no resident page is not a remedy: `-Xss`,
//! `ReservedCodeCacheSize` and `MaxMetaspaceSize` reserve or bound address space (measured, and JDK 17–25 sources).

pub(crate) mod changes;
mod cures;
mod facts;
mod heap;
mod offers;
mod others;
mod table;

pub use facts::Facts;
pub use offers::{Ceiling, NotOffered, Offer, Offered, begins, offers};
pub(crate) use table::flags_needed;
pub use table::{Group, Remedy, TABLE, needs_warmth};
