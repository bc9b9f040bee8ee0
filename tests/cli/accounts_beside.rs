//! `loadline account --all` and `--against` without a JVM: synthetic accounts on the screen and against their schemas,
//! and files that are not accounts.

use crate::accounts::made_up;
use crate::called::{Called, loadline, loadline_in, read, root};
use crate::schema::Schema;
use loadline::doubt::Doubt;
use loadline::record::{
    ACCOUNTS_SCHEMA, AccountDocument, AccountsDocument, ChangesDocument, DetailRecord, DoubtRecord, UnreadCause,
    UnreadRecord,
};
use loadline::report::{self, Detail, render, summarize_accounts, summarize_changes};
use loadline::result::{Column, changes, ranked};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const ACCOUNTS: &str = "accounts.schema.json";
pub(crate) const CHANGES: &str = "account-changes.schema.json";

/// The synthetic account of another process, `factor` times as large.
fn other(pid: u32, name: &str, factor: u64) -> AccountDocument {
    let mut document = made_up();
    document.jvm.pid = pid;
    document.jvm.version = Some("25.0.3+9-LTS".to_owned());
    let identity = document.identity.as_mut().unwrap();
    identity.name = name.to_owned();
    identity.started_ticks += u64::from(pid);
    let account = document.mark.account.as_mut().unwrap();
    account.total_bytes *= factor;
    account.pss_bytes *= factor;
    account.unexplained_bytes *= factor;
    for owner in &mut account.owners {
        owner.rss_bytes *= factor;
        owner.pss_bytes *= factor;
    }
    document
}

fn wide() -> AccountsDocument {
    let mut alone = other(815, "org.gradle.launcher.daemon.bootstrap.GradleDaemon", 1);
    alone.mark.charge = None;
    alone.jvm.version = Some("25.412-b08".to_owned());
    alone.doubts.clear();
    alone.bundle = Some("bundle.tar".to_owned());
    let mut large = other(4_194_303, "app.jar", 90);
    large.mark.charge.as_mut().unwrap().processes = 3;
    large.mark.account.as_mut().unwrap().would_return.gc_bytes = None;
    let unread = UnreadRecord {
        pid: 99,
        name: "java".to_owned(),
        cause: UnreadCause::Refused,
        why: "the process with pid 99 belongs to another user".to_owned(),
    };
    let wide = AccountsDocument {
        schema: ACCOUNTS_SCHEMA.to_owned(),
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        taken: "2026-11-21T04:36:21Z".to_owned(),
        command: "loadline account --all".to_owned(),
        machine: made_up().machine,
        accounts: vec![alone, made_up(), large],
        unread: vec![unread],
        hidden: 12,
        ..AccountsDocument::default()
    };
    ranked(wide, Column::Pss)
}

/// The synthetic account an hour later: a malloc leak, a larger thread pool, an additional file.
fn later() -> AccountDocument {
    let mut document = made_up();
    document.taken = "2026-11-21T05:37:01Z".to_owned();
    let account = document.mark.account.as_mut().unwrap();
    let grown: u64 = 40 << 20;
    account.total_bytes += grown;
    account.pss_bytes += grown;
    document.mark.rss_bytes += grown;
    let detail = |kind: &str, name: &str, count, rss_bytes| DetailRecord {
        kind: kind.to_owned(),
        name: name.to_owned(),
        count,
        rss_bytes,
        allocated_bytes: None,
    };
    let mut grows = |name: &str, bytes: u64, detail: Vec<DetailRecord>| {
        let owner = account.owners.iter_mut().find(|of| of.name == name).unwrap();
        owner.rss_bytes += bytes;
        owner.pss_bytes += bytes;
        owner.detail.extend(detail);
    };
    grows("malloc.live", grown - (3 << 20), Vec::new());
    let threads = [("http-8080-1", 1), ("http-8080-2", 7)];
    grows("thread_stacks", 2 << 20, threads.map(|(name, count)| detail("thread", name, count, 1 << 20)).to_vec());
    let long = "/srv/app/plugins/with/a/rather/long/path/to/its/plugin-1.2.3.jar";
    grows("mapped_files", 1 << 20, vec![detail("file", long, 1, 1 << 20)]);
    document
}

