//! Synthetic account documents: which earlier one is compared, and the evidence that it is from another process.

use super::*;
use crate::record::{IdentityRecord, Jvm, Mark, OwnerRecord};

fn account(pid: u32, started_ticks: u64, rss_bytes: u64) -> AccountDocument {
    let owner = OwnerRecord { name: "cds".to_owned(), rss_bytes, pss_bytes: rss_bytes, ..OwnerRecord::default() };
    let account =
        AccountRecord { total_bytes: rss_bytes, pss_bytes: rss_bytes, owners: vec![owner], ..AccountRecord::default() };
    AccountDocument {
        taken: "2026-11-21T04:36:21Z".to_owned(),
        jvm: Jvm { pid, ..Jvm::default() },
        subject_command: vec!["java".to_owned()],
        identity: Some(IdentityRecord {
            name: "app.jar".to_owned(),
            started: Some("2026-11-21T03:00:00Z".to_owned()),
            started_ticks,
            boot_id: Some("a".to_owned()),
        }),
        mark: Mark { account: Some(account), ..Mark::default() },
        ..AccountDocument::default()
    }
}

#[test]
fn a_process_is_identified_by_pid_start_and_command() {
    let now = account(7, 100, 20);
    assert_eq!(differences(&account(7, 100, 10), &now), [] as [&str; 0]);
    assert_eq!(differences(&account(8, 100, 10), &now), [] as [&str; 0], "pids depend on the namespace");
    let started = "started at 2026-11-21T03:00:00Z (tick 99) and at 2026-11-21T03:00:00Z (tick 100)";
    assert_eq!(differences(&account(8, 99, 10), &now), ["pid 8 and 7", started]);
    assert_eq!(differences(&account(7, 99, 10), &now), [started]);
    let mut other = account(7, 99, 10);
    other.identity.as_mut().unwrap().boot_id = Some("b".to_owned());
    other.subject_command.push("-version".to_owned());
    let expect = ["the machine was rebooted in between, or it is a different one", "the command lines differ"];
    assert_eq!(differences(&other, &now), expect);
    other.identity.as_mut().unwrap().boot_id = Some("a".to_owned());
    other.identity.as_mut().unwrap().started = Some("\u{1b}[2J".to_owned());
    assert!(differences(&other, &now)[0].starts_with("started at an unknown time (tick 99) and at "));
}

#[test]
fn another_process_is_recognized_by_its_account_time() {
    let now = account(7, 100, 20);
    let mut older = account(7, 100, 10);
    older.identity = None;
    assert_eq!(differences(&older, &now), [] as [&str; 0]);
    older.taken = "2026-11-21T02:59:59Z".to_owned();
    assert_eq!(differences(&older, &now), ["started at 2026-11-21T03:00:00Z, after the earlier account"]);
}

#[test]
fn the_earlier_account_of_the_same_process_is_chosen() {
    let now = account(7, 100, 20);
    let compared = |earlier: Vec<AccountDocument>| changes(earlier, now.clone(), String::new());
    // By unique process ID, else by pid.
    let found = compared(vec![account(7, 99, 1), account(7, 100, 2)]).unwrap();
    assert_eq!((found.then.mark.account.unwrap().total_bytes, found.rss_growth_bytes), (2, 18));
    let found = compared(vec![account(6, 98, 1), account(7, 99, 2)]).unwrap();
    assert_eq!((found.then.jvm.pid, found.doubts.len()), (7, 1));
    let refused = compared(vec![account(5, 1, 1), account(6, 1, 1)]).unwrap_err();
    assert_eq!(refused.what, "the file has accounts of 2 JVMs, none of them with pid 7");
    // If there is only one, it is used, regardless of its process.
    assert_eq!(compared(vec![account(6, 1, 1)]).unwrap().doubts.len(), 1);
}

#[test]
fn malloc_is_one_row_unless_both_accounts_split_it() {
    let of = |owners: &[(&str, u64)]| {
        let mut document = account(7, 100, 0);
        document.mark.account = Some(AccountRecord::holding(owners.iter().copied()));
        document
    };
    let (split, whole) = (of(&[("malloc.live", 8), ("malloc.retained", 4), ("cds", 1)]), of(&[("malloc.unsplit", 13)]));
    let compared = |then: &AccountDocument, now: &AccountDocument| {
        let found = changes(vec![then.clone()], now.clone(), String::new()).unwrap().owners;
        let grown = found.into_iter().filter(|one| one.name.starts_with("malloc"));
        grown.map(|one| (one.name, one.growth_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(compared(&split, &whole), [("malloc.unsplit".to_owned(), Some(1))]);
    assert_eq!(compared(&whole, &split), [("malloc.unsplit".to_owned(), Some(-1))]);
    assert_eq!(compared(&split, &split).len(), 2);
}

#[test]
fn the_elapsed_time_is_taken_from_the_documents() {
    let compared = |taken: &str| {
        let earlier = AccountDocument { taken: taken.to_owned(), ..account(7, 100, 10) };
        changes(vec![earlier], account(7, 100, 20), String::new()).map(|document| document.seconds)
    };
    assert_eq!(compared("2026-11-21T03:36:20Z").unwrap(), 3601);
    assert_eq!(compared("2026-11-21T04:36:31Z").unwrap(), -10);
    let refused = compared("yester\u{1b}day").unwrap_err();
    assert_eq!(refused.what, "the earlier account was taken at `yester\\u{1b}day`, which is not a timestamp");
}

#[test]
fn totals_are_the_sums_of_the_accounts() {
    let accounts = vec![account(7, 1, 10), account(8, 1, 30), account(9, 1, u64::MAX)];
    let document = ranked(AccountsDocument { accounts, ..AccountsDocument::default() }, Column::Pss);
    assert_eq!((document.pss_bytes, document.rss_bytes), (u64::MAX, u64::MAX));
    assert_eq!(document.accounts.iter().map(|of| of.jvm.pid).collect::<Vec<_>>(), [9, 8, 7]);
}
