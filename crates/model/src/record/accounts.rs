//! Several accounts: the process that an account is about, the accounts of all JVMs of a machine, and the comparison
//! of two accounts of one JVM.

use super::{AccountDocument, DoubtRecord, Machine};
use serde::{Deserialize, Serialize};

/// Schema of the document that `loadline account --all --json` prints.
pub const ACCOUNTS_SCHEMA: &str = "loadline.accounts/1";
/// Schema of the document that `loadline account PID --against FILE --json` prints.
pub const CHANGES_SCHEMA: &str = "loadline.account_changes/1";

/// Which process an account is of. With the pid, `boot_id` and `started_ticks` name it for good: no other process of
/// any machine has the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IdentityRecord {
    /// The program it runs: a main class, an archive without its folder, or the kernel's name of the process.
    pub name: String,
    /// When it was started: UTC, ISO 8601; `null` where that cannot be told.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started: Option<String>,
    /// Clock ticks between the boot of the machine and its start.
    pub started_ticks: u64,
    /// The kernel's random name of this boot (`/proc/sys/kernel/random/boot_id`); `null` where it cannot be read.
    pub boot_id: Option<String>,
}

/// The document that `loadline account --all --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountsDocument {
    /// Which document this is, and the version of its form.
    #[cfg_attr(test, schemars(extend("const" = ACCOUNTS_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When the first account was begun: UTC, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub taken: String,
    /// The command that repeats it.
    pub command: String,
    /// The machine and how busy it was.
    pub machine: Machine,
    /// Sum of the accounts' PSS: a page that several of them share counts once.
    pub pss_bytes: u64,
    /// Sum of the accounts' RSS: such a page counts once for each of them.
    pub rss_bytes: u64,
    /// The JVMs that were read, in the order asked for; each is a document as `loadline account PID --json` prints it.
    pub accounts: Vec<AccountDocument>,
    /// Those that were found and could not be read.
    pub unread: Vec<UnreadRecord>,
    /// Further processes of other users whose mappings may not be read and whose names are not those of a JVM.
    pub hidden: u64,
}

/// A JVM, or what looks like one, without an account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UnreadRecord {
    /// Process id, in Loadline's pid namespace.
    pub pid: u32,
    /// The program it runs, as in `identity`.
    pub name: String,
    /// The reason why it could not be read.
    pub cause: UnreadCause,
    /// The same in words.
    pub why: String,
}

/// The reason why a JVM could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnreadCause {
    /// It ended, or became another program, while it was read.
    Ended,
    /// It may not be read.
    #[default]
    Refused,
}

/// The document that `loadline account PID --against FILE --json` prints. A difference is `now` minus `then`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangesDocument {
    /// Which document this is, and the version of its form.
    #[cfg_attr(test, schemars(extend("const" = CHANGES_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// The command that repeats it.
    pub command: String,
    /// Seconds between the two accounts, by the machine's clock; below 0 where `then` was taken later.
    pub seconds: i64,
    /// By how much RSS grew, bytes.
    pub rss_growth_bytes: i64,
    /// By how much PSS grew, bytes.
    pub pss_growth_bytes: i64,
    /// Every owner of either account, in the order of the account.
    pub owners: Vec<OwnerChangeRecord>,
    /// Parts of owners that differ, by kind, the largest change first: threads by pool, files, NMT tags, and what else
    /// the accounts have.
    pub parts: Vec<PartChangeRecord>,
    /// Reasons to distrust the comparison.
    pub doubts: Vec<DoubtRecord>,
    /// The earlier account, as it was read.
    pub then: AccountDocument,
    /// The account just taken.
    pub now: AccountDocument,
}

/// How an owner changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OwnerChangeRecord {
    /// Its name, as in the account.
    pub name: String,
    /// Resident in the earlier account; `null` where that account could not tell it from others.
    pub then_bytes: Option<u64>,
    /// Resident now; `null` where this account cannot tell it from others.
    pub now_bytes: Option<u64>,
    /// By how much it grew, bytes; `null` where one of them is.
    pub growth_bytes: Option<i64>,
}

/// How a part of an owner changed. A part that an account does not list holds nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PartChangeRecord {
    /// The kind of part, as in the account; a `thread` is a pool: threads whose names differ in numbers only.
    pub kind: String,
    /// The owner's name.
    pub owner: String,
    /// Its name; of a pool with `*` in the place of each number that differs.
    pub name: String,
    /// How many there were: threads of the pool, chunks of the tag.
    pub then_count: u64,
    /// How many there are now.
    pub now_count: u64,
    /// Resident in the earlier account.
    pub then_bytes: u64,
    /// Resident now.
    pub now_bytes: u64,
    /// By how much it grew, bytes.
    pub growth_bytes: i64,
    /// Asked for then, resident or not, bytes; `null` where that is not known of either.
    pub then_allocated_bytes: Option<u64>,
    /// Asked for now, resident or not, bytes; `null` where that is not known of either.
    pub now_allocated_bytes: Option<u64>,
}
