//! Several accounts: the process of an account, the accounts of all JVMs on a machine, and the comparison of two
//! accounts of one JVM.

use super::{AccountDocument, DoubtRecord, Machine};
use serde::{Deserialize, Serialize};

/// Schema of the output of `loadline account --all --json`.
pub const ACCOUNTS_SCHEMA: &str = "loadline.accounts/1";
/// Schema of the output of `loadline account PID --against FILE --json`.
pub const CHANGES_SCHEMA: &str = "loadline.account_changes/1";

/// The process that an account describes. With the pid, `boot_id` and `started_ticks` identify it uniquely across
/// machines and boots.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IdentityRecord {
    /// The program it runs: a main class, an archive without its directory, or the kernel's name for the process.
    pub name: String,
    /// When it was started: UTC, ISO 8601; `null` if unknown.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub started: Option<String>,
    /// Clock ticks between the machine's boot and the start of the process.
    pub started_ticks: u64,
    /// The kernel's random id of this boot (`/proc/sys/kernel/random/boot_id`); `null` if it cannot be read.
    pub boot_id: Option<String>,
}

/// The document that `loadline account --all --json` prints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountsDocument {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = ACCOUNTS_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// When the first account was started: UTC, ISO 8601.
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
    /// The JVMs that were read, in the requested order; each is a document as `loadline account PID --json` prints it.
    pub accounts: Vec<AccountDocument>,
    /// JVMs that were found but could not be read.
    pub unread: Vec<UnreadRecord>,
    /// Number of other users' processes whose mappings cannot be read and whose names do not suggest a JVM.
    pub hidden: u64,
}

/// A JVM, or a process that looks like one, without an account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UnreadRecord {
    /// Process ID, in Loadline's pid namespace.
    pub pid: u32,
    /// The program it runs, as in `identity`.
    pub name: String,
    /// The reason why it could not be read.
    pub cause: UnreadCause,
    /// The reason in words.
    pub why: String,
}

/// The reason why a JVM could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnreadCause {
    /// It exited or became another program while it was being read.
    Ended,
    /// Loadline lacks permission to read it.
    #[default]
    Refused,
}

/// The document that `loadline account PID --against FILE --json` prints. A difference is `now` minus `then`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangesDocument {
    /// Document type and format version.
    #[cfg_attr(test, schemars(extend("const" = CHANGES_SCHEMA)))]
    pub schema: String,
    /// Version of Loadline.
    pub loadline: String,
    /// The command that repeats it.
    pub command: String,
    /// Seconds between the two accounts, by the machine's clock; below 0 if `then` was taken later.
    pub seconds: i64,
    /// RSS growth, in bytes.
    pub rss_growth_bytes: i64,
    /// PSS growth, in bytes.
    pub pss_growth_bytes: i64,
    /// Every owner of either account, in the order of the account.
    pub owners: Vec<OwnerChangeRecord>,
    /// Parts of owners that differ, by kind, largest change first: threads by pool, files, NMT tags, and any other
    /// parts in the accounts.
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
    /// Resident in the earlier account; `null` if that account could not distinguish it from others.
    pub then_bytes: Option<u64>,
    /// Resident now; `null` if this account cannot distinguish it from others.
    pub now_bytes: Option<u64>,
    /// Its growth, in bytes; `null` if either value is `null`.
    pub growth_bytes: Option<i64>,
}

/// How a part of an owner changed. A part that an account does not list counts as 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PartChangeRecord {
    /// The kind of part, as in the account; a `thread` is a pool: threads whose names differ only in numbers.
    pub kind: String,
    /// The owner's name.
    pub owner: String,
    /// Its name; for a pool, with `*` in place of each number that differs.
    pub name: String,
    /// Number in the earlier account: threads of the pool, or chunks of the tag.
    pub then_count: u64,
    /// The same number now.
    pub now_count: u64,
    /// Resident in the earlier account.
    pub then_bytes: u64,
    /// Resident now.
    pub now_bytes: u64,
    /// Its growth, in bytes.
    pub growth_bytes: i64,
    /// Bytes requested then, resident or not; `null` if neither account has them.
    pub then_allocated_bytes: Option<u64>,
    /// Bytes requested now, resident or not; `null` if neither account has them.
    pub now_allocated_bytes: Option<u64>,
}
