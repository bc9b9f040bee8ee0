//! The contents of some owners in words: synthetic records, names that contain markup.

use super::*;
use crate::record::{CodeHeapRecord, ObjectKind, ThreadPoolRecord, ThreadRecord};
use crate::terminal::render_within;

fn text(block: Part) -> String {
    render_within(&[block], 80)
}

fn sum(instances: u64, bytes: u64) -> ObjectSum {
    ObjectSum { instances, bytes }
}

fn found(names: &[&str], start: Option<ObjectSum>) -> ObjectsRecord {
    let class = |name: &&str| ObjectClass { name: (*name).to_owned(), now: sum(1_200, 4 << 20), at_start: start };
    let kind = |kind, now| ObjectKind { kind, now, at_start: start };
    ObjectsRecord {
        total: sum(40_000, 9 << 20),
        at_start: start.map(|_| sum(30_000, 6 << 20)),
        kinds: vec![
            kind(ObjectKindName::Strings, sum(9_000, 216_000)),
            kind(ObjectKindName::ByteArrays, sum(9_100, 700_000)),
            kind(ObjectKindName::Boxed, sum(0, 0)),
            kind(ObjectKindName::EmptyMaps, sum(31, 1_488)),
        ],
        classes: names.iter().map(class).collect(),
        classes_left_out: 900,
    }
}

#[test]
fn grown_objects_are_shown_with_the_heap_in_use() {
    let found = found(&["[B", "com.example.session.store.VeryLongNameOfASessionEntry"], Some(sum(1_000, 3 << 20)));
    insta::assert_snapshot!(text(Part::Table(objects(&found, "a fresh JVM was ready", Some(10 << 20)))));
}

#[test]
fn a_class_that_gains_one_small_object_per_request_is_shown() {
    let heavy: Vec<String> = (0..40).map(|n| format!("java.lang.C{n}")).collect();
    let heavy: Vec<&str> = heavy.iter().map(String::as_str).collect();
    let mut found = found(&heavy, Some(sum(1_000, 3 << 20)));
    let own = |name: &str, then, now| {
        let [then, now] = [then, now].map(|instances| sum(instances, 16 * instances));
        ObjectClass { name: name.to_owned(), now, at_start: Some(then) }
    };
    found.classes.extend([own("shop.Few", 0, 3), own("shop.Request", 10, 2_010), own("shop.Kept", 5_000, 5_000)]);
    let shown = text(Part::Table(objects(&found, "then", None)));
    let line = shown.lines().find(|line| line.contains("shop.Request")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("+2,000") && shown.contains("the last class listed gained the most objects"), "{shown}");
    assert!(!shown.contains("shop.Few") && !shown.contains("shop.Kept") && shown.contains("and 927 more"), "{shown}");
}

#[test]
fn arrays_are_written_as_in_java() {
    for (told, shown) in [
        ("[B", "byte[]"),
        ("[[J", "long[][]"),
        ("[La.B;", "a.B[]"),
        ("B", "B"),
        ("[", "[]"),
        ("[X", "X[]"),
        ("a.B", "a.B"),
    ] {
        assert_eq!(spelled(told), shown);
    }
}

#[test]
fn object_growth_is_omitted_without_a_start() {
    let table = objects(&found(&["[B"], None), "", None);
    assert_eq!(table.head, ["class", "objects", "KiB"]);
    assert!(!text(Part::Table(table)).contains("growth"));
}

#[test]
fn markup_in_class_names_is_escaped_and_lines_fit() {
    let names: Vec<String> = (0..200).map(|n| format!("x.\u{1b}[31m<b>|`\u{202e}{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // Wide enough that no name wraps.
    let shown = render_within(&[Part::Table(objects(&found(&names, Some(sum(u64::MAX, u64::MAX))), "", None))], 400);
    assert!(!shown.contains(['\u{1b}', '\u{202e}']) && shown.lines().count() < 30, "{shown}");
    let pool = ThreadPoolRecord { name: "\u{1b}]0;x\u{7}-*".to_owned(), threads: 3, ..ThreadPoolRecord::default() };
    let mark = Mark { pools: vec![pool; 100], ..Mark::default() };
    let shown = text(pools(&mark));
    assert!(!shown.contains('\u{7}') && shown.contains("and 60 more pools"), "{shown}");
}

#[test]
fn code_cache_and_threads_have_tables() {
    let heap = |name: &str, used_bytes| CodeHeapRecord {
        name: name.to_owned(),
        reserved_bytes: 120 << 20,
        committed_bytes: Some(8 << 20),
        used_bytes,
        used_bytes_peak: used_bytes + (1 << 20),
        rss_bytes: Some(used_bytes),
    };
    let pool = |name: &str, threads, stack_bytes, cpu_s| ThreadPoolRecord {
        name: name.to_owned(),
        threads,
        stack_bytes,
        cpu_s,
        allocated_bytes: (threads > 100).then_some(threads << 22),
    };
    let mark = Mark {
        code: vec![heap("non-profiled nmethods", 3 << 20), heap("profiled nmethods", 6 << 20)],
        pools: vec![pool("http-nio-8080-e", 200, 9 << 20, 12.5), pool("pool-*-thread-*", 16, 1 << 20, 0.25)],
        ..Mark::default()
    };
    insta::assert_snapshot!(format!("{}{}", text(code(&mark)), text(pools(&mark))));
    assert!(text(code(&Mark::default())).contains("did not report"));
    assert!(text(pools(&Mark::default())).contains("No thread"));
}

#[test]
fn threads_with_the_largest_value_in_any_column_are_shown() {
    let thread = |tid: u32, name: &str, stack_bytes, cpu_s, allocated_bytes| ThreadRecord {
        tid,
        name: name.to_owned(),
        stack_bytes,
        cpu_s,
        allocated_bytes,
    };
    let mut listed: Vec<_> = (0..60).map(|n| thread(n, "exec-\u{1b}[1m", Some(8 << 10), 0.01, Some(2 << 20))).collect();
    listed.extend([
        thread(70, "deep", Some(900 << 10), 0.0, Some(0)),
        thread(71, "allocates", Some(4 << 10), 0.0, Some(3 << 30)),
        thread(72, "C2 CompilerThre", None, 25.0, None),
    ]);
    let shown = text(threads(&listed));
    let place = |name: &str| shown.find(name).unwrap_or_else(|| panic!("no {name}:\n{shown}"));
    assert!(place("deep") < place("exec-") && place("exec-") < place("allocates") && place("allocates") < place("C2 "));
    assert_eq!(shown.matches("exec-").count(), 37, "{shown}");
    assert!(shown.contains("and 23 more with 184 KiB of stacks, which allocated 46.0 MiB (--json)"), "{shown}");
    assert!(!shown.contains('\u{1b}') && shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    // Values from a damaged document are never used as divisors.
    let nothing = [f64::NAN, f64::INFINITY, 0.0].map(|cpu_s| thread(1, "", Some(u64::MAX), cpu_s, Some(u64::MAX)));
    assert!(text(threads(&nothing)).contains("threads: resident stacks"));
}

#[test]
fn a_heap_dump_is_shown_with_its_path() {
    let dumped = HeapDumpRecord { path: "/tmp/a.hprof".to_owned(), bytes: 3 << 20, seconds: 0.25 };
    assert_eq!(
        text(dump(&dumped)),
        "  The heap dump is /tmp/a.hprof: 3.0 MiB, written in 0.25 s while the JVM was\n  paused.\n"
    );
}
