//! `loadline capture`: a script that collects the data for an account where Loadline cannot run.

use super::exit::Code;
use super::session::Call;
use crate::error::Result;
use crate::report::print;
use clap::Parser;

/// `loadline capture`
///
/// Prints a script for any POSIX shell. It writes a tar file with what the kernel and the JVM report about memory. The
/// file contains `smaps`, the page map, threads, counters, the memory cgroup, and, if the container has `jcmd`, its
/// output. It contains no copy of memory. `loadline account --from` builds the account from the tar file. The script
/// takes two arguments, both optional: `--no-jcmd`, which prevents it from attaching to the JVM, and a PID.
#[derive(Debug, Parser)]
#[command(before_help = EXAMPLES)]
pub(super) struct Verb {}

const EXAMPLES: &str = "\
Examples:
  loadline capture | kubectl exec -i POD -- sh > bundle.tar
  loadline capture | podman exec -i CONTAINER sh -s PID > bundle.tar
  loadline capture | kubectl exec -i POD -- sh -s -- --no-jcmd > bundle.tar
  loadline account --from bundle.tar
  loadline account --from later.tar --against bundle.tar";

const SCRIPT: &str = include_str!("capture.sh");

pub(super) fn run(_: Verb, _: Call) -> Result<Code> {
    print(SCRIPT)?;
    Ok(Code::Yes)
}
