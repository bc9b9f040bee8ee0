//! Tables of names and flags that are truncated, have wild pointers, or misstate their form.

use super::super::flags::{FlagOrigin, Flags};
use super::super::tables::{EXPORTED, Tables};
use super::tables::{Exported, Says, agrees, describe};
use super::{MadeUpMemory, PAGE};
use crate::observe::memory::Memory;

const ROWS: [(&str, Says); 8] = [
    ("Klass::_name", Says::Offset(24)),
    ("Klass::_next_link", Says::Offset(160)),
    ("Universe::_collectedHeap", Says::Address(0x7f00_0000_1000)),
    ("Klass", Says::Size(208)),
    ("ConstantPool", Says::Size(72)),
    ("JVMFlag::VALUE_ORIGIN_MASK", Says::Int(15)),
    ("markWord::lock_mask", Says::Long(u64::MAX)),
    ("LastFrameFactory::_none", Says::Int(-1)),
];
/// Which exported variables are row lengths and table addresses; all others are columns.
const STRIDES: [usize; 4] = [1, 8, 12, 16];
const STARTS: [usize; 4] = [0, 7, 11, 15];
/// Numbers that are invalid as a pointer, length, or column.
const HOSTILE: [u64; 9] = [1, 7, 4097, 1 << 32, 1 << 47, 1 << 63, u64::MAX - 255, u64::MAX - 7, u64::MAX];

/// Everything that HotSpot describes, in some column order, and the address after it.
fn described(spread: u64) -> (MadeUpMemory, Exported, u64) {
    let mut memory = MadeUpMemory::default();
    let exported = describe(&mut memory, &ROWS, spread);
    let behind = memory.place(8, 8);
    (memory, exported, behind)
}

fn is_whole(tables: &Tables) -> bool {
    ROWS.iter().all(|(name, says)| agrees(tables, name, *says))
}

fn variables(memory: &MadeUpMemory, exported: Exported) -> [(u64, u64); EXPORTED.len()] {
    exported.map(|at| (at.unwrap(), memory.u64(at.unwrap()).unwrap()))
}

#[test]
fn truncated_tables_are_complete_or_rejected() {
    for spread in 0..6 {
        let (mut memory, exported, behind) = described(spread);
        assert!(is_whole(&Tables::read(&memory, exported).unwrap()));
        let values = variables(&memory, exported).map(|(_, value)| value);
        let (first, variables) = (values[0], exported[0].unwrap());
        // The missing name of the last row is read last.
        let last = values[15] + values[16] + values[17] + 8;
        for at in first..behind {
            memory.hole = at..at + 1;
            let read = Tables::read(&memory, exported);
            assert!(read.is_err() || is_whole(&read.unwrap()), "the tables are rejected or complete without {at:#x}");
            memory.hole = at..variables;
            let read = Tables::read(&memory, exported);
            assert!(at >= last || read.is_err(), "cut at {at:#x}");
        }
    }
}

#[test]
fn a_missing_variable_is_named() {
    let (memory, exported, _) = described(0);
    for n in 0..EXPORTED.len() {
        let mut less = exported;
        less[n] = None;
        let why = Tables::read(&memory, less).unwrap_err();
        assert!(why.why.contains(EXPORTED[n]), "{why}");
        less[n] = Some(u64::MAX - 3);
        assert!(Tables::read(&memory, less).is_err(), "{}", EXPORTED[n]);
    }
}

#[test]
fn variables_in_another_form_are_rejected() {
    for spread in 0..3 {
        let (memory, exported, _) = described(spread);
        let variables = variables(&memory, exported);
        for (n, (at, value)) in variables.into_iter().enumerate() {
            let hostile = HOSTILE.into_iter().filter(|number| !STRIDES.contains(&n) || *number != 7);
            for number in hostile.chain([0, 255, 256]) {
                let mut made = memory.clone();
                made.word(at, number);
                let read = Tables::read(&made, exported);
                let impossible = match n {
                    n if STRIDES.contains(&n) => !(8..=256).contains(&number),
                    n if STARTS.contains(&n) => number != value,
                    _ => number >= 40,
                };
                assert!(!impossible || read.is_err(), "{} is {number:#x} instead of {value:#x}", EXPORTED[n]);
            }
        }
    }
}

/// A wild pointer in a row ends the reading, or changes at most its own row.
#[test]
fn wild_pointers_in_rows_are_rejected_or_change_only_their_row() {
    let (memory, exported, behind) = described(0);
    let variables = variables(&memory, exported);
    let (structs, text) = (variables[0].1, variables[7].1);
    let rows = ROWS.iter().filter(|(_, says)| matches!(says, Says::Offset(_) | Says::Address(_))).count() as u64;
    for (row, column) in (0..rows).flat_map(|row| [(row, 0), (row, 8)]) {
        let at = structs + row * variables[1].1 + column;
        for number in HOSTILE.into_iter().chain([behind + PAGE]) {
            let mut made = memory.clone();
            made.word(at, number);
            assert!(Tables::read(&made, exported).is_err(), "{at:#x} leads to {number:#x}");
        }
        let mut made = memory.clone();
        made.word(at, text);
        let elsewhere = Tables::read(&made, exported);
        let same = |(n, (name, says)): (usize, &(&str, Says))| {
            n as u64 == row || elsewhere.as_ref().is_ok_and(|read| agrees(read, name, *says))
        };
        assert!(elsewhere.is_err() || ROWS.iter().enumerate().all(same), "{at:#x}");
    }
    let mut made = memory;
    made.word(structs + variables[1].1, 0);
    let shorter = Tables::read(&made, exported).unwrap();
    assert!(
        agrees(&shorter, ROWS[0].0, ROWS[0].1) && shorter.offset(&[ROWS[1].0]).is_err(),
        "rows after one without a name are ignored"
    );
}

