//! Tests without a server or JVM, in one program because each links the whole library. They call the program on
//! archives stored here; `action`, `samples`, and `java` have their own descriptions. archives/README.md describes the
//! archives. Printed text is in snapshots/ (`INSTA_UPDATE=always`).
#![expect(clippy::disallowed_methods, reason = "these tests call the program itself")]
#![expect(clippy::print_stderr, reason = "the tests print what was skipped")]
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

mod accounts;
mod accounts_beside;
#[path = "../action/mod.rs"]
mod action;
mod advice;
#[path = "../shared/archive_halves.rs"]
mod archive_halves;
mod called;
mod charge;
mod comment;
mod compare;
mod damage;
mod demo;
mod documents;
mod engines;
mod figures;
mod find;
mod format;
mod generate;
mod history;
mod hostile;
mod init;
#[path = "../shared/interval_log.rs"]
mod interval_log;
mod java;
mod large;
mod load;
mod merge;
mod monitoring;
mod oom;
mod plain_english;
mod plan;
mod reference;
mod replay;
#[path = "../samples/mod.rs"]
mod samples;
mod schema;
mod schemas;
mod server;
#[path = "../shared/small_disk.rs"]
mod small_disk;
mod terminal;
mod tune;
mod usage;
#[path = "../shared/waiting.rs"]
mod waiting;
mod watch;
mod work;
