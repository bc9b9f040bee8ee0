//! The memory that measuring adds to a JVM: distinguished from the JVM's own work, and bounded.

use crate::invocation::{Call, releases};
use crate::standing::{LaunchPlan, Standing, account_of};
use crate::waiting::{LONG, wait_until};
use loadline::clock::Clock;
use std::time::Duration;

/// The guaranteed maximum, for any release and activity.
const ADDED_BYTES_MAX: i64 = 3 * (1 << 20) / 10;
/// The first pages of the attach listener's stack, which every first command needs.
pub(crate) const ADDED_BYTES_MIN: i64 = 64 << 10;
/// The same bound for a repeated command.
const AGAIN_BYTES_MAX: i64 = 64 << 10;
/// The maximum difference between reported bytes and an idle JVM's growth: faults without new pages, a few pages either
/// way.
const APART_BYTES_MAX: i64 = 64 << 10;
const COLLECTORS: [&str; 3] = ["-XX:+UseSerialGC", "-XX:+UseG1GC", "-XX:+UseParallelGC"];
/// An idle JVM with constant RSS for this time is settled.
const STILL_FOR: Duration = Duration::from_secs(2);

/// A server's first measurement, and a second one.
#[derive(Debug)]
struct Try {
    /// Bytes added according to the account.
    added: i64,
    /// Growth of RSS according to the kernel.
    grown: i64,
    /// Bytes added according to the second account.
    again: i64,
}

fn weighed(server: &Standing) -> Try {
    // One measurement each: `Standing::document` retries if another Loadline holds the JVM, and a second account adds
    // nothing.
    let added = || {
        let ran = server.account_call("--json --attach").run().expect(0);
        account_of(&ran).mark.account.unwrap().observer_bytes.unwrap()
    };
    let before = server.rss_bytes().cast_signed();
    let first = added();
    let grown = server.rss_bytes().cast_signed() - before;
    Try { added: first, grown, again: added() }
}

/// A fresh server per collector, in the state that `settle` reaches; prints and bounds all tries.
fn tries(release: u32, state: &str, settle: impl Fn(&Standing)) -> Vec<Try> {
    let one = |collector: &&str| {
        let server = LaunchPlan::on(release, &format!("-Xmx128m {collector}")).serving("DemoServer");
        settle(&server);
        weighed(&server)
    };
    let tries: Vec<Try> = COLLECTORS.iter().map(one).collect();
    println!("JDK {release}, {state}, {COLLECTORS:?}: {tries:?}");
    for seen in &tries {
        assert!((ADDED_BYTES_MIN..=ADDED_BYTES_MAX).contains(&seen.added), "JDK {release}, {state}: {seen:?}");
        assert!((0..=AGAIN_BYTES_MAX).contains(&seen.again), "JDK {release}, {state}: {seen:?}");
    }
    tries
}

fn until_still(server: &Standing) {
    let clock = Clock::start();
    let (mut rss, mut since) = (server.rss_bytes(), clock.now());
    wait_until("an idle JVM settles", LONG, || {
        let now = server.rss_bytes();
        if now != rss {
            (rss, since) = (now, clock.now());
        }
        clock.now() - since >= STILL_FOR
    });
}

#[test]
fn added_bytes_equal_the_rss_growth_of_an_idle_jvm() {
    for release in releases() {
        let tries = tries(release, "settled", until_still);
        let mut apart: Vec<i64> = tries.iter().map(|seen| (seen.added - seen.grown).abs()).collect();
        apart.sort_unstable();
        assert!(apart[apart.len() / 2] <= APART_BYTES_MAX, "JDK {release}: {tries:?}");
    }
}

#[test]
fn added_bytes_stay_within_bounds_right_after_a_load() {
    for release in releases() {
        tries(release, "right after a load", |server| {
            let url = format!("http://127.0.0.1:{}/hello", server.port());
            Call::verb(&format!("load {url} -n 20000 --connections 25")).beside().run().expect(0);
        });
    }
}