fn compared() -> ChangesDocument {
    let now = AccountDocument { bundle: Some("b.tar".into()), ..later() };
    changes(vec![made_up()], now, "loadline account 4711 --against then.json --json".to_owned()).unwrap()
}

#[test]
fn all_jvms_of_a_machine_are_shown() {
    insta::assert_snapshot!(render(&summarize_accounts(&wide())));
}

#[test]
fn a_machine_without_jvms_is_shown() {
    let none = AccountsDocument { accounts: Vec::new(), unread: Vec::new(), hidden: 0, ..wide() };
    let text = render(&summarize_accounts(&none));
    assert!(text.starts_with("0 JVMs, weighed by loadline 0.1.0\n") && !text.contains("sum"), "{text}");
    assert!(text.contains("No HotSpot JVM is running on this machine."), "{text}");
}

#[test]
fn account_changes_are_shown() {
    insta::assert_snapshot!(render(&summarize_changes(&compared(), &[])));
}

#[test]
fn changes_from_another_process_are_shown_by_thread() {
    let mut then = other(99, "app.jar", 2);
    then.taken = "2026-11-21T06:36:21Z".to_owned();
    then.doubts.push(DoubtRecord::from(Doubt::AttachMissing { why: "\u{1b}[2J".to_owned() }));
    let document = changes(vec![then], made_up(), String::new()).unwrap();
    insta::assert_snapshot!(render(&summarize_changes(&document, &[Detail::Thread, Detail::Tag])));
}

/// Every line fits, and nothing in a file affects the terminal.
#[test]
fn account_changes_have_80_columns_and_no_color() {
    let hostile = |text: &str| format!("\u{1b}[2J\u{202e}{text}\u{7}");
    let mut then = made_up();
    let mut now = later();
    for document in [&mut then, &mut now] {
        let identity = document.identity.as_mut().unwrap();
        identity.name = hostile(&identity.name);
        document.jvm.name = Some(hostile("VM"));
    }
    for part in now.mark.account.as_mut().unwrap().owners.iter_mut().flat_map(|owner| &mut owner.detail) {
        part.name = hostile(&part.name);
        part.rss_bytes += 1 << 36;
    }
    let document = changes(vec![then.clone()], now.clone(), String::new()).unwrap();
    let all = AccountsDocument {
        accounts: vec![then, now, other(7, "x", 90)],
        unread: vec![UnreadRecord { pid: 1, name: hostile("x"), why: hostile("y"), cause: UnreadCause::Ended }],
        hidden: 1,
        ..AccountsDocument::default()
    };
    let details = [Detail::Thread, Detail::File, Detail::Tag];
    let texts = [
        render(&summarize_changes(&document, &[])),
        render(&summarize_changes(&document, &details)),
        render(&summarize_accounts(&ranked(all, Column::Name))),
        render(&summarize_accounts(&wide())),
    ];
    for line in texts.iter().flat_map(|text| text.lines()) {
        assert!(line.chars().count() <= 80 && line == line.trim_end(), "{line}");
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
}

#[test]
fn both_account_documents_match_their_schema() {
    for (name, document) in [(ACCOUNTS, report::document(&wide())), (CHANGES, report::document(&compared()))] {
        Schema::published(name).describes(&serde_json::from_str(&document).unwrap(), name);
    }
}

#[test]
fn parts_and_owners_of_a_comparison_add_up() {
    let document = compared();
    let grown: i64 = document.owners.iter().map(|owner| owner.growth_bytes.unwrap()).sum();
    assert_eq!((grown, document.rss_growth_bytes, document.seconds), (40 << 20, 40 << 20, 3640));
    let pool = document.parts.iter().find(|part| part.name == "http-8080-*").unwrap();
    assert_eq!((pool.then_count, pool.now_count, pool.growth_bytes), (0, 8, 2 << 20));
}

/// Sets each number of an account to its maximum: no sum or difference overflows.
#[test]
fn impossible_sizes_in_an_account_do_not_overflow() {
    let whole = json!(made_up());
    let mut places = Vec::new();
    numbers(&whole, &mut String::new(), &mut places);
    assert!(places.len() > 200, "{}", places.len());
    let mut read = 0;
    let mut all = whole.clone();
    for place in &places {
        let mut one = whole.clone();
        for document in [&mut one, &mut all] {
            *document.pointer_mut(place).unwrap() = json!(u64::MAX);
            let Ok(account) = serde_json::from_value::<AccountDocument>(document.clone()) else {
                *document.pointer_mut(place).unwrap() = whole.pointer(place).unwrap().clone();
                continue;
            };
            read += 1;
            for (then, now) in [(account.clone(), made_up()), (made_up(), account.clone())] {
                let document = changes(vec![then], now, String::new()).unwrap();
                assert!(!render(&summarize_changes(&document, &[])).is_empty());
            }
            let accounts = vec![account.clone(), account];
            assert!(!render(&summarize_accounts(&AccountsDocument { accounts, ..wide() })).is_empty());
        }
    }
    assert!(read > places.len(), "{read} of {}", places.len());
}

/// Finds the paths of a document's integers.
fn numbers(value: &Value, place: &mut String, found: &mut Vec<String>) {
    let length = place.len();
    let mut visit = |key: String, value: &Value| {
        place.push_str(&format!("/{key}"));
        numbers(value, place, found);
        place.truncate(length);
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| visit(at.to_string(), item)),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| visit(key.clone(), field)),
        Value::Number(number) if number.is_u64() => found.push(place.clone()),
        _ => {}
    }
}