#[test]
fn an_endless_table_is_rejected() {
    let names: Vec<String> = (0..8192).map(|n| format!("c{n}")).collect();
    let read = |count: usize| {
        let rows: Vec<(&str, Says)> = names[..count].iter().map(|name| (name.as_str(), Says::Long(7))).collect();
        let mut memory = MadeUpMemory::default();
        let exported = describe(&mut memory, &rows, 0);
        Tables::read(&memory, exported)
    };
    assert_eq!(read(8191).unwrap().constant("c8190"), Ok(7));
    assert!(read(8192).is_err());
}

#[test]
fn impossible_offsets_are_rejected() {
    let mut memory = MadeUpMemory::default();
    let rows = [("A::b", Says::Offset(1 << 20)), ("A::c", Says::Offset((1 << 20) - 1)), ("A", Says::Size(u64::MAX))];
    let exported = describe(&mut memory, &rows, 0);
    let tables = Tables::read(&memory, exported).unwrap();
    assert!(tables.offset(&["A::b"]).is_err_and(|why| why.why.contains("A::b")));
    assert_eq!((tables.offset(&["A::none", "A::c"]), tables.size("A").is_err()), (Ok((1 << 20) - 1), true));
    assert!(tables.address(&["A::c"]).is_err(), "only static fields have an address");
}

/// Name, type, value bytes, origin; then value and origin as the reader returns them.
type Made<'a> = (&'a str, u32, u64, u32, &'a str, Option<FlagOrigin>);

const FLAGS: [Made; 10] = [
    ("UseSerialGC", 0, 1, 0, "true", None),
    ("UseG1GC", 0, 0, 5, "false", Some(FlagOrigin::Ergonomic)),
    ("ParallelGCThreads", 2, u32::MAX as u64, 5, "4294967295", Some(FlagOrigin::Ergonomic)),
    ("LogBytesPerSecond", 1, u32::MAX as u64, 1, "-1", Some(FlagOrigin::CommandLine)),
    ("hashCode", 3, u64::MAX, 2, "-1", Some(FlagOrigin::Environment)),
    ("MaxHeapSize", 6, u64::MAX, 1, "18446744073709551615", Some(FlagOrigin::CommandLine)),
    ("MaxRAMPercentage", 7, 0x4052_c000_0000_0000, 3, "75.000000", Some(FlagOrigin::File)),
    ("ConcGCThreads", 7, u64::MAX, 0x105, "NaN", Some(FlagOrigin::Ergonomic)),
    ("ErrorFile", 8, 0, 0, "", None),
    ("OnError", 9, u64::MAX, 4, "<b>&\u{fffd}", Some(FlagOrigin::Other)),
];

/// Addresses of the number of flags and of their first 40-byte row.
struct Rows {
    count_at: u64,
    first: u64,
}

