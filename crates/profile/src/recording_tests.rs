//! Generated, damaged, and truncated recordings, and one from async-profiler 4.4 on JDK 17.

use super::*;
use crate::jfr::made_up::{self, Bytes, free, live, malloc, setting, trace};
use crate::owner::DirectBy;
use crate::sites::PlaceKind;
use loadline_test_support::cuts;
use std::io::Cursor;

/// A program that keeps direct buffers and deflaters: `tests/samples/README.md`.
const SAMPLE: &[u8] = include_bytes!("../tests/samples/plants-17.jfr");

fn read(bytes: &[u8]) -> Recording {
    Recording::read(Cursor::new(bytes)).unwrap()
}

fn of(events: &[Bytes]) -> Vec<u8> {
    made_up::chunk(0, &made_up::metadata(&made_up::types()), events, &made_up::tables())
}

#[track_caller]
fn check_sites(recording: &Recording, expect: &[(&str, u64, u64)]) {
    let sites: Vec<(String, u64, u64)> = recording
        .sites
        .iter()
        .map(|site| (site.place.to_string(), site.uses.bytes_end, site.uses.bytes_at_peak))
        .collect();
    let expect: Vec<_> = expect.iter().map(|(place, end, peak)| ((*place).to_owned(), *end, *peak)).collect();
    assert_eq!(sites, expect);
}

const EXPORT: &str = "com.shop.Orders.export(Orders.java:88)";
const LOAD: &str = "com.shop.Orders.load(Orders.java:99)";
const COMPILING: &str = "C2 compiler, compiling com.shop.Scores.of";

#[test]
fn bytes_by_site_at_the_end_and_at_the_peak() {
    // The file's order is not the time order.
    let bytes = of(&[
        setting("nativemem", "0"),
        free(30, 12, 0x200),
        malloc(10, 11, 1, 0x100, 1000),
        malloc(40, 11, 3, 0x300, 50),
        malloc(20, 12, 2, 0x200, 9000),
        malloc(15, 11, 1, 0x110, 500),
        free(35, 11, 0x110),
        made_up::event(made_up::OTHER, &Bytes::default().integer(1)),
        made_up::event(9999, &Bytes::default().integer(1)),
    ]);
    let recording = read(&bytes);
    assert_eq!(recording.notes, []);
    check_sites(&recording, &[(COMPILING, 0, 9000), (EXPORT, 1000, 1500), (LOAD, 50, 0)]);
    assert_eq!(recording.native_every, Some(0));
    assert_eq!(recording.peak_at_s, Some(0.01));
    assert_eq!((recording.total.bytes_end, recording.total.bytes_at_peak), (1050, 10_500));
    let site = &recording.sites[1];
    assert_eq!(site.owner, Owner::Direct(DirectBy::ByteBuffer));
    assert_eq!(site.place.kind, PlaceKind::Application);
    let below: Vec<String> = recording.below(site).into_iter().map(Frame::brief).collect();
    assert_eq!(
        below,
        [
            "Orders.export(Orders.java:88)",
            "ByteBuffer.allocateDirect(ByteBuffer.java:33)",
            "libjvm.so`Unsafe_AllocateMemory0"
        ]
    );
    let own = &recording.native[site.stacks[0]];
    assert_eq!((own.threads.as_slice(), own.threads_more), (&["web-1".to_owned()][..], 0));
    assert_eq!(own.uses.bytes_freed, 500);
    assert_eq!(recording.frames(own.stack).count(), 4);
}

#[test]
fn calls_are_counted_by_site() {
    let recording = read(&of(&[trace(10, 11, 4), malloc(15, 11, 1, 0x100, 7), trace(20, 12, 4), trace(30, 11, 1)]));
    check_sites(&recording, &[(EXPORT, 7, 7)]);
    let calls: Vec<(Call, String, u64)> =
        recording.calls.iter().map(|site| (site.call, site.place.to_string(), site.calls)).collect();
    assert_eq!(calls, [(Call::StartsProcess, LOAD.to_owned(), 2)]);
    let below = recording.below_place(&recording.calls[0].place, recording.calls[0].stack);
    assert_eq!(below[1].brief(), "ProcessBuilder.start(ProcessBuilder.java:1073)");
}

