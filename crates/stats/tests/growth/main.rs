//! The growth verdict on simulated lives: its laws, and a small run of its calibration.

#[expect(dead_code, reason = "the full calibration prints more of it")]
mod calibration;
mod laws;
#[expect(dead_code, reason = "the full calibration uses more of them")]
mod lives;

use calibration::{History, Told, false_alarms, leaks};
use lives::{CHECKED, Leak, TUNED, UNSEEN};

const SEED: u64 = 1;

#[test]
fn jvms_without_a_leak_raise_no_alarm() {
    // About three, two, and one JVM-years; the full calibration has the rates. The first unseen kind is a straight
    // line that ends: before its end, any test takes it for a leak.
    for (kinds, most) in [(&TUNED[..], 0), (&CHECKED[..], 1), (&UNSEEN[1..], 0)] {
        let rates = false_alarms(SEED, kinds, 3, History::None);
        let (count, years) = rates.sums();
        println!("{count} false alarms in {years:.1} JVM-years");
        assert!(count <= most, "{rates:?}");
    }
}

#[test]
fn leaks_are_found_before_the_limit() {
    let alone = Told::of(&leaks(SEED, Leak::Middle, 10.0, 2, History::None));
    println!("{alone:?}");
    assert!(alone.found >= 75.0 && alone.left >= 10.0);
    let with = Told::of(&leaks(SEED, Leak::Middle, 10.0, 2, History::LifeBefore));
    println!("with the life before: {with:?}");
    assert!(with.found >= alone.found && with.after <= alone.after);
}
