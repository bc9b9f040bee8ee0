//! A soak test: a million samples of fifty simulated JVMs, with real histories. `bench/watch.sh` runs it.
#![expect(clippy::print_stdout, reason = "the numbers are its result")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on should stop")]

#[path = "../src/watch/made_up.rs"]
mod made_up;

use loadline::clock::Clock;
use loadline::watch::*;

/// Turns of ten seconds.
const TURNS: u64 = 22_000;

fn main() {
    let clock = Clock::start();
    let (samples, [early, late]) = made_up::soak(TURNS);
    let seconds = clock.now_s();
    println!(
        "| soak: {samples} samples of 50 JVMs in {seconds:.1} s, RSS {early} KiB after a tenth, {late} at the end |"
    );
    assert!(samples >= 1_000_000, "{samples}");
    assert!(late <= early + 4096, "memory grew during the run");
}
