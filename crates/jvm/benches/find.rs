//! Measures how long `find` takes among ten thousand processes with 40 mappings each. `bench/watch.sh` runs it.
#![expect(clippy::print_stdout, reason = "the number is its result")]
#![expect(clippy::unwrap_used, reason = "a measurement that fails should stop")]

use loadline_base::clock::Clock;
use loadline_jvm::observe::jvms::{Finder, LOOKS_YOUNG, TURNS_OLD};
use std::fs;

fn main() {
    let proc = tempfile::tempdir().unwrap();
    let maps = "7f2f7e800000-7f2f7eae3000 r-xp 00400000 fe:00 315638   /usr/lib/libc.so.6\n".repeat(40);
    for pid in 1..=10_000 {
        let folder = proc.path().join(pid.to_string());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("maps"), &maps).unwrap();
    }
    let (clock, mut finder) = (Clock::start(), Finder::default());
    let mut took = || {
        let began = clock.now();
        finder.find_below(proc.path()).unwrap();
        (clock.now() - began).as_secs_f64() * 1e3
    };
    let young = took();
    (1..LOOKS_YOUNG).for_each(|_| _ = took());
    let old = (0..TURNS_OLD).map(|_| took()).fold(0.0, f64::max);
    println!("| a find among 10,000 processes: {young:.1} ms the first four times, then {old:.1} ms at most |");
}