/// `account PID --against` a file with this text. No process has this pid, but Loadline reads the file first.
fn against(text: &str) -> Called {
    let place = TempDir::new().unwrap();
    std::fs::write(place.path().join("then.json"), text).unwrap();
    loadline_in(place.path(), &["account", "999999999", "--against", "then.json"])
}

#[test]
fn files_that_are_not_accounts_are_rejected() {
    let mut said = String::new();
    let whole = report::document(&made_up());
    let result = read(root().join("docs/results.schema.json"));
    let mut without_owners = json!(made_up());
    without_owners["mark"]["account"] = Value::Null;
    for (what, text) in [
        ("nothing", String::new()),
        ("a text", "pid 4711, weighed by loadline 0.1.0\n".to_owned()),
        ("half an account", whole[..whole.len() / 2].to_owned()),
        ("a list", "[]".to_owned()),
        ("another document", result),
        ("a result", "{\"schema\": \"loadline.result/2\"}".to_owned()),
        ("an account of a later version", whole.replace("loadline.account/1", "loadline.account/2")),
        ("a damaged account", whole.replace("\"subject_command\"", "\"subject_commands\"")),
        ("a negative size", whole.replace("\"total_bytes\": 165466112", "\"total_bytes\": -1")),
        ("an account without owners", without_owners.to_string()),
    ] {
        let called = against(&text);
        called.refused(&[]);
        said.push_str(&format!("{what}\n{}\n", called.stderr));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_missing_file_or_process_to_compare_is_reported() {
    let missing = loadline(&["account", "999999999", "--against", "no-such.json"]);
    missing.refused(&["error: cannot read no-such.json: No such file"]);
    loadline(&["account", "999999999", "--against", "."])
        .refused(&["this is not the output of the script from `loadline capture`"]);
    for document in [report::document(&made_up()), report::document(&wide()), report::document(&compared())] {
        against(&document).refused(&["there is no process with pid 999999999"]);
    }
}

#[test]
fn incompatible_account_options_are_rejected() {
    for words in [
        &["account", "--all", "4711"][..],
        &["account", "--all", "--by", "thread"],
        &["account", "--all", "--netty"],
        &["account", "--all", "--against", "x.json"],
        &["account", "--against", "x.json"],
        &["account", "4711", "--sort", "pss"],
        &["account", "--all", "--sort", "nonsense"],
        &["account", "4711", "--against", "accounts/made-up.json", "--by", "region"],
    ] {
        loadline(words).refused(&["error: "]);
    }
}

#[test]
fn the_help_explains_the_cost_of_attaching_and_the_exit_codes() {
    insta::assert_snapshot!(loadline(&["account", "--help"]));
}

/// A single JVM cannot be sorted, so `--sort` is rejected.
#[test]
fn sorting_needs_all_jvms() {
    loadline(&["account", "999999999", "--sort", "heap"]).refused(&["cannot be used with '--sort <COLUMN>'"]);
    loadline(&["account", "--sort", "heap"]).refused(&["--all"]);
}
