//! Generated dumps: each kind of holder, each kind of root, and truncated, damaged, and hostile files.

mod hostile;
mod made_up;
mod writer;

use loadline_base::error::Result;
use loadline_heap_dump::{Holder, HolderKind, Settings, Summary, read};
use made_up::{Shape, made_up};
use std::io::Write;

/// Writes `bytes` to a file and reads its summary.
fn summary(bytes: &[u8], settings: &Settings) -> Result<Summary> {
    let mut file = tempfile::tempfile().expect("a temporary file must be creatable");
    file.write_all(bytes).expect("the dump must be writable");
    read(&file, settings)
}

fn whole(bytes: &[u8]) -> Summary {
    let summary = summary(bytes, &Settings::default()).expect("the dump must be readable");
    assert_eq!(summary.incomplete, None);
    summary
}

#[track_caller]
fn named<'a>(summary: &'a Summary, begins: &str) -> &'a Holder {
    let found = summary.holders.iter().find(|holder| holder.to_string().starts_with(begins));
    let all: Vec<String> = summary.holders.iter().map(ToString::to_string).collect();
    found.unwrap_or_else(|| panic!("no `{begins}` among {all:#?}"))
}

#[track_caller]
fn check(summary: &Summary, text: &str, kind: HolderKind, members: u64, objects: u64, bytes: u64) {
    let holder = named(summary, text);
    assert_eq!(holder.to_string(), text);
    assert_eq!((&holder.kind, holder.members), (&kind, members), "{text}");
    assert_eq!((holder.retained.objects, holder.retained.bytes), (objects, bytes), "{text}");
}

#[test]
fn each_kind_of_holder_is_found_in_each_format_version() {
    for (version, id_bytes, granule) in [("1.0.2", 8, 8), ("1.0.2", 4, 8), ("1.0.1", 8, 1), ("1.0.1", 4, 1)] {
        let summary = whole(&made_up(Shape { version, id_bytes, granule }));
        // 50 arrays of 1,000 bytes with 50 nodes of three fields (24 bytes), an array of 50, and the map.
        let bytes = 50 * (1016 + 24) + 216 + 16;
        let way = "app.Orders.CACHE -> java.util.HashMap.table";
        check(&summary, way, HolderKind::StaticField, 1, 102, bytes);
        let kind = HolderKind::ThreadLocal { key: "app.Orders.BUFFER".to_owned() };
        // For each thread, an array of 2,000 bytes and its entry.
        check(&summary, "5 threads web-*, thread-local app.Orders.BUFFER", kind, 5, 10, 5 * (2016 + 24));
        let kind = HolderKind::Frame { method: "app.Orders.load:88".to_owned() };
        check(&summary, "5 threads web-* in app.Orders.load:88", kind, 5, 5, 5 * 3016);
        check(
            &summary,
            "app.Orders.SOFT -> java.lang.ref.Reference.referent",
            HolderKind::StaticField,
            1,
            2,
            24 + 4016,
        );
        check(&summary, "JNI global byte[]", HolderKind::JniGlobal, 1, 1, 5016);
        check(&summary, "3 roots byte[]", HolderKind::OtherRoot, 3, 3, 3 * 6016);
        check(&summary, "app.Orders.LEFT and others", HolderKind::Jointly, 1, 1, 9016);
        let garbage = summary.unreachable_classes.iter().find(|class| class.class == "byte[]").unwrap().amount;
        assert_eq!((garbage.objects, garbage.bytes), (2, 7016 + 8016), "a weakly held array, and an unreferenced one");
        assert!(summary.covered() > 0.99, "{}", summary.covered());
        assert!(summary.covered_by_name() > 0.95, "{}", summary.covered_by_name());
        let held: u64 = summary.holders.iter().map(|holder| holder.retained.bytes).sum();
        assert!(held <= summary.live.bytes);
        assert_eq!(summary.threads, 6);
        assert_eq!(summary.classes[0].class, "byte[]");
    }
}

#[test]
fn statics_of_classes_with_other_loaders_are_identified() {
    let summary = whole(&made_up(Shape::default()));
    check(&summary, "plugin.Rules.PARSED", HolderKind::StaticField, 1, 1, 10_016);
    let loader = named(&summary, "class loader plugin.Loader");
    assert_eq!((&loader.kind, loader.retained.objects), (&HolderKind::ClassLoader, 1));
}

#[test]
fn object_sizes_follow_the_layout() {
    use loadline_heap_dump::{Header, Layout, References};
    let dump = made_up(Shape::default());
    let bytes = |layout| {
        let summary = summary(&dump, &Settings { layout, ..Settings::default() }).unwrap();
        named(&summary, "app.Orders.CACHE").retained.bytes
    };
    let narrow = Layout::default();
    assert_eq!(bytes(Layout { references: References::Whole, ..narrow }), 50 * (1016 + 40) + 416 + 24);
    assert_eq!(bytes(Layout { header: Header::Compact, ..narrow }), 50 * (1016 + 24) + 216 + 16);
    let error = summary(&dump, &Settings { layout: Layout { alignment_bytes: 12, ..narrow }, ..Settings::default() });
    assert!(error.unwrap_err().what.contains("12 bytes"));
}

#[test]
fn the_number_of_holders_is_limited() {
    let summary = summary(&made_up(Shape::default()), &Settings { holders_max: 2, ..Settings::default() }).unwrap();
    assert_eq!(summary.holders.len(), 2);
    assert!(summary.holders[0].retained.bytes >= summary.holders[1].retained.bytes);
    assert!(summary.covered() < 0.9);
}

#[test]
fn insufficient_memory_is_reported_with_numbers() {
    let error = summary(&made_up(Shape::default()), &Settings { memory_bytes_max: 1000, ..Settings::default() });
    let what = error.unwrap_err().what;
    assert!(what.starts_with("reading the heap dump needs ") && what.ends_with("only 0.0 MiB is allowed"), "{what}");
}
