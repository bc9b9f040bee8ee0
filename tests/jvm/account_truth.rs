//! The account compared with the JVM's own memory map (`VM.native_memory detail`) and glibc's figures for the same
//! process. Loadline uses neither: the map permanently costs a subject 5 MB, and most JVMs run without NMT.

use crate::account::{held, held_by_all, parts};
use crate::invocation::every_release;
use crate::nmt_detail;
use crate::standing::{LaunchPlan, Standing};
use loadline::observe::nmt::{Category, NativeMemory};
use loadline::observe::pagemap::PageMap;
use loadline::observe::procfs::Process;
use loadline::record::AccountRecord;
use std::collections::BTreeMap;

const DETAIL: &str = "-XX:NativeMemoryTracking=detail";

/// Resident bytes in the ranges of these categories.
fn resident(subject: &Standing, ranges: &[(u64, u64, String)], categories: &[&str]) -> u64 {
    let mut map = PageMap::open(&Process::open(subject.pid()).unwrap()).unwrap();
    let mut bytes = 0;
    for (start, end, _) in ranges.iter().filter(|(.., category)| categories.contains(&category.as_str())) {
        let runs = map.list(*start, *end).unwrap();
        bytes += runs.iter().filter(|run| !run.swapped).map(|run| run.size()).sum::<u64>();
    }
    bytes
}

#[test]
fn account_rows_match_the_jvms_mappings() {
    let rows: [(&str, &[&str]); 6] = [
        ("java_heap", &["Java Heap"]),
        ("cds", &["Shared class space"]),
        ("metaspace", &["Metaspace", "Class"]),
        ("code_cache", &["Code"]),
        ("thread_stacks", &["Thread Stack"]),
        ("gc", &["GC"]),
    ];
    for release in every_release() {
        for options in ["-Xmx256m -XX:+UseG1GC", "-Xmx256m -XX:+UseSerialGC", "-Xmx256m -XX:+UseParallelGC"] {
            let subject = LaunchPlan::on(release, &format!("{options} {DETAIL}")).serving("DemoServer");
            let account = subject.account();
            let Some(text) = subject.jcmd("VM.native_memory detail") else { continue };
            let ranges = nmt_detail::ranges(&text);
            for (row, categories) in rows {
                let class_space = if row == "metaspace" { held(&account, "class_space") } else { 0 };
                let ours = held_by_all(&account, row) + class_space;
                let truth = resident(&subject, &ranges, categories);
                println!("JDK {release} {options}, {row}: {} KiB, actually {}", ours >> 10, truth >> 10);
                assert!(ours.abs_diff(truth) * 100 <= account.total_bytes, "{row}: {ours}, actually {truth}");
            }
        }
    }
}

/// Bytes requested under a tag, in arenas and mapped separately.
fn asked(account: &AccountRecord, tag: &str) -> u64 {
    let owners = ["malloc.live", "malloc.mmapped"].into_iter();
    let parts = owners.flat_map(|owner| parts(account, owner, "tag")).filter(|part| part.name == tag);
    parts.filter_map(|part| part.allocated_bytes).sum()
}

/// Bytes in malloc by NMT category.
fn by_category(subject: &Standing) -> Option<BTreeMap<String, u64>> {
    let summary = NativeMemory::parse(&subject.jcmd("VM.native_memory summary scale=KB")?).unwrap();
    let arenas: u64 = summary.categories.iter().map(|category| category.nmt_arena.0).sum();
    let bytes = |category: &Category| {
        // NMT arena chunks carry the tag `Arena Chunk`, regardless of their category.
        let more = if category.name == "Arena Chunk" { arenas } else { 0 };
        (category.name.clone(), category.malloc.0 + more)
    };
    Some(summary.categories.iter().map(bytes).collect())
}

/// Asserts that each tag has as many malloc bytes as its NMT category, which may change meanwhile.
pub(crate) fn assert_tags(subject: &Standing) {
    let _ = subject.account();
    let Some(before) = by_category(subject) else { return };
    let account = subject.account();
    for (name, after) in by_category(subject).unwrap() {
        let then = before.get(&name).copied().unwrap_or(after);
        let (least, most) = (then.min(after), then.max(after));
        // NMT counts its own table separately, and builds its reply in `Internal`: 1 MiB on JDK 25.
        if least < 80 << 10 || ["Native Memory Tracking", "Internal"].contains(&name.as_str()) {
            continue;
        }
        let ours = asked(&account, &name);
        println!("{name}: {} KiB, by NMT {} to {}", ours >> 10, least >> 10, most >> 10);
        assert!((least * 97 / 100..=most * 103 / 100).contains(&ours), "{name}: {ours}, by NMT {least} to {most}");
    }
}

#[test]
fn malloc_tags_match_the_jvms_counts() {
    for release in every_release() {
        let subject = LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC -XX:NativeMemoryTracking=summary -Xint")
            .serving("DemoServer");
        println!("JDK {release}");
        assert_tags(&subject);
    }
}

#[test]
fn the_malloc_walk_finds_all_memory_of_glibc() {
    for release in every_release().into_iter().filter(|release| *release >= 21) {
        let subject = LaunchPlan::on(release, "-Xmx64m -XX:+UseSerialGC").serving("DemoServer");
        // After the first command, the attach listener has its own arena.
        let asked = || subject.document("--attach").mark.account.unwrap();
        let _ = asked();
        let account = asked();
        // In `malloc_info`, the last `system` is the sum over arenas.
        let Some(text) = subject.jcmd("System.native_heap_info") else { continue };
        let size = |line: &str| line.split("size=\"").nth(1)?.split('"').next()?.parse::<u64>().ok();
        let system = text.lines().filter(|line| line.contains("<system type=\"current\"")).filter_map(size).next_back();
        let (ours, truth) = (account.malloc.unwrap().system_bytes, system.unwrap());
        println!("JDK {release}: {ours}, by malloc_info {truth}");
        assert!(ours.abs_diff(truth) * 1000 <= truth * 5, "{ours}, by malloc_info {truth}");
    }
}
