//! The account of memory: every resident page of a process gets exactly one owner, and the sum is the RSS.
//!
//! Pure. [`claims`] says who owns which range; [`Plan`] cuts the mappings by the claims and says what has to be read to
//! know more; [`Ledger`] takes what was read and closes: each mapping's weight, as the kernel states it, is divided
//! among its owners exactly, and what nobody claims is unexplained.

mod claims;
mod heap;
mod ledger;
mod malloc;
mod owner;
mod plan;
mod tags;

pub use claims::{Claim, Claims};
pub use heap::split_heap;
pub use ledger::{Account, Detail, Holding, Ledger, Part, Region, Remainder};
pub use malloc::{heap_parts, mmapped_parts};
pub use owner::Owner;
pub use plan::{Plan, Question, Segment};
pub use tags::{TagNames, TagSum};
