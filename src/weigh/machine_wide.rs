//! All JVMs of the machine, one after another: what `loadline account --all` does.

use super::identity;
use super::once::AccountOptions;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::observe::jvms::{self, ProcessSummary};
use crate::record::{AccountDocument, NamedJvm, UnreadCause, UnreadRecord};
use loadline_base::order::Order as _;

/// The JVMs of the machine, before any of them is weighed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates {
    /// In the order of their pids.
    pub jvms: Vec<NamedJvm>,
    /// Further processes that may not be looked into.
    pub hidden: u64,
}

impl Candidates {
    /// Looks at all processes that can be seen from here; none of them is asked anything.
    ///
    /// # Errors
    /// If the processes cannot be listed.
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

/// Weighs one of them, or says why it cannot be weighed.
///
/// # Errors
/// A bug of Loadline; whatever keeps this one JVM from being read is no error, since others can be.
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
        // A candidate was a JVM when it was found; whatever refuses it as none came later.
        _ => UnreadRecord { pid, name, cause: UnreadCause::Ended, why: cause.what },
    }))
}
