//! The process that serves, where the subject is no JVM.

use super::processes::Process;
use super::sockets::serving_first;
use crate::error::{Error, Result};
use crate::scenario::Processes;
use loadline_base::order::Order as _;

/// Returns all processes, the one that listens on the port first. If none listens, the one that started last comes
/// first: if a script waits for its server, that is the server. If all are weighed, the one that started first comes
/// first, because the subject ends with it.
///
/// # Errors
/// If no process is left.
pub(super) fn find(processes: &[Process], port: u16, weighed: Processes) -> Result<Vec<u32>> {
    let mut processes = processes.to_vec();
    processes.order_by_key(|process| (process.started_ticks, process.pid));
    if weighed == Processes::One {
        processes.reverse();
    }
    let found = serving_first(processes.iter().map(|process| process.pid), port);
    if found.is_empty() { Err(Error::subject("no process of the subject is left")) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn who_listens_comes_before_who_started_last() {
        let this = Process::read(std::process::id()).unwrap();
        let first = Process { pid: 1, started_ticks: 1, ..this.clone() };
        let later = Process { pid: u32::MAX, started_ticks: u64::MAX, ..this.clone() };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let all = [first, this.clone(), later];
        use Processes::{All, One};
        assert_eq!(find(&all, port, One).unwrap(), [this.pid, u32::MAX, 1]);
        assert_eq!(find(&all, port, All).unwrap(), [this.pid, 1, u32::MAX]);
        drop(listener);
        assert_eq!(find(&all, port, One).unwrap(), [u32::MAX, this.pid, 1]);
        assert_eq!(find(&all, port, All).unwrap(), [1, this.pid, u32::MAX]);
        assert_eq!(find(&[], port, One).unwrap_err().what, "no process of the subject is left");
    }
}
