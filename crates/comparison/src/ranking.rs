//! The JVMs of a machine side by side: each one's memory by group of owners, and their order.

use crate::owner::{Group, Owner};
use crate::record::{AccountDocument, AccountRecord};
use loadline_base::order::Order as _;

/// A column of the table of all JVMs. Sizes sort largest first, unknown ones last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Column {
    /// Resident memory, with shared pages divided among processes.
    #[default]
    Pss,
    /// Resident memory, with shared pages counted in full.
    Rss,
    /// Process ID, ascending.
    Pid,
    /// Program name, alphabetical.
    Name,
    /// Java heap.
    Heap,
    /// Metaspace, class space, and code cache.
    Classes,
    /// Malloc chunks in use.
    Malloc,
    /// Malloc memory retained after free.
    Retained,
    /// Mapped files, libraries, and the CDS archive.
    Files,
    /// Thread stacks, GC tables, and unexplained memory.
    Rest,
    /// Cgroup limit.
    Limit,
    /// RSS that a full GC would return.
    Gc,
    /// RSS that a malloc trim would return.
    Trim,
}

/// PSS of the owners of a group. Every JVM has a heap and classes, so an account that lists no owner of such a group
/// did not locate it, and the result is `None`. Retained memory is also `None` if malloc is not split.
pub fn group_pss_bytes(account: &AccountRecord, group: Group) -> Option<u64> {
    let mut of_group = account.owners.iter().filter(|owner| Group::of(&owner.name) == group).peekable();
    let unsplit = || account.owners.iter().any(|owner| owner.name == Owner::MallocUnsplit.name());
    let unknown = match group {
        Group::Heap | Group::Classes => true,
        Group::Retained => unsplit(),
        Group::Live | Group::Files | Group::Rest => false,
    };
    if unknown && of_group.peek().is_none() {
        return None;
    }
    Some(of_group.fold(0, |sum, owner| sum.saturating_add(owner.pss_bytes)))
}

/// Sorts accounts by a column; ties stay in pid order.
pub fn rank(accounts: &mut [AccountDocument], by: Column) {
    accounts.order_by_key(|document| document.jvm.pid);
    match by {
        Column::Pid => {}
        Column::Name => {
            accounts.sort_by_cached_key(|document| document.identity.as_ref().map(|of| of.name.to_lowercase()));
        }
        sized => accounts.largest_first(|document| size(document, sized)),
    }
}

/// Returns the value in a size column; `None`, which sorts below any size, if unknown.
fn size(document: &AccountDocument, column: Column) -> Option<u64> {
    let account = document.mark.account.as_ref()?;
    let group = |group| group_pss_bytes(account, group);
    match column {
        Column::Pss => Some(account.pss_bytes),
        Column::Rss => Some(account.total_bytes),
        Column::Heap => group(Group::Heap),
        Column::Classes => group(Group::Classes),
        Column::Malloc => group(Group::Live),
        Column::Retained => group(Group::Retained),
        Column::Files => group(Group::Files),
        Column::Rest => group(Group::Rest),
        Column::Limit => document.mark.charge.as_ref()?.limit_bytes,
        Column::Gc => account.would_return.gc_bytes,
        Column::Trim => account.would_return.trim_bytes,
        Column::Pid | Column::Name => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ChargeRecord, IdentityRecord, Jvm, Mark, OwnerRecord, WouldReturn};

    pub(super) fn document(pid: u32, name: &str, pss_bytes: u64, limit_bytes: Option<u64>) -> AccountDocument {
        let owner = |name: &str, pss_bytes| OwnerRecord { name: name.to_owned(), pss_bytes, ..OwnerRecord::default() };
        let account = AccountRecord {
            pss_bytes,
            total_bytes: pss_bytes * 2,
            owners: vec![owner("java_heap.used", pss_bytes / 2), owner("java_heap.free", 1), owner("later", 2)],
            would_return: WouldReturn { gc_bytes: limit_bytes, ..WouldReturn::default() },
            ..AccountRecord::default()
        };
        let charge = ChargeRecord { limit_bytes, ..ChargeRecord::default() };
        AccountDocument {
            jvm: Jvm { pid, ..Jvm::default() },
            identity: Some(IdentityRecord { name: name.to_owned(), ..IdentityRecord::default() }),
            mark: Mark { account: Some(account), charge: Some(charge), ..Mark::default() },
            ..AccountDocument::default()
        }
    }

    #[test]
    fn sizes_descend_names_and_pids_ascend_and_unknown_is_last() {
        let mut all = vec![document(9, "b", 10, None), document(3, "C", 30, Some(5)), document(4, "a", 30, Some(7))];
        let mut order = |by| {
            rank(&mut all, by);
            all.iter().map(|document| document.jvm.pid).collect::<Vec<_>>()
        };
        assert_eq!(order(Column::Pss), [3, 4, 9]);
        assert_eq!(order(Column::Pid), [3, 4, 9]);
        assert_eq!(order(Column::Name), [4, 9, 3]);
        assert_eq!(order(Column::Limit), [4, 3, 9]);
        assert_eq!(order(Column::Gc), [4, 3, 9]);
        assert_eq!(order(Column::Heap), [3, 4, 9]);
        assert_eq!(order(Column::Trim), [3, 4, 9]);
    }

    #[test]
    fn every_owner_is_in_one_group() {
        let account = document(1, "a", 100, None).mark.account.unwrap();
        let groups: Vec<Option<u64>> = Group::ALL.iter().map(|(group, ..)| group_pss_bytes(&account, *group)).collect();
        assert_eq!(groups, [Some(51), None, Some(0), Some(0), Some(0), Some(2)]);
        let mut unsplit = account;
        unsplit.owners[0].name = "malloc.unsplit".to_owned();
        assert_eq!(group_pss_bytes(&unsplit, Group::Retained), None);
    }
}