#[test]
fn keys_are_local_to_their_chunk() {
    let first = of(&[malloc(10, 11, 1, 0x100, 1000), malloc(11, 11, 1, 0x101, 7)]);
    // In the second chunk, key 1 is another stack. That chunk frees memory that was allocated in the first.
    let renamed: Vec<Bytes> = vec![
        made_up::tables().remove(0),
        made_up::tables().remove(1),
        made_up::checkpoint(&[(
            made_up::STACK,
            &[(1, Bytes::default().byte(0).integer(1).integers(&[108, 99, 0, 1]))],
        )]),
    ];
    let types = made_up::metadata(&made_up::types());
    let second = made_up::chunk(5_000_000_000, &types, &[free(1, 11, 0x100), malloc(2, 11, 1, 0x200, 20)], &renamed);
    let recording = read(&[first, second].concat());
    assert_eq!(recording.notes, []);
    check_sites(&recording, &[(EXPORT, 7, 1007), (LOAD, 20, 0)]);
}

#[test]
fn samples_represent_the_bytes_between_them() {
    let bytes = of(&[
        setting("nativemem", "4096"),
        setting("alloc", "1000"),
        malloc(1, 11, 1, 0x100, 16),
        malloc(2, 11, 1, 0x200, 10_000),
        live(11, 3, 109, 1000),
        live(11, 3, 109, 1000),
    ]);
    let recording = read(&bytes);
    assert_eq!(recording.total.bytes_end, 4096 + 10_000);
    assert_eq!(recording.notes, [Note::NoFrees]);
    let [own] = recording.live.as_slice() else { panic!("{:?}", recording.live) };
    assert_eq!((own.class.as_str(), own.place.to_string().as_str(), own.samples.objects), ("byte[]", LOAD, 2));
    assert_eq!(own.samples.bytes, 2000);
    let bytes = own.samples.bytes_estimated;
    assert!((bytes - 2000.0 / (1.0 - (-1.0_f64).exp())).abs() < 0.1, "{bytes}");
}

#[test]
fn an_empty_recording_is_explained() {
    let notes = |bytes: &[u8]| read(bytes).notes;
    assert_eq!(notes(b""), [Note::Empty]);
    assert_eq!(notes(&of(&[])), [Note::Empty]);
    assert_eq!(notes(&of(&[live(11, 3, 109, 8)])), [Note::NoNative]);
    assert_eq!(notes(&of(&[malloc(1, 11, 1, 1, 1)])), [Note::NoFrees]);
    let later = [&b"FLR\0\x00\x09\x00\x00"[..], &[0; 100]].concat();
    for other in [&b"PK\x03\x04 a jar"[..], &[0; 100], &later] {
        assert!(Recording::read(Cursor::new(other)).is_err());
    }
}

#[test]
fn a_truncated_recording_keeps_complete_parts() {
    let whole = of(&[malloc(10, 11, 1, 0x100, 1000), free(11, 11, 0x1)]);
    let mut cut = of(&[malloc(10, 11, 1, 0x200, 70), free(11, 11, 0x2)]);
    // A killed JVM leaves a chunk without tables and with an incomplete header.
    let tables: usize = made_up::tables().iter().map(|bytes| bytes.0.len()).sum();
    cut.truncate(cut.len() - tables);
    cut[8..16].copy_from_slice(&(1_u64 << 30).to_be_bytes());
    cut[16..32].fill(0);
    let recording = read(&[whole, cut].concat());
    check_sites(&recording, &[(EXPORT, 1000, 1000), ("no stack", 70, 70)]);
    assert_eq!(recording.notes, [Note::WithoutStacks, Note::Cut]);
}

/// Checks that reading does not panic, returns an error or a note, and finds no more than the whole file contains.
fn survives(bytes: &[u8], whole: &Recording) {
    if let Ok(read) = Recording::read(Cursor::new(bytes)) {
        assert!(!read.notes.is_empty(), "{} bytes: no note", bytes.len());
        assert!(read.total.allocations <= whole.total.allocations);
        for site in &read.sites {
            let _ = (site.place.to_string(), read.below(site).len());
        }
    }
}

#[test]
fn a_recording_truncated_at_any_byte_keeps_its_complete_part() {
    let made_up = of(&[malloc(10, 11, 1, 0x100, 1000), malloc(12, 11, 3, 0x200, 9), free(11, 11, 0x100)]);
    for bytes in [&made_up, SAMPLE] {
        let whole = read(bytes);
        assert_eq!(whole.notes, []);
        cuts(bytes.len() - 1).skip(1).for_each(|cut| survives(&bytes[..cut], &whole));
    }
}

#[test]
fn a_recording_with_any_wrong_byte_does_not_panic() {
    let events =
        [malloc(10, 11, 1, 0x100, 1000), malloc(12, 12, 2, 0x200, 9), free(11, 11, 0x100), live(11, 3, 109, 8)];
    let whole = of(&events);
    for at in 0..whole.len() {
        for wrong in [0, 1, 0x7f, 0x80, 0xff, whole[at] ^ 1, whole[at].wrapping_add(1)] {
            let mut bytes = whole.clone();
            bytes[at] = wrong;
            // The figures may differ: a wrong byte of a size cannot be detected.
            if let Ok(read) = Recording::read(Cursor::new(bytes)) {
                assert!(read.sites.len() <= 4);
            }
        }
    }
}

