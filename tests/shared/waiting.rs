//! Bounded waits for another process.

use loadline::clock::Clock;
use std::time::Duration;

/// The interval between checks.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// Much longer than anything that a test waits for; only failures take this long.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// Waits until the condition holds; fails after `within`. With zero time, it must hold now.
#[track_caller]
pub(crate) fn wait_until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    wait_for(what, within, || if holds() { Ok(()) } else { Err("it does not hold") });
}

/// Waits until a check succeeds; failed checks return what they saw.
#[track_caller]
pub(crate) fn wait_for<T, Seen: std::fmt::Debug>(
    what: &str,
    within: Duration,
    mut look: impl FnMut() -> Result<T, Seen>,
) -> T {
    let clock = Clock::start();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(clock.now() < within, "not within {within:?}: {what}; seen last: {seen:?}"),
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}
