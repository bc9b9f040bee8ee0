//! The bytes that an owner holds in an account, if the account can distinguish that owner from others.

use crate::owner::Owner::{
    self, JavaHeap, JavaHeapFree, JavaHeapGarbage, JavaHeapLive, JavaHeapUsed, MallocLive, MallocNonHotspot,
    MallocRetained, MallocUnsplit, Unexplained,
};
use crate::owner::{family, is_heap};
use crate::record::{AccountRecord, Mark, OwnerRecord};

/// Owners that are unknown if the account lists another owner instead.
const IN_THEIR_PLACE: &[(Owner, &[Owner])] = &[
    (JavaHeap, &[JavaHeapUsed, JavaHeapLive]),
    (JavaHeapUsed, &[JavaHeap, JavaHeapLive]),
    (JavaHeapLive, &[JavaHeap, JavaHeapUsed]),
    (JavaHeapGarbage, &[JavaHeap, JavaHeapUsed]),
    (JavaHeapFree, &[JavaHeap]),
    (MallocLive, &[MallocUnsplit]),
    (MallocNonHotspot, &[MallocUnsplit]),
    (MallocRetained, &[MallocUnsplit]),
];

/// Returns the bytes that an owner holds. An account lists only owners that hold something. So an unlisted owner holds
/// nothing, unless this account could not distinguish it from others.
pub(super) fn held(account: &AccountRecord, owner: &str) -> Option<f64> {
    held_bytes(account, owner).map(|bytes| bytes as f64)
}

/// The same as an integer.
pub(super) fn held_bytes(account: &AccountRecord, owner: &str) -> Option<u64> {
    let named = |name: &str| account.owners.iter().find(|held| held.name == name);
    if let Some(held) = named(owner) {
        return Some(held.rss_bytes);
    }
    let others = IN_THEIR_PLACE.iter().filter(|(of, _)| of.name() == owner).flat_map(|(_, others)| *others);
    others.copied().all(|other| named(other.name()).is_none()).then_some(0)
}

/// The same for accounts displayed side by side. Also `None` for an owner of the heap if the account lists no heap
/// owner at all. Also `None` for an unlisted owner of malloc if the account could not split all of malloc.
pub fn told_bytes(account: &AccountRecord, owner: &str) -> Option<u64> {
    let lists = |other: &dyn Fn(&str) -> bool| account.owners.iter().any(|held| other(&held.name));
    let unsplit = MallocUnsplit.name();
    match () {
        () if lists(&|name| name == owner) => held_bytes(account, owner),
        () if owner == Unexplained.name() => Some(account.unexplained_bytes),
        () if is_heap(owner) && !lists(&is_heap) => None,
        () if family(owner) == family(unsplit) && lists(&|name| name == unsplit) => None,
        () => held_bytes(account, owner),
    }
}

/// Merges malloc into one row in both accounts if one of them could not split it.
pub fn unsplit_alike(then: &mut AccountRecord, now: &mut AccountRecord) {
    let unsplit = Owner::MallocUnsplit.name();
    if then.holds(unsplit).min(now.holds(unsplit)) > 0 || then.holds(unsplit).max(now.holds(unsplit)) == 0 {
        return;
    }
    for account in [then, now] {
        let is_of_malloc = |owner: &mut OwnerRecord| family(&owner.name) == family(unsplit);
        let rows: Vec<OwnerRecord> = account.owners.extract_if(.., is_of_malloc).collect();
        let sum = |size: fn(&OwnerRecord) -> u64| rows.iter().map(size).fold(0, u64::saturating_add);
        account.owners.push(OwnerRecord {
            name: unsplit.to_owned(),
            rss_bytes: sum(|row| row.rss_bytes),
            pss_bytes: sum(|row| row.pss_bytes),
            swap_bytes: sum(|row| row.swap_bytes),
            detail: Vec::new(),
        });
    }
}

/// Only the bytes of each owner of an account: small enough to keep thousands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Holdings(AccountRecord);

impl Holdings {
    /// Takes the holdings from an account.
    pub fn of(account: &AccountRecord) -> Self {
        let owners = account.owners.iter().map(|owner| (owner.name.as_str(), owner.rss_bytes));
        let unexplained_bytes = account.unexplained_bytes;
        Self(AccountRecord { unexplained_bytes, ..AccountRecord::holding(owners) })
    }

    /// Names of the owners that hold something.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        self.0.owners.iter().map(|owner| owner.name.as_str())
    }

    /// Returns the bytes that an owner holds; `None` if the account does not show it.
    pub fn bytes(&self, owner: &str) -> Option<u64> {
        told_bytes(&self.0, owner)
    }
}

/// RSS without retained malloc memory. Fresh JVMs of one configuration differ far less in this than in RSS. `None` if
/// the account does not show how much is retained.
pub(super) fn in_use(mark: &Mark) -> Option<f64> {
    let retained = held(mark.account.as_ref()?, MallocRetained.name())?;
    Some((mark.rss_bytes as f64 - retained).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(owners: &[(&str, u64)]) -> Mark {
        let account = AccountRecord::holding(owners.iter().copied());
        Mark { rss_bytes: 100, account: Some(account), ..Mark::default() }
    }

    #[test]
    fn a_missing_owner_is_zero_or_unknown() {
        let told = |owners: &[(&str, u64)], owner: &str| told_bytes(&mark(owners).account.unwrap(), owner);
        assert_eq!(told(&[("java_heap.used", 7)], "java_heap.used"), Some(7));
        assert_eq!(told(&[("java_heap.used", 7)], "java_heap.free"), Some(0), "a fully used heap has no free part");
        assert_eq!(told(&[("java_heap.live", 7)], "java_heap.used"), None);
        assert_eq!(told(&[("java_heap", 7)], "java_heap.free"), None);
        assert_eq!(told(&[("cds", 7)], "java_heap.used"), None, "without a located heap, its used part is unknown");
        assert_eq!(told(&[("malloc.unsplit", 7)], "malloc.mmapped"), None);
        assert_eq!(told(&[("malloc.live", 7)], "malloc.mmapped"), Some(0));
        assert_eq!((told(&[], "gc"), told(&[], "unexplained")), (Some(0), Some(0)));
    }

    #[test]
    fn retained_malloc_memory_is_not_in_use() {
        assert_eq!(in_use(&mark(&[("malloc.live", 10), ("malloc.retained", 30)])), Some(70.0));
        assert_eq!(in_use(&mark(&[("malloc.live", 10)])), Some(100.0), "without retained memory, all RSS is in use");
        assert_eq!(in_use(&mark(&[("malloc.unsplit", 40)])), None, "the retained part of undivided malloc is unknown");
        assert_eq!(in_use(&Mark { rss_bytes: 100, ..Mark::default() }), None, "RSS alone is not enough");
        // The pages were read slightly later than RSS.
        assert_eq!(in_use(&mark(&[("malloc.retained", 130)])), Some(0.0));
    }
}
