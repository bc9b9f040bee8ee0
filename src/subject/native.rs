//! Which of the processes is the one that serves, where the subject is no JVM.

use super::processes::Process;
use super::sockets::listening_on;
use crate::error::{Error, Result};

/// All of them, the one that serves first: who listens on the port, then who started last, which is the server where a
/// script waits for it.
///
/// # Errors
/// Where none is left.
pub(super) fn find(processes: &[Process], port: u16) -> Result<Vec<u32>> {
    let mut processes = processes.to_vec();
    processes.sort_by_key(|process| std::cmp::Reverse((process.started_ticks, process.pid)));
    let serving = listening_on(&processes, port);
    let others = processes.iter().map(|process| process.pid).filter(|pid| !serving.contains(pid));
    let found: Vec<u32> = serving.iter().copied().chain(others).collect();
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
        assert_eq!(find(&all, port).unwrap(), [this.pid, u32::MAX, 1]);
        drop(listener);
        assert_eq!(find(&all, port).unwrap(), [u32::MAX, this.pid, 1]);
        assert_eq!(find(&[], port).unwrap_err().what, "no process of the subject is left");
    }
}
