//! `loadline account` without a JVM: a synthetic account (accounts/made-up.json) on the screen and against its schema.

use crate::called::{folder, read};
use crate::schema::Schema;
use loadline::diagnosis;
use loadline::record::AccountDocument;
use loadline::report::{self, Detail, render, summarize_account};
use serde_json::{Value, json};

pub(crate) const ACCOUNT: &str = "account.schema.json";

/// Written by hand: every field is set, and the owners add up to RSS.
pub(crate) fn made_up() -> AccountDocument {
    let mut document: AccountDocument = serde_json::from_str(&read(folder().join("accounts/made-up.json"))).unwrap();
    document.findings = diagnosis::of_account(&document).findings;
    document
}

/// Findings in a real account: JDK 25.0.3 with G1, `-Xmx4g -Xshare:auto`, and 200 parked threads, after allocating 600
/// arrays of 1 MiB and dropping 128 direct buffers.
#[test]
fn a_real_account_has_the_expected_findings() {
    let mut document: AccountDocument = serde_json::from_str(&read(folder().join("accounts/real-25.json"))).unwrap();
    document.findings = diagnosis::of_account(&document).findings;
    let shown = render(&summarize_account(&document, &[]));
    let start = shown.find("what stands out").unwrap();
    insta::assert_snapshot!(&shown[start..]);
}

/// The account as printed by `--json`.
fn printed() -> Value {
    serde_json::from_str(&report::document(&made_up())).unwrap()
}

#[test]
fn the_synthetic_account_adds_up() {
    let account = made_up().mark.account.unwrap();
    let sum = |of: fn(&loadline::record::OwnerRecord) -> u64| account.owners.iter().map(of).sum::<u64>();
    assert_eq!(sum(|owner| owner.rss_bytes), account.total_bytes);
    assert_eq!(sum(|owner| owner.pss_bytes), account.pss_bytes);
}

#[test]
fn an_account_fits_one_screen() {
    insta::assert_snapshot!(render(&summarize_account(&made_up(), &[])));
}

#[test]
fn an_account_is_shown_with_all_details() {
    let text = render(&summarize_account(
        &made_up(),
        &[Detail::Thread, Detail::File, Detail::Tag, Detail::Region, Detail::Flag],
    ));
    let plain = render(&summarize_account(&made_up(), &[]));
    // The requested details start where the plain output continues with the live objects.
    let behind = plain.find("\nlive objects by class").unwrap();
    insta::assert_snapshot!(text[behind..]);
}

#[test]
fn an_account_has_80_columns_and_no_color() {
    let all = [Detail::Region, Detail::Tag, Detail::File, Detail::Thread];
    for line in render(&summarize_account(&made_up(), &all)).lines() {
        assert!(line.chars().count() <= 80 && !line.contains('\x1b') && line == line.trim_end(), "{line}");
    }
}

#[test]
fn an_account_document_matches_the_schema() {
    Schema::published(ACCOUNT).describes(&printed(), "as it is printed");
}

#[test]
fn an_invalid_account_violates_the_schema() {
    let (schema, right) = (Schema::published(ACCOUNT), printed());
    let check = |pointer: &str, wrong| assert!(!schema.accepts_with(&right, pointer, wrong), "{pointer}");
    check("/schema", json!("loadline.account/2"));
    check("/mark/account/total_bytes", json!(-1));
    check("/mark/account/owners/0", json!({"name": "cds"}));
    check("/mark/account/owners/0/rss_bytes", json!(null));
    check("/mark/account/would_return/gc_bytes", json!("5m"));
    check("/mark/account/malloc/tagged", json!("yes"));
    check("/mark/charge/version", json!("v3"));
    check("/subject_command", json!("java -jar app.jar"));
}
