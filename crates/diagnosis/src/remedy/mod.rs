//! A table of remedies that may reduce a JVM's resident memory. Each has its change, the owners affected, its possible
//! cost, the evidence for and against it, and when it is worth a trial. No I/O.
//!
//! `docs/reference/remedies.md` shows the same table. Settings that reduce no resident pages are not remedies: `-Xss`,
//! `ReservedCodeCacheSize`, and `MaxMetaspaceSize` only reserve or bound address space (measured, and JDK 17–25
//! sources).

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
