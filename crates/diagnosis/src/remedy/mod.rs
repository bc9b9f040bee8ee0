//! What may lower the resident memory of a JVM: one table of remedies, each with what it changes, whom it moves, what
//! it may cost, what is known for and against it, and when it is worth a trial. Pure.
//!
//! `docs/tune.md` shows the same table. What lowers no resident page is none: `-Xss`, `ReservedCodeCacheSize` and
//! `MaxMetaspaceSize` reserve or bound address space (measured, and JDK 17–25 sources).

pub mod changes;
mod facts;
mod heap;
mod malloc;
mod offers;
mod others;
mod table;

pub use facts::Facts;
pub use offers::{NotOffered, Offer, Offered, begins, offers};
pub use table::{Group, Remedy, TABLE};
