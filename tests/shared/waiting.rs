//! Waits for the work of another process, for no longer than a bound.

use loadline::clock::Clock;
use std::time::Duration;

/// The time between two looks.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// Far longer than any work takes that a test waits for; only broken work takes that long.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// Waits until it holds; the test fails where that takes longer than `within`. With no time at all it must hold now.
#[track_caller]
pub(crate) fn wait_until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    wait_for(what, within, || if holds() { Ok(()) } else { Err("it does not hold") });
}

/// Waits until a look finds what it is for; a look that does not says what it saw instead.
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
