//! Truncated at any byte, or with random bytes changed, untrusted text yields wrong values or none, but never a panic.

use super::{JDKS, bytes, drivers, folder, nmt_detail};
use loadline::kernel::cgroup::{CgroupVersion, Hierarchy, parse_limit};
use loadline::kernel::charge::Charge;
use loadline::kernel::cpu_cgroup::Throttled;
use loadline::kernel::machine::{CpuTimes, MemInfo, Pressure, parse_choice, parse_loadavg};
use loadline::kernel::process::{Stat, Statm, Status};
use loadline::observe::addresses::JvmAddresses;
use loadline::observe::heap_info::HeapInfo;
use loadline::observe::hsperfdata::Counters;
use loadline::observe::vm_flags::{Flags, differences};
use loadline::observe::{attach, maps, metaspace_nodes, nmt, smaps, vm_version};
use loadline::units::Bytes;
use loadline_test_support::cuts;
use proptest::prelude::*;

const STAT: &str = "cpu  70107 5937 16428 256891 760 0 1704 66 0 0\ncpu0 36411 3067 7686 127724 146 0 1077 27 0 0\n";
const MOUNTS: &str = "14 35 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      41 38 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
const MEMBERSHIP: &str = "4:memory:/docker/8aa91f81\n0::/system.slice/app.service\n";
const MEMORY: &str = "MemTotal: 9 kB\nMemAvailable: 8 kB\nSwapTotal: 7 kB\nSwapFree: 5 kB\n";
const REPLY: &str = "0\nOpenJDK 64-Bit Server VM version 17.0.15+6\nJDK 17.0.15\n";

/// Runs text through every parser, including ones for other formats.
fn parse_with_all(raw: &[u8]) {
    let text = &*String::from_utf8_lossy(raw);
    let _ = (HeapInfo::parse(text), nmt::NativeMemory::parse(text), vm_version::VmVersion::parse(text));
    let flags = Flags::parse(text);
    let asked: Vec<String> = text.split(' ').take(20).map(str::to_owned).collect();
    let _ = (differences(&asked, &flags), attach::parse_reply(text));
    let smaps = smaps::Smaps::parse(text);
    let _ = (smaps.total(), smaps.allocator(), maps::libjvm(smaps.maps()).map(str::len), smaps::parse_rollup(text));
    let _ = smaps.maps().map(|mapping| mapping.size().0 / 2 + mapping.file_name().len() as u64).max();
    let _ = (Status::parse(text).map(|status| status.catches(3)), Statm::parse(text, Bytes::kib(4)));
    let _ = (Stat::parse(text, 100).map(|stat| stat.cpu()), Stat::parse(text, 0));
    let _ =
        (parse_limit(text), Hierarchy::parse(text, "memory", |_| true).map(|hierarchy| hierarchy.folder(MEMBERSHIP)));
    for version in [CgroupVersion::V1, CgroupVersion::V2] {
        let hierarchy = Hierarchy { controller: "memory", version, mount: "/sys/fs/cgroup".into(), root: "/".into() };
        let _ = (Charge::parse(text, version), hierarchy.folder(text), Throttled::parse(text, version));
    }
    if let Some(times) = CpuTimes::parse(text, 100) {
        let _ = (times.share_stolen(), times.since(&times));
    }
    parse_ranges(text);
    let _ = (MemInfo::parse(text), Pressure::parse(text), parse_loadavg(text), parse_choice(text));
}

