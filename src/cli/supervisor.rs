//! Notifies systemd that a service is ready and alive (man sd_notify), through the socket in `NOTIFY_SOCKET`. Also ends
//! a service that should have ended but has not.

use super::console;
use super::exit::Code;
use super::session::Interrupt;
use crate::clock::Clock;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The supervisor that started the service.
pub(super) struct Supervisor {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The watchdog interval, if any.
    every: Option<Duration>,
    due: Duration,
    clock: Clock,
}

impl Supervisor {
    /// Reads the supervisor from the environment. Without one, messages are dropped.
    pub(super) fn of_environment(clock: Clock) -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        Self::of(variable("NOTIFY_SOCKET").as_deref(), variable("WATCHDOG_USEC").as_deref(), clock)
    }

    fn of(address: Option<&str>, watchdog_us: Option<&str>, clock: Clock) -> Self {
        let address = address.and_then(|path| match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(path).ok(),
        });
        let socket = address.and_then(|address| {
            let socket = UnixDatagram::unbound().ok()?;
            // A supervisor that accepts no messages must not block Loadline.
            socket.set_nonblocking(true).ok()?;
            Some((socket, address))
        });
        let every = watchdog_us.and_then(|us| us.parse().ok()).map(|us| Duration::from_micros(us) / 3);
        Self { socket, every, due: Duration::ZERO, clock }
    }

    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// Sends a watchdog message if one is due.
    pub(super) fn alive(&mut self) {
        let (Some(every), now) = (self.every, self.clock.now()) else { return };
        if now >= self.due {
            self.due = now + every;
            self.tell("WATCHDOG=1");
        }
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // A supervisor that is gone does not need a message.
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

/// Exits the process if it is still running some time after it was asked to end, for example because a disk hangs.
pub(super) struct Ender(Arc<AtomicBool>);

/// A turn takes a second or two.
const ENDS_WITHIN: Duration = Duration::from_secs(4);
/// Restoring a terminal either succeeds immediately or hangs.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Ender {
    /// Waits for a signal, or until this time.
    pub(super) fn begin(clock: Clock, interrupt: &Interrupt, until: Option<Duration>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (seen, interrupt) = (Arc::clone(&over), interrupt.clone());
        let wait = move || {
            let mut told = None;
            while !seen.load(Ordering::Relaxed) {
                let now = clock.now();
                if interrupt.seen() || until.is_some_and(|until| now >= until) {
                    let told = *told.get_or_insert(now);
                    if now >= told + ENDS_WITHIN {
                        end(clock);
                    }
                }
                clock.park(LOOK_EVERY);
            }
        };
        // Without this thread, the process ends as soon as it can.
        let _ = std::thread::Builder::new().name("ending".to_owned()).stack_size(64 << 10).spawn(wait);
        Self(over)
    }
}

impl Drop for Ender {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "`main` is waiting for a call that never returns")]
fn end(clock: Clock) {
    // A terminal stopped by Ctrl-S blocks every writer.
    let leaving = std::thread::Builder::new().name("leaving".to_owned()).stack_size(64 << 10).spawn(console::leave);
    let until = clock.now() + LEAVES_WITHIN;
    while leaving.as_ref().is_ok_and(|leaving| !leaving.is_finished()) && clock.now() < until {
        clock.sleep(LOOK_EVERY);
    }
    std::process::exit(Code::Yes as i32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_is_notified_that_the_service_is_ready() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let hears = UnixDatagram::bind(&path).unwrap();
        hears.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let heard = || {
            let mut text = [0; 64];
            let length = hears.recv(&mut text).unwrap();
            String::from_utf8_lossy(&text[..length]).into_owned()
        };
        let clock = Clock::made_up();
        let mut supervisor = Supervisor::of(path.to_str(), Some("30000000"), clock);
        supervisor.ready();
        assert_eq!(heard(), "READY=1");
        for _ in 0..30 {
            supervisor.alive();
            clock.sleep(Duration::from_secs(1));
        }
        hears.set_nonblocking(true).unwrap();
        let signs = std::iter::from_fn(|| hears.recv(&mut [0; 64]).ok()).count();
        assert_eq!(signs, 3, "three messages are sent per watchdog interval");
        drop(hears);
        supervisor.ready();
        Supervisor::of(None, None, clock).alive();
        Supervisor::of(Some("@"), Some("x"), clock).ready();
    }
}
