//! The JVM among the subject's processes.

use super::processes::Process;
use super::sockets::serving_first;
use crate::error::{Error, Result};
use crate::kernel::mapping;
use loadline_base::order::Order as _;

/// Whether a process has HotSpot or OpenJ9 loaded. `None` when its mappings may not be read.
pub fn is_jvm(pid: u32) -> Option<bool> {
    Some(mapping::of(pid).ok()?.iter().any(|mapping| mapping.file_name() == "libjvm.so"))
}

/// The JVMs among the processes, in the order of who listens on the port, then who started last.
///
/// # Errors
/// Names what did run when there is no JVM.
pub(super) fn find(processes: &[Process], port: u16) -> Result<Vec<u32>> {
    let mut jvms: Vec<&Process> = processes.iter().filter(|process| is_jvm(process.pid) == Some(true)).collect();
    if jvms.is_empty() {
        return Err(none(processes));
    }
    jvms.largest_first(|process| (process.started_ticks, process.pid));
    Ok(serving_first(jvms.into_iter().map(|process| process.pid), port))
}

fn none(processes: &[Process]) -> Error {
    let unreadable = processes.iter().filter(|process| is_jvm(process.pid).is_none()).count();
    let ran: Vec<String> =
        processes.iter().map(|process| format!("pid {}: {}", process.pid, process.command())).collect();
    let error = match ran.as_slice() {
        [] => Error::subject("no process of the subject is left"),
        [only] => Error::subject(format!("the subject is not a JVM: {only}")),
        _ => ran.iter().fold(Error::subject("none of the subject's processes is a JVM"), |error, line| error.at(line)),
    };
    match unreadable {
        0 => error,
        _ => error.hint("it runs as another user: run Loadline as that user or as root"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_ran_instead() {
        let this = Process::read(std::process::id()).unwrap();
        assert_eq!(is_jvm(this.pid), Some(false));
        let error = find(&[this], 8080).unwrap_err();
        assert!(error.what.starts_with("the subject is not a JVM: pid "), "{error}");
        assert_eq!(find(&[], 8080).unwrap_err().what, "no process of the subject is left");
    }
}