/// Returns the description of flags whose two variables begin at this address.
fn described_flags(statics: u64) -> [(&'static str, Says); 8] {
    [
        ("JVMFlag::flags", Says::Address(statics)),
        ("JVMFlag::numFlags", Says::Address(statics + 8)),
        ("JVMFlag", Says::Size(40)),
        ("JVMFlag::_type", Says::Offset(0)),
        ("JVMFlag::_flags", Says::Offset(4)),
        ("JVMFlag::_addr", Says::Offset(16)),
        ("JVMFlag::_name", Says::Offset(32)),
        ("JVMFlag::VALUE_ORIGIN_MASK", Says::Int(15)),
    ]
}

/// A row: type, flags, address, name.
fn flags() -> (MadeUpMemory, Tables, Rows) {
    let mut memory = MadeUpMemory::default();
    let (statics, first) = (memory.place(16, 8), memory.place(40 * (FLAGS.len() as u64 + 1), 8));
    memory.word(statics, first);
    memory.word(statics + 8, FLAGS.len() as u64 + 1);
    for (row, (name, kind, value, origin, said, _)) in (first..).step_by(40).zip(FLAGS) {
        let (at, name, text) = (memory.place(8, 8), memory.write_text(name), memory.write_text(said));
        memory.word(at, if value == u64::MAX && kind == 9 { text } else { value });
        memory.half(row, kind);
        memory.half(row + 4, origin);
        memory.word(row + 16, at);
        memory.word(row + 32, name);
    }
    let exported = describe(&mut memory, &described_flags(statics), 0);
    let tables = Tables::read(&memory, exported).unwrap();
    (memory, tables, Rows { count_at: statics + 8, first })
}

#[test]
fn flags_of_every_type_are_read() {
    let (memory, tables, _) = flags();
    let read = Flags::read(&memory, &tables).unwrap();
    let told: Vec<_> = read.list.iter().map(|flag| (flag.name.as_str(), flag.value.as_str(), flag.origin)).collect();
    assert_eq!(told, FLAGS.map(|(name, _, _, _, said, origin)| (name, said, origin)));
    let is_on = ["UseSerialGC", "UseG1GC", "UseZGC"].map(|name| read.is_on(name));
    assert_eq!(is_on, [Some(true), Some(false), None]);
}

/// JDK 11 stores types as strings, in the first of five words, and does not describe the origin bits.
#[test]
fn flags_with_text_types_are_read() {
    let (mut memory, numbered, rows) = flags();
    let whole = Flags::read(&memory, &numbered).unwrap();
    const TYPES: [&str; 10] =
        ["bool", "int", "uint", "intx", "uintx", "uint64_t", "size_t", "double", "ccstr", "ccstrlist"];
    for (row, (_, kind, _, origin, ..)) in (rows.first..).step_by(40).zip(FLAGS) {
        let text = memory.write_text(TYPES[kind as usize]);
        memory.word(row, text);
        memory.half(row + 24, origin);
    }
    let of_11 = described_flags(rows.count_at - 8).map(|(name, says)| match name {
        "JVMFlag::_flags" => (name, Says::Offset(24)),
        "JVMFlag::VALUE_ORIGIN_MASK" => ("JVMFlag::_none", Says::Int(15)),
        _ => (name, says),
    });
    let exported = describe(&mut memory, &of_11, 0);
    let tables = Tables::read(&memory, exported).unwrap();
    assert_eq!(Flags::read(&memory, &tables), Ok(whole));
    let unknown = memory.write_text("long double");
    memory.word(rows.first + 40, unknown);
    assert!(Flags::read(&memory, &tables).is_err(), "a flag with an invalid type is rejected");
}

#[test]
fn invalid_flags_are_rejected() {
    let (memory, tables, rows) = flags();
    let changes = [
        ("more flags than there are", rows.count_at, 10_000),
        ("an absurd number of flags", rows.count_at, u64::MAX),
        ("flags at the end of memory", rows.count_at - 8, u64::MAX - 39),
        ("flags at an unmapped address", rows.count_at - 8, 8),
        ("a flag of the wrong type", rows.first, 1),
        ("an invalid type", rows.first + 40, 10),
        ("a value at an unmapped address", rows.first + 16, 0),
        ("a value at the end of memory", rows.first + 16, u64::MAX),
        ("a name at an unmapped address", rows.first + 32, 1),
    ];
    memory.each_is_refused(&changes, |made| Flags::read(made, &tables));
    let named = |name, says| {
        let (mut made, _, rows) = flags();
        let all = described_flags(rows.count_at - 8).map(|row| if row.0 == name { (name, says) } else { row });
        let exported = describe(&mut made, &all, 0);
        Flags::read(&made, &Tables::read(&made, exported).unwrap()).is_ok()
    };
    assert!(named("JVMFlag", Says::Size(40)));
    assert!(!named("JVMFlag", Says::Size(0)), "rows of size zero are rejected");
    assert!(!named("JVMFlag", Says::Size((1 << 20) - 1)), "rows of an impossible size are rejected");
    assert!(!named("JVMFlag::_name", Says::Offset((1 << 20) - 1)), "a name beyond the end of memory is rejected");
}

#[test]
fn too_much_flag_text_is_rejected() {
    let (mut memory, tables, rows) = flags();
    let (count, long) = (300, memory.write_text(&"x".repeat(1000)));
    let first = memory.place(40 * count, 8);
    memory.word(rows.count_at - 8, first);
    let value = memory.place(8, 8);
    for row in (first..).step_by(40).take(count as usize) {
        memory.word(row + 16, value);
        memory.word(row + 32, long);
    }
    let read = |memory: &mut MadeUpMemory, count: u64| {
        memory.word(rows.count_at, count);
        Flags::read(memory, &tables).map(|flags| flags.list.len())
    };
    // A name of 1,000 bytes, and `false`.
    let most = (256 << 10) / 1005;
    assert_eq!(read(&mut memory, most), Ok(most as usize));
    let why = read(&mut memory, most + 1).unwrap_err();
    assert!(why.why.contains("exceed 256 KiB"), "{why}");
}

#[test]
fn truncated_flags_are_equal_or_rejected() {
    let (mut memory, tables, rows) = flags();
    let whole = Flags::read(&memory, &tables).unwrap();
    for at in rows.count_at - 8..rows.first + 40 * (FLAGS.len() as u64 + 1) + 400 {
        memory.hole = at..at + 1;
        let read = Flags::read(&memory, &tables);
        assert!(read.is_err() || read.as_ref() == Ok(&whole), "{at:#x}");
    }
}