/// Checks that ranges stay ordered and disjoint for any text, because an account adds them up.
fn parse_ranges(text: &str) {
    let apart = |ranges: &[(u64, u64)]| {
        assert!(ranges.iter().all(|range| range.0 < range.1) && ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    };
    if let Ok(found) = JvmAddresses::parse(text, 4096) {
        apart(&found.ranges.iter().map(|range| (range.start, range.end)).collect::<Vec<_>>());
        apart(&found.used_ranges);
    }
    if let Ok(nodes) = metaspace_nodes::parse(text) {
        apart(&nodes.iter().map(|node| (node.start, node.end)).collect::<Vec<_>>());
    }
    assert!(nmt_detail::ranges(text).iter().all(|range| range.0 < range.1));
}

fn parse_counters(raw: &[u8]) {
    if let Ok(counters) = Counters::parse(raw) {
        let _ = (counters.sample(), counters.collections(), counters.identity(), counters.attach_supported());
    }
}

/// All samples: text by name, binary ones by suffix.
fn samples() -> Vec<(String, Vec<u8>)> {
    let groups = JDKS.map(|jdk| jdk.to_string()).into_iter().chain(["cgroup-v1".into(), "cgroup-v2".into()]);
    let files = groups.flat_map(|group| {
        let names = std::fs::read_dir(folder().join(&group)).unwrap().map(|file| file.unwrap().file_name());
        names.map(move |name| format!("{group}/{}", name.to_str().unwrap())).collect::<Vec<_>>()
    });
    let mut all: Vec<_> = files.map(|name| (name.clone(), bytes(&name))).collect();
    for (n, text) in [STAT, MOUNTS, MEMBERSHIP, MEMORY, REPLY].into_iter().enumerate() {
        all.push((format!("inline {n}"), text.as_bytes().to_vec()));
    }
    all.sort();
    all
}

fn is_binary(name: &str) -> bool {
    name.ends_with(".bin")
}

#[test]
fn truncated_sample_texts_do_not_panic() {
    for (name, raw) in samples().iter().filter(|(name, _)| !is_binary(name)) {
        let most = match name {
            // All mappings look alike, so the first two represent all.
            name if name.ends_with("smaps.txt") => 1600,
            // Ranges and call stacks, all alike.
            name if name.ends_with("nmt_detail.txt") => 6000,
            // Lines that are all alike and unknown to the parsers here.
            name if name.ends_with("metaspace_log.txt") => 1600,
            _ => raw.len(),
        };
        // The longest samples only go through their own parsers, to save time.
        let of_ranges = ["vm_info", "vslist", "nmt_detail"].iter().any(|kind| name.contains(kind));
        for end in cuts(most) {
            match of_ranges {
                true => parse_ranges(&String::from_utf8_lossy(&raw[..end])),
                false => parse_with_all(&raw[..end]),
            }
        }
        parse_with_all(raw);
    }
}

#[test]
fn truncated_counters_do_not_panic() {
    for (_, raw) in samples().iter().filter(|(name, _)| name.ends_with("hsperfdata-g1.bin")) {
        for end in cuts(raw.len()) {
            parse_counters(&raw[..end]);
        }
    }
}

/// Each change: where (as a fraction of the length), and the new byte.
fn changes() -> impl Strategy<Value = Vec<(f64, u8)>> {
    // Digits and signs create absurd numbers; other bytes break the format.
    let byte = prop_oneof![Just(b'9'), Just(b'-'), Just(b' '), Just(b'\n'), Just(0xff), any::<u8>()];
    prop::collection::vec((0.0..1.0, byte), 1..20)
}

fn change(raw: &mut [u8], changes: &[(f64, u8)], up_to: usize) {
    let len = raw.len().min(up_to);
    for (share, byte) in changes.iter().filter(|_| len > 0) {
        raw[(share * len as f64) as usize] = *byte;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn changed_sample_texts_do_not_panic(pick in any::<prop::sample::Index>(), changes in changes()) {
        let texts: Vec<_> = samples().into_iter().filter(|(name, _)| !is_binary(name)).collect();
        let mut raw = pick.get(&texts).1.clone();
        change(&mut raw, &changes, usize::MAX);
        parse_with_all(&raw);
    }

    #[test]
    fn changed_counters_never_panic(pick in any::<prop::sample::Index>(), changes in changes(), head in any::<bool>()) {
        let binaries: Vec<_> = samples().into_iter().filter(|(name, _)| is_binary(name)).collect();
        let mut raw = pick.get(&binaries).1.clone();
        change(&mut raw, &changes, if head { 120 } else { usize::MAX });
        parse_counters(&raw);
    }

    #[test]
    fn changed_load_reports_have_consistent_counts(pick in any::<prop::sample::Index>(), changes in changes()) {
        let names = drivers::names();
        let mut raw = bytes(&format!("drivers/{}", pick.get(&names)));
        change(&mut raw, &changes, usize::MAX);
        if let Some(reported) = drivers::read("./load.sh", &String::from_utf8_lossy(&raw)) {
            assert!(reported.ok() <= reported.requests);
        }
    }

    #[test]
    fn any_sample_text_can_be_parsed(text in "(.|\n){0,200}") {
        parse_with_all(text.as_bytes());
        parse_counters(text.as_bytes());
        let _ = drivers::read("wrk", &text);
    }
}
