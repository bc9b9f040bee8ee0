//! Processes with fake tables next to an honest JVM: `loadline watch` keeps reading the honest one, responds, ends, and
//! stays within its memory.

use crate::invocation::{Call, newest};
use crate::native::build;
use crate::scraped::address;
use crate::waiting::{LONG, wait_for};
use crate::watch::Leaking;
use loadline::clock::Clock;
use loadline_test_support::{KilledOnDrop, answer};
use std::path::Path;
use std::process::Command;

/// The memory limit in the systemd unit and the DaemonSet in `monitoring/`.
const GIVEN_BYTES: u64 = 64 << 20;
/// Samples of the honest JVM to wait for.
const SAMPLES: usize = 10;
const METRICS: &str = "GET /metrics HTTP/1.1";

/// A process whose `libjvm.so` contains this lie.
fn liar(library: &Path, lie: &str) -> KilledOnDrop {
    let child = Command::new("sleep").arg("600").env("LD_PRELOAD", library).env("LIAR", lie).spawn().unwrap();
    let (maps, name) = (format!("/proc/{}/maps", child.id()), library.to_string_lossy().into_owned());
    let liar = KilledOnDrop(child);
    // Until its linker has mapped the library, it is not a JVM.
    wait_for("the library is mapped", LONG, || {
        let maps = std::fs::read_to_string(&maps).unwrap_or_default();
        if maps.contains(&name) { Ok(()) } else { Err(maps) }
    });
    liar
}

/// The value of the metric on the line with this prefix.
fn value<'t>(text: &'t str, metric: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(metric)).map(str::trim)
}

/// A process's peak RSS.
fn rss_bytes_peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib = value(&status, "VmHWM:").unwrap().trim_end_matches(" kB");
    1024 * kib.parse::<u64>().unwrap()
}

#[test]
fn a_jvm_with_forged_tables_does_not_prevent_watching_others() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = build(folder.path(), "jvm", &[]) else { return };
    for release in newest() {
        let honest = Leaking::start(release, &[("idle", "rate=0", "-Xmx32m")]);
        for lie in ["classes:4000000", "netty:1000000", "threads:100000", "flags:16384"] {
            let liar = liar(&library, lie);
            let pids = format!("{} {}", honest.pids(), liar.0.id());
            let options = "--every 100ms --account never --listen 127.0.0.1:0 --history histories";
            let mut watched = Call::verb(&format!("watch {pids} {options}")).beside().start();
            let (address, clock) = (address(&mut watched), Clock::start());
            let text = wait_for("the liar is watched or set aside", LONG, || {
                let is_seen = |text: &String| {
                    text.contains("loadline_jvm_info{jvm=\"sleep\"")
                        || value(text, "loadline_watch_set_aside_processes ").is_some_and(|count| count != "0")
                };
                Some(answer(&address, METRICS)).filter(is_seen).ok_or("not yet")
            });
            let seen = clock.now();
            let mut ages: Vec<String> = Vec::new();
            wait_for("the honest JVM is sampled continuously", LONG, || {
                let text = answer(&address, METRICS);
                let age = value(&text, "loadline_jvm_age_seconds{jvm=\"loadline.subjects.Leaks\"}");
                ages.extend(age.map(str::to_owned).filter(|age| !ages.contains(age)));
                if ages.len() > SAMPLES { Ok(()) } else { Err(text) }
            });
            let (sampled, peak) = (clock.now(), rss_bytes_peak(watched.pid()));
            watched.signal("TERM");
            watched.wait().expect(0);
            println!(
                "{lie}: seen after {seen:.1?}, {SAMPLES} samples of the other by {sampled:.1?}, ended by {:.1?}; {peak} \
                 bytes at most; unreadable {:?}, set aside {:?}",
                clock.now(),
                value(&text, "loadline_watch_unreadable{jvm=\"sleep\"}"),
                value(&text, "loadline_watch_set_aside_processes "),
            );
            assert!(peak < GIVEN_BYTES, "{lie}: a peak of {peak} bytes");
        }
    }
}
