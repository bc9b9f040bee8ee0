//! A collector's log (unified logging, JEP 158 and 271; JDK 11 to 27): `GC(n)`, its kind, and the heap before and
//! after: `Pause Full (Ergonomics) 53M->53M(59M) 1.2ms`; for ZGC, `Major Collection (Warmup) 64M(100%)->4M(6%) 0.003s`.

use crate::record::Trace;
use loadline_base::units::Bytes;

/// Prefixes of lines about the whole heap; other lines are about a generation or metaspace.
const WHOLE: [&str; 5] = ["Pause ", "Garbage Collection", "Minor Collection", "Major Collection", "Concurrent "];
/// Prefixes of full collections. Shenandoah degenerates to a pause when an allocation fails, and a heap can fill up
/// without a `Pause Full` (JDK 25).
const FULL: [&str; 4] = ["Pause Full", "Pause Degenerated GC", "Garbage Collection", "Major Collection"];
/// After this many consecutive full collections that each free less than this share, there is no room to work. Logs
/// round to MiB: a full small heap went from 47 to 46.
const FRUITLESS_MIN: u64 = 3;
const FREED_MIN: f64 = 0.05;
/// A mostly empty heap is not full, however little a collection frees.
const FILLED_MIN: f64 = 0.5;

/// The heap before and after a collection, and its capacity, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sizes {
    before: f64,
    after: f64,
    heap: f64,
}

pub(super) fn read(text: &str) -> Option<Trace> {
    let (mut collections, mut full, mut fruitless, mut last, mut filled) = (0, 0, 0, None, None);
    for (kind, sizes) in text.lines().filter_map(collection) {
        (collections, last) = (collections + 1, Some(sizes));
        if !FULL.iter().any(|full| kind.starts_with(full)) {
            continue;
        }
        full += 1;
        let freed = (sizes.before - sizes.after) / sizes.before.max(1.0);
        fruitless = if freed < FREED_MIN && sizes.after > FILLED_MIN * sizes.heap { fruitless + 1 } else { 0 };
        if fruitless >= FRUITLESS_MIN {
            filled = Some(sizes);
        }
    }
    let Sizes { after, heap, .. } = filled.or(last)?;
    let [left_bytes, heap_bytes] = [after, heap].map(|bytes| bytes as u64);
    Some(Trace::GcLog { collections, full, left_bytes, heap_bytes, was_full: filled.is_some() })
}

fn collection(line: &str) -> Option<(&str, Sizes)> {
    let (_, rest) = line.split_once(" GC(")?;
    let (number, rest) = rest.split_once(") ")?;
    number.parse::<u64>().ok()?;
    let kind = rest.trim_start();
    WHOLE.iter().any(|whole| kind.starts_with(whole)).then_some(())?;
    let (before, after) = kind.split(' ').find_map(|word| word.split_once("->"))?;
    let (after, of) = after.strip_suffix(')')?.split_once('(')?;
    let before = before.split('(').next().unwrap_or(before);
    let bytes = |text: &str| text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64);
    let after = bytes(after)?;
    let heap = match of.strip_suffix('%') {
        Some(percent) => after * 100.0 / percent.parse::<f64>().ok()?.max(1.0),
        None => bytes(of)?,
    };
    Some((kind, Sizes { before: bytes(before)?, after, heap }))
}
