//! The memory account: every resident page of a process gets exactly one owner, and the sum is the RSS.
//!
//! This module reads nothing itself. [`claims()`] names the owner of each range. [`AccountPlan`] cuts the mappings
//! along the claims and lists the further readings that are needed. [`Ledger`] takes the readings and divides each
//! mapping's weight, as reported by the kernel, exactly among its owners. Unclaimed memory is unexplained.

mod claims;
mod close;
mod direct;
mod evidence;
mod heap;
mod ledger;
mod malloc;
mod native;
mod plan;
mod predict;
mod tables;
mod tags;
mod unowned;

pub use crate::owner::Owner;
pub use claims::{Claim, Claims};
pub use close::{backed, claims, close};
pub use direct::split_direct;
pub use evidence::{Explicit, ProcessReadings, Said, Shrinks, Sizing};
pub use heap::{located_by_size, split_heap, used_resident};
pub use ledger::{Account, Detail, Holding, Ledger, LedgerEntry, Region, Remainder};
pub use native::{NativeEvidence, NativeMappings, NativeRange, foreign};
pub use plan::{AccountPlan, Planned, Question, Segment};
pub use predict::{Prediction, Reason, gc, trim};
pub use unowned::{Unowned, unowned};
