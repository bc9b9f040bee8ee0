//! Accounts of all JVMs on the machine, one by one, for `loadline account --all`.

use super::identity;
use super::once::AccountOptions;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::observe::jvms::{self, ProcessSummary};
use crate::record::{AccountDocument, NamedJvm, UnreadCause, UnreadRecord};
use loadline_base::order::Order as _;

/// The machine's JVMs before the measurement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates {
    /// Sorted by pid.
    pub jvms: Vec<NamedJvm>,
    /// The number of processes that are not readable.
    pub hidden: u64,
}

impl Candidates {
    /// Finds all visible JVMs without attaching to any.
    pub(crate) fn find() -> Result<Self> {
        let found = jvms::find().map_err(|cause| {
            Error::machine(format!("/proc cannot be listed: {cause}")).hint("mount /proc, or raise `ulimit -n`")
        })?;
        let mut all: Vec<ProcessSummary> = found.known.into_iter().chain(found.perhaps).collect();
        all.order_by_key(|jvm| jvm.pid);
        let own = std::process::id();
        Ok(Self {
            jvms: all.into_iter().filter(|jvm| jvm.pid != own).map(identity::named).collect(),
            hidden: found.hidden,
        })
    }
}

/// Measures a candidate, or explains why it cannot. Errors: only a bug in Loadline, because an unreadable JVM must not
/// stop the others.
pub(crate) fn weigh_candidate(
    jvm: &NamedJvm,
    weighing: AccountOptions,
    clock: &Clock,
) -> Result<Result<AccountDocument, UnreadRecord>> {
    let cause = match weighing.weigh(jvm.pid, clock) {
        Ok(weighed) => return Ok(Ok(weighed)),
        Err(error) if error.kind == ErrorKind::Bug => return Err(error),
        Err(error) => error,
    };
    let (pid, name) = (jvm.pid, jvm.name.clone());
    Ok(Err(match cause.kind {
        ErrorKind::Machine => UnreadRecord { pid, name, cause: UnreadCause::Refused, why: cause.what },
        // It was a JVM when it was found, so it has ended or changed since.
        _ => UnreadRecord { pid, name, cause: UnreadCause::Ended, why: cause.what },
    }))
}
