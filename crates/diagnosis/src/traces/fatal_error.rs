//! The error file of a JVM that ended itself (`VMError::report`, JDK 11 to 27): a header whose lines begin with `#`,
//! followed by sections.

use crate::record::{Lacked, Trace};
use loadline_base::units::Bytes;
use loadline_jvm::observe::heap_info::HeapInfo;

/// Titles: an internal failure, and memory refused by the kernel.
const FATAL: &str = "A fatal error has been detected by the Java Runtime Environment";
const NO_MEMORY: &str = "There is insufficient memory for the Java Runtime Environment to continue";
/// The header with `-XX:+CrashOnOutOfMemoryError`.
const OUT_OF_MEMORY: &str = "OutOfMemory encountered: ";
/// The title is within this many lines; other JVM output may precede it.
const TITLE_WITHIN: usize = 50;

pub(super) fn read(text: &str) -> Option<Trace> {
    let is_title = |line: &&str| line.starts_with('#') && (line.contains(FATAL) || line.contains(NO_MEMORY));
    let title = text.lines().take(TITLE_WITHIN).find(is_title)?;
    let below = text.lines().skip_while(|line| *line != title).skip(1).take_while(|line| line.starts_with('#'));
    let problems: Vec<&str> =
        below.map(|line| line.trim_start_matches('#').trim()).filter(|line| !line.is_empty()).collect();
    let of_memory = problems.iter().find(|line| line.contains(OUT_OF_MEMORY));
    let problem = of_memory.or(problems.first()).copied().unwrap_or_default().to_owned();
    let lacked = match of_memory.and_then(|line| line.split_once(OUT_OF_MEMORY)) {
        Some((_, pool)) if pool.contains("Metaspace") || pool.contains("class space") => Lacked::Metaspace,
        Some(_) => Lacked::Heap,
        None if title.contains(NO_MEMORY) => Lacked::Native,
        None => Lacked::Nothing,
    };
    let after = |name: &str| text.lines().find_map(|line| line.trim_start().strip_prefix(name)).map(str::trim);
    let time = after("Time: ").map(|time| time.split(" elapsed").next().unwrap_or(time));
    let heap = text.split_once("\nHeap:\n").map(|(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
    let heap = heap.and_then(|heap| HeapInfo::parse(heap).ok());
    Some(Trace::FatalError {
        problem,
        lacked,
        time: time.unwrap_or_default().to_owned(),
        heap_used_bytes: heap.map(|heap| heap.used.0),
        heap_max_bytes: heap.map(|heap| heap.capacity_max.0),
        rss_bytes: after("Resident Set Size: ").and_then(size),
        limit_bytes: after("memory_limit_in_bytes: ").and_then(size),
        usage_bytes: after("memory_usage_in_bytes: ").and_then(size),
    })
}

/// `105012K (peak: …)`, `1628972 k`, `536870912`; `None` for `unlimited` and `not supported`.
fn size(text: &str) -> Option<u64> {
    let mut words = text.split([' ', ',']);
    let (number, unit) = (words.next()?, words.next().unwrap_or_default());
    let unit = if matches!(unit, "k" | "K" | "M" | "MB" | "KB") { unit } else { "" };
    format!("{number}{unit}").parse::<Bytes>().ok().map(|bytes| bytes.0)
}