#[test]
fn hostile_types_and_counts_end_immediately() {
    let types = |change: &dyn Fn(&mut Vec<made_up::TypeSpec>)| {
        let mut types = made_up::types();
        change(&mut types);
        made_up::metadata(&types)
    };
    let damage = |types: &Bytes, event: Bytes, tables: &[Bytes]| {
        let recording = read(&made_up::chunk(0, types, &[event, malloc(2, 11, 1, 0x9, 3)], tables));
        assert!(recording.notes.iter().any(|note| matches!(note, Note::Damaged { .. })), "{:?}", recording.notes);
        recording
    };
    let field = |name, of, array| (name, of, false, array);
    // A type that contains itself, and eight levels of types, each with eight fields of the type one level below.
    let itself = types(&|types| types.push((400, "x.Self", vec![field("x", 400, false)])));
    let malloc_with = |of: u64| {
        types(&move |types: &mut Vec<made_up::TypeSpec>| {
            types.push((400, "x.Self", vec![field("x", 400, false)]));
            types.push((500, "x.Nothing", vec![]));
            types.extend((501..=508).map(|id| (id, "x.Eight", vec![field("x", id - 1, false); 8])));
            if let Some(malloc) = types.iter_mut().find(|of| of.0 == made_up::MALLOC) {
                malloc.2.insert(0, field("x", of, of == 500));
            }
        })
    };
    damage(&malloc_with(400), malloc(1, 11, 1, 1, 1), &made_up::tables());
    damage(&malloc_with(508), malloc(1, 11, 1, 1, 1), &made_up::tables());
    damage(&malloc_with(12_345), malloc(1, 11, 1, 1, 1), &made_up::tables());
    // An array of four billion empty values.
    let many = made_up::event(made_up::MALLOC, &Bytes::default().integer(1 << 32));
    damage(&malloc_with(500), many, &made_up::tables());
    // Pools with a wrong count, of an unknown type, and with keys that refer to themselves.
    let plain = made_up::metadata(&made_up::types());
    let pool =
        |content: &[u64]| vec![made_up::event(1, &Bytes::default().integers(&[0, 0, 0]).byte(1).integers(content))];
    damage(&plain, malloc(1, 11, 1, 1, 1), &pool(&[1, made_up::STACK, 1 << 40]));
    damage(&plain, malloc(1, 11, 1, 1, 1), &pool(&[1, 4711, 1]));
    damage(&itself, malloc(1, 11, 1, 1, 1), &pool(&[1, 400, 1, 1]));
    let circle = made_up::checkpoint(&[
        (made_up::STRING, &[(77, Bytes::default().byte(2).integer(77))]),
        (made_up::SYMBOL, &[(108, Bytes::default().byte(2).integer(77))]),
    ]);
    let recording =
        read(&made_up::chunk(0, &plain, &[malloc(1, 11, 3, 1, 1)], &[made_up::tables(), vec![circle]].concat()));
    check_sites(&recording, &[("com.shop.Orders.(Orders.java:99)", 1, 1)]);
    // A negative size is invalid.
    let recording = damage(&plain, malloc(1, 11, 1, 1, u64::MAX), &made_up::tables());
    assert_eq!(recording.total.bytes_end, 3);
}

#[test]
fn a_real_recording_has_the_planted_bytes_at_their_lines() {
    let recording = read(SAMPLE);
    assert_eq!(recording.notes, []);
    assert_eq!(recording.native_every, Some(8192));
    let at = |line: &str| recording.sites.iter().find(|site| site.place.to_string() == line).unwrap();
    let direct = at("Plants.buffer(Plants.java:22)");
    assert_eq!(direct.owner, Owner::Direct(DirectBy::ByteBuffer));
    assert_eq!((direct.uses.allocations, direct.uses.bytes_end), (4, 4 << 20));
    let zlib = at("Plants.deflater(Plants.java:26)");
    assert_eq!(zlib.owner, Owner::Zlib);
    assert!(zlib.uses.bytes_end >= 2 * 262_000, "{zlib:?}");
    let freed = at("Plants.freed(Plants.java:16)");
    assert_eq!((freed.uses.bytes_end, freed.uses.bytes_at_peak, freed.uses.bytes_freed), (0, 64 << 20, 64 << 20));
    assert!(recording.below(direct).iter().any(|frame| &*frame.method == "Unsafe_AllocateMemory0"));
    let own = &recording.native[direct.stacks[0]];
    assert_eq!(own.threads, ["planter"]);
}
