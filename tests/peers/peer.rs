//! A third-party server: started under the guardian on its own port, ended with its test.

use crate::waiting::{LONG, wait_until};
use loadline::clock::Clock;
use loadline::load::{Address, Target};
use loadline::scenario::{Configuration, Cpus, Subject};
use loadline::subject::{CpuPlan, GuardedSubject, Launch, LaunchPlace, RunningSubject, Spawner, free_port};
use loadline::units::Span;
use loadline_test_support::on_path;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Another process may take a port before it is used.
const STARTS_MAX: u32 = 3;

/// A running server. Dropping it kills it and its descendants.
pub(crate) struct Peer {
    _running: GuardedSubject,
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
}

impl Peer {
    /// Starts the command for a directory and a free port, and waits until the port accepts.
    pub(crate) fn start(folder: TempDir, command: impl Fn(&Path, u16) -> Vec<String>) -> Self {
        for _ in 1..STARTS_MAX {
            let port = free_port("127.0.0.1").unwrap();
            if let Ok(running) = try_start(&command(folder.path(), port), port) {
                return Self { _running: running, port, folder };
            }
        }
        let port = free_port("127.0.0.1").unwrap();
        let running = try_start(&command(folder.path(), port), port).unwrap_or_else(|why| panic!("{why}"));
        Self { _running: running, port, folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The server on TCP, in cleartext, as `localhost`.
    pub(crate) fn target(&self) -> Target {
        Target::plain(self.address(), format!("localhost:{}", self.port))
    }

    /// The server on this Unix socket in its directory.
    pub(crate) fn target_at(&self, socket: &str) -> Target {
        let address = Address::Unix(self.folder.path().join(socket));
        Target { address, host: "localhost".to_owned(), tls: None }
    }
}

fn try_start(command: &[String], port: u16) -> Result<GuardedSubject, String> {
    let clock = Clock::start();
    let subject = Subject {
        command: command.to_vec(),
        ready_within: Span(LONG),
        end_within: Span::seconds(1),
        ..Subject::default()
    };
    let cpus = CpuPlan::new(&Cpus::All, &Cpus::All, &[]).unwrap();
    let place = LaunchPlace { port, work: None, cpus: &cpus, jdk: None, image: None };
    let launch = Launch::new(&subject, &Configuration::default(), &place).unwrap();
    let spawner = Spawner::with_program(env!("CARGO_BIN_EXE_loadline"), clock);
    let running = spawner.start(&launch, None).map_err(|error| error.to_string())?;
    let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    let mut ended = None;
    wait_until(&format!("{} listens", launch.shown()), LONG, || {
        ended = running.ended();
        ended.is_some() || listens()
    });
    let Some(exit) = ended else { return Ok(running) };
    let tail = running.end(Duration::ZERO).tail;
    Err(format!("{} ended: {exit:?}\n{}", launch.shown(), tail.join("\n")))
}

/// Reports a skip; fails if all peers are required.
pub(crate) fn skip(why: &str) {
    loadline_test_support::skip("LOADLINE_PEERS", why);
}

/// A program on the `PATH`, or in administrators' directories.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let found = on_path(name);
    if found.is_none() {
        skip(&format!("there is no {name}"));
    }
    found
}
