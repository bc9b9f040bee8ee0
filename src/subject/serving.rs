//! The subject's serving processes: its JVMs, or all processes of a native subject.

use super::processes::Process;
use super::sockets::listens;
use crate::error::{Error, Result};
use crate::kernel::mapping;
use crate::scenario::{Kind, Processes};
use loadline_base::order::Order as _;

/// Whether a process has loaded HotSpot or OpenJ9. `None` if its mappings are unreadable.
pub fn is_jvm(pid: u32) -> Option<bool> {
    Some(mapping::of(pid).ok()?.iter().any(|mapping| mapping.file_name() == "libjvm.so"))
}

/// The JVMs, or all processes of a native subject, starting with the one that listens on the port. If none listens, the
/// last one started comes first, because a script may wait for its server. If all processes of a native subject are
/// measured, the first one started comes first, because the subject ends with it. Fails if no process is left, or if
/// there is no JVM; the error then names the programs found.
pub(super) fn find(processes: &[Process], port: u16, kind: Kind, weighed: Processes) -> Result<Vec<u32>> {
    let serves = |process: &&Process| kind == Kind::Native || is_jvm(process.pid) == Some(true);
    let mut found: Vec<&Process> = processes.iter().filter(serves).collect();
    if found.is_empty() {
        return Err(none(processes));
    }
    found.order_by_key(|process| (process.started_ticks, process.pid));
    if kind == Kind::Jvm || weighed == Processes::One {
        found.reverse();
    }
    let pids = found.into_iter().map(|process| process.pid);
    let (serving, others): (Vec<u32>, Vec<u32>) = pids.partition(|&pid| listens(pid, port));
    Ok([serving, others].concat())
}

fn none(processes: &[Process]) -> Error {
    let unreadable = processes.iter().filter(|process| is_jvm(process.pid).is_none()).count();
    let ran: Vec<String> =
        processes.iter().map(|process| format!("pid {}: {}", process.pid, process.command())).collect();
    let error = match ran.as_slice() {
        [] => Error::subject("the server has no processes left"),
        [only] => Error::subject(format!("the server is not a JVM: {only}")),
        _ => ran.iter().fold(Error::subject("none of the server's processes is a JVM"), |error, line| error.at(line)),
    };
    match unreadable {
        0 => error,
        _ => error.hint("it runs as a different user: run Loadline as that user or as root"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_error_names_the_program_that_ran_instead() {
        let this = Process::read(std::process::id()).unwrap();
        assert_eq!(is_jvm(this.pid), Some(false));
        let error = find(&[this], 8080, Kind::Jvm, Processes::One).unwrap_err();
        assert!(error.what.starts_with("the server is not a JVM: pid "), "{error}");
        for kind in [Kind::Jvm, Kind::Native] {
            let error = find(&[], 8080, kind, Processes::One).unwrap_err();
            assert_eq!(error.what, "the server has no processes left");
        }
    }

    #[test]
    fn a_listening_process_is_preferred_to_the_newest() {
        let this = Process::read(std::process::id()).unwrap();
        let first = Process { pid: 1, started_ticks: 1, ..this.clone() };
        let later = Process { pid: u32::MAX, started_ticks: u64::MAX, ..this.clone() };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let all = [first, this.clone(), later];
        let found = |weighed| find(&all, port, Kind::Native, weighed).unwrap();
        use Processes::{All, One};
        assert_eq!(found(One), [this.pid, u32::MAX, 1]);
        assert_eq!(found(All), [this.pid, 1, u32::MAX]);
        drop(listener);
        assert_eq!(found(One), [u32::MAX, this.pid, 1]);
        assert_eq!(found(All), [1, this.pid, u32::MAX]);
    }
}
