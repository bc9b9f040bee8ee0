//! Compares two accounts of one JVM: the change in each owner, and the parts that caused it. Threads whose names differ
//! only in numbers form a pool.

use super::owners::told_bytes;
use crate::owner::{Owner, place};
use crate::record::{
    AccountRecord, LoaderSum as Sum, LoaderType, LoadersRecord, OwnerChangeRecord, PartChangeRecord, pool_names,
};
use crate::units::growth;
use loadline_base::order::Order as _;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The kind of part whose names are merged into pools.
const THREAD: &str = "thread";
/// The kind of part that is a class loader's type.
const LOADER: &str = "loader";

/// Every owner in either account, in account order.
pub fn owner_changes(then: &AccountRecord, now: &AccountRecord) -> Vec<OwnerChangeRecord> {
    let mut names: Vec<&str> = then.owners.iter().chain(&now.owners).map(|owner| owner.name.as_str()).collect();
    names.push(Owner::Unexplained.name());
    names.sort_unstable();
    names.dedup();
    names.order_by_key(|name| place(name));
    let change = |name: &str| {
        let (then_bytes, now_bytes) = (told_bytes(then, name), told_bytes(now, name));
        let growth_bytes = then_bytes.zip(now_bytes).map(|(then, now)| growth(then, now));
        OwnerChangeRecord { name: name.to_owned(), then_bytes, now_bytes, growth_bytes }
    };
    names.into_iter().map(change).collect()
}

/// A part of an account: its kind, its owner, and its own or its pool's name.
type PartKey = (String, String, String);

#[derive(Debug, Clone, Copy, Default)]
struct PartAmount {
    count: u64,
    rss_bytes: u64,
    allocated_bytes: Option<u64>,
}

/// Changed parts by kind, largest change first: by requested bytes if known, otherwise by RSS.
pub fn part_changes(then: &AccountRecord, now: &AccountRecord) -> Vec<PartChangeRecord> {
    let pools = pool_names(threads(then).chain(threads(now)));
    changed(&parts(then, &pools), &parts(now, &pools))
}

/// Changed class loader types: the number of loaders, and their metaspace and class space.
pub fn loader_changes(then: &LoadersRecord, now: &LoadersRecord) -> Vec<PartChangeRecord> {
    let amounts = |record: &LoadersRecord| {
        let amount = |of: &LoaderType| {
            let Sum { loaders: count, taken_bytes, .. } = of.now;
            let owner = Owner::Metaspace.name().to_owned();
            let amount = PartAmount { count, rss_bytes: 0, allocated_bytes: Some(taken_bytes) };
            ((LOADER.to_owned(), owner, of.name.clone()), amount)
        };
        record.types.iter().map(amount).collect::<BTreeMap<PartKey, PartAmount>>()
    };
    changed(&amounts(then), &amounts(now))
}

fn changed(then: &BTreeMap<PartKey, PartAmount>, now: &BTreeMap<PartKey, PartAmount>) -> Vec<PartChangeRecord> {
    let mut keys: Vec<&PartKey> = then.keys().chain(now.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let none = PartAmount::default();
    let change = |part: &PartKey| {
        let [before, after] = [then, now].map(|of| of.get(part).unwrap_or(&none));
        // If one account has requested bytes, a part missing from the other one requested nothing.
        let known = before.allocated_bytes.or(after.allocated_bytes).is_some();
        let allocated_bytes = |of: &PartAmount| known.then_some(of.allocated_bytes.unwrap_or(0));
        let (kind, owner, name) = part.clone();
        PartChangeRecord {
            kind,
            owner,
            name,
            then_count: before.count,
            now_count: after.count,
            then_bytes: before.rss_bytes,
            now_bytes: after.rss_bytes,
            growth_bytes: growth(before.rss_bytes, after.rss_bytes),
            then_allocated_bytes: allocated_bytes(before),
            now_allocated_bytes: allocated_bytes(after),
        }
    };
    let mut changes: Vec<PartChangeRecord> = keys.into_iter().map(change).filter(differs).collect();
    changes.order_by(|one, other| {
        one.kind.cmp(&other.kind).then_with(|| Reverse(change_bytes(one)).cmp(&Reverse(change_bytes(other))))
    });
    changes
}

fn change_bytes(part: &PartChangeRecord) -> u64 {
    let asked = part.then_allocated_bytes.zip(part.now_allocated_bytes).map(|(then, now)| then.abs_diff(now));
    asked.unwrap_or(part.growth_bytes.unsigned_abs())
}

fn differs(part: &PartChangeRecord) -> bool {
    part.growth_bytes != 0 || part.then_count != part.now_count || part.then_allocated_bytes != part.now_allocated_bytes
}

/// The parts of an account, with equal names merged.
fn parts(account: &AccountRecord, pools: &BTreeMap<&str, String>) -> BTreeMap<PartKey, PartAmount> {
    let mut found: BTreeMap<PartKey, PartAmount> = BTreeMap::new();
    for (owner, detail) in account.owners.iter().flat_map(|owner| owner.detail.iter().map(move |part| (owner, part))) {
        let name = if detail.kind == THREAD { pools.get(detail.name.as_str()) } else { None };
        let key = (detail.kind.clone(), owner.name.clone(), name.unwrap_or(&detail.name).clone());
        let amount = found.entry(key).or_default();
        amount.count = amount.count.saturating_add(detail.count);
        amount.rss_bytes = amount.rss_bytes.saturating_add(detail.rss_bytes);
        if let Some(bytes) = detail.allocated_bytes {
            amount.allocated_bytes = Some(amount.allocated_bytes.unwrap_or(0).saturating_add(bytes));
        }
    }
    found
}

fn threads(account: &AccountRecord) -> impl Iterator<Item = &str> {
    let all = account.owners.iter().flat_map(|owner| &owner.detail);
    all.filter(|part| part.kind == THREAD).map(|part| part.name.as_str())
}

#[cfg(test)]
#[path = "account_changes_tests.rs"]
mod tests;
