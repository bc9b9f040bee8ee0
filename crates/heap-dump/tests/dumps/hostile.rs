//! Truncated and invalid dumps: an error or a partial result with its reason, never a panic, never much memory.

use crate::made_up::{Shape, made_up};
use crate::writer::{REFERENCE, Writer};
use crate::{summary, whole};
use loadline_heap_dump::{Settings, Summary};
use proptest::prelude::*;

/// The memory limit is small, so no length in a file may be trusted.
const FEW: Settings = Settings {
    layout: loadline_heap_dump::Layout {
        references: loadline_heap_dump::References::Compressed,
        header: loadline_heap_dump::Header::Narrow,
        alignment_bytes: 8,
    },
    memory_bytes_max: 64 << 20,
    holders_max: 20,
};

/// Checks the invariants of a summary.
fn check_laws(summary: &Summary) {
    let held: u64 = summary.holders.iter().map(|holder| holder.retained.bytes).sum();
    assert!(held <= summary.live.bytes, "{held} of {}", summary.live.bytes);
    let by_class: u64 = summary.classes.iter().map(|class| class.amount.bytes).sum();
    assert_eq!(by_class, summary.live.bytes);
}

#[test]
fn a_truncated_dump_is_reported() {
    let dump = made_up(Shape::default());
    let mut partial = 0;
    // Every length in the first part, with all classes, and in the last part, with the threads; some in between.
    let is_tried = |length: &usize| *length < 4000 || *length + 4000 > dump.len() || length.is_multiple_of(97);
    for length in (0..dump.len()).filter(is_tried) {
        match summary(&dump[..length], &FEW) {
            Ok(summary) => {
                let why = summary.incomplete.as_deref().unwrap_or_default();
                let number = loadline_base::units::grouped(length as u64);
                assert!(why.starts_with(&format!("truncated after {number} of ")), "{length}: {why}");
                check_laws(&summary);
                partial += 1;
            }
            Err(error) => {
                let says = error.what.contains("truncated after") || error.what.contains("no object");
                assert!(says, "{length}: {}", error.what);
            }
        }
    }
    assert!(partial > 4000, "{partial}");
}

#[test]
fn other_files_are_rejected() {
    #[track_caller]
    fn check(bytes: &[u8], what: &str) {
        let error = summary(bytes, &FEW).unwrap_err();
        assert!(error.what.contains(what), "{}", error.what);
    }
    check(b"", "truncated after 0 bytes, within its 31-byte header");
    check(&[b'x'; 100], "is not the header of a heap dump");
    check(&[&[0x1f, 0x8b][..], &[0; 100]].concat(), "is not the header of a heap dump");
    check(&Writer::new("1.0.2", 8).end(), "the heap dump contains no objects");
    let mut head = Writer::new("1.0.2", 8).end();
    head[22] = 7;
    check(&head, "7-byte identifiers");
}

/// A dump with one class, one object, and what `more` adds.
fn with(more: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut dump = Writer::new("1.0.2", 8);
    dump.class(8, "java/lang/Object", 0, 0, &[("HELD", 16)], &[]);
    dump.object(16, 8, &[]);
    more(&mut dump);
    dump.end()
}

#[test]
fn damage_is_reported_with_its_offset() {
    #[track_caller]
    fn check(bytes: &[u8], what: &str) {
        let summary = summary(bytes, &FEW).expect("the dump is read in part");
        let why = summary.incomplete.unwrap_or_default();
        assert!(why.starts_with("damaged after ") && why.contains(what), "{why}");
        assert_eq!(summary.live.objects, 2);
    }
    check(&with(|dump| dump.raw(&[0x99])), "a sub-record with the unknown tag 0x99");
    check(&with(|dump| dump.raw(&[&[0x23][..], &[0; 12], &[0, 0, 0, 1, 77, 0]].concat())), "primitive type 77");
    // Four billion elements.
    check(&with(|dump| dump.raw(&[&[0x22][..], &[0; 12], &[0xFF; 4], &[0; 8]].concat())), "past the end of its record");
    check(&with(|dump| dump.raw(&[&[0x21][..], &[0; 20], &[0xFF; 4]].concat())), "bytes of fields");
    check(
        &with(|dump| {
            dump.segment();
            dump.record(0x77, &[1, 2, 3]);
        }),
        "a record with the unknown tag 0x77",
    );
    check(
        &with(|dump| {
            dump.segment();
            dump.record(0x05, &[0xFF; 12]);
        }),
        "past the end of its record",
    );
}

#[test]
fn a_dump_with_invalid_objects_can_be_read() {
    let dump = with(|dump| {
        // A cycle of superclasses, a class that is its own superclass, and one without a name.
        dump.class(24, "A", 32, 0, &[("X", 24), ("Y", 12345), ("Z", 0)], &[("f", REFERENCE)]);
        dump.class(32, "B", 24, 999, &[], &[("g", REFERENCE)]);
        dump.class(40, "C", 40, 16, &[], &[]);
        dump.class(40, "C", 8, 0, &[("AGAIN", 16)], &[("h", REFERENCE)]);
        // Instances with too few or too many fields, or of an unknown class, or of themselves; a duplicate; ID 0.
        dump.instance(48, 24, &[0, 0, 0]);
        dump.object(56, 24, &[64, 64, 64, 64, 64, 64]);
        dump.object(64, 4096, &[48]);
        dump.object(72, 72, &[72]);
        dump.object(72, 24, &[16]);
        dump.object(0, 24, &[16]);
        dump.array(80, 4096, &[80, 0, 123_456, 24]);
        dump.byte_array(0, &[1]);
        for tag in [0xFF, 0x01, 0x05, 0x07] {
            dump.root(tag, 56, &[]);
            dump.root(tag, 0, &[]);
        }
        dump.root(0x08, 0, &[1, 1]);
        dump.root(0x08, 80, &[1, 1]);
        dump.root(0x08, 72, &[2, 1]);
        dump.root(0x03, 48, &[2, 500]);
        dump.root(0x03, 48, &[1, 0]);
        dump.root(0x02, 24, &[7, u32::MAX]);
    });
    let summary = whole(&dump);
    check_laws(&summary);
    assert!(summary.live.objects >= 8, "{summary:#?}");
}

#[test]
fn distant_identifiers_take_little_memory() {
    let ids: Vec<u64> = (1..20_000u64).map(|nth| nth.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let dump = with(|dump| {
        dump.array(24, 8, &ids);
        dump.root(0xFF, 24, &[]);
        ids.iter().for_each(|id| dump.byte_array(*id, &[]));
    });
    let summary = summary(&dump, &FEW).expect("the dump is readable");
    assert_eq!(summary.live.objects, 20_002);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn a_dump_with_changed_bytes_can_be_read_or_is_rejected(
        changes in proptest::collection::vec((0usize..20_000, any::<u8>()), 1..12),
    ) {
        let mut dump = made_up(Shape::default());
        for (at, byte) in changes {
            let at = at * 7 % dump.len();
            dump[at] = byte;
        }
        if let Ok(summary) = summary(&dump, &FEW) {
            check_laws(&summary);
        }
    }
}
