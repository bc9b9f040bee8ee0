//! The only place that reads time. All other code receives a [`Clock`], which makes time-dependent code testable.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock with a known wall-clock origin.
///
/// All times of one run are offsets from the same origin, so they can be subtracted from each other.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    origin_wall: SystemTime,
    /// Nanoseconds since the origin, if a test controls the time.
    made_up: Option<&'static AtomicU64>,
}

/// Seconds between two clock readings in nanoseconds; 0 if the second one is not later.
pub fn seconds_since(origin_ns: u64, now_ns: u64) -> f64 {
    now_ns.saturating_sub(origin_ns) as f64 / 1e9
}

impl Clock {
    /// A clock whose origin is now.
    #[expect(clippy::disallowed_methods, reason = "this is the module that may read time")]
    pub fn start() -> Self {
        Self { origin: Instant::now(), origin_wall: SystemTime::now(), made_up: None }
    }

    /// Nanoseconds since the origin. 2^64 ns is 584 years.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now().as_nanos() as u64
    }

    /// Sleeps for this long.
    pub fn sleep(&self, span: Duration) {
        if self.pass(span) {
            return;
        }
        std::thread::sleep(span);
    }

    /// Sleeps for this long, or until another thread unparks this one.
    pub fn park(&self, span: Duration) {
        if self.pass(span) {
            return;
        }
        std::thread::park_timeout(span);
    }

    /// Calls `is_over` at intervals of `every` until it returns true, for at most `within`. Returns whether it did.
    pub fn wait_until(&self, within: Duration, every: Duration, mut is_over: impl FnMut() -> bool) -> bool {
        let until = self.now() + within;
        loop {
            if is_over() {
                return true;
            }
            if self.now() >= until {
                return false;
            }
            self.sleep(every);
        }
    }

    /// Time since the origin.
    #[inline]
    pub fn now(&self) -> Duration {
        if let Some(now_ns) = self.made_up {
            return Duration::from_nanos(now_ns.load(Relaxed));
        }
        self.origin.elapsed()
    }

    /// Seconds since the origin.
    pub fn now_s(&self) -> f64 {
        self.now().as_secs_f64()
    }

    /// Wall-clock seconds since the Unix epoch at the origin.
    pub fn origin_unix_s(&self) -> f64 {
        self.origin_wall.duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
    }

    /// Converts a reading of this clock, in nanoseconds, to time since the Unix epoch.
    pub fn since_epoch(&self, at_ns: u64) -> Duration {
        Duration::from_secs_f64(self.origin_unix_s()) + Duration::from_nanos(at_ns)
    }

    /// Wall-clock seconds since the Unix epoch now.
    pub fn unix_s(&self) -> f64 {
        self.origin_unix_s() + self.now_s()
    }
}

/// Simulated time: it passes only during sleeps.
impl Clock {
    /// A clock stopped at its origin. Its copies share their time.
    pub fn made_up() -> Self {
        Self { made_up: Some(Box::leak(Box::default())), ..Self::start() }
    }

    /// Advances simulated time; returns false if time is real.
    fn pass(&self, span: Duration) -> bool {
        let pass = |now_ns: &AtomicU64| {
            now_ns.fetch_add(span.as_nanos() as u64, Relaxed);
        };
        self.made_up.map(pass).is_some()
    }
}
