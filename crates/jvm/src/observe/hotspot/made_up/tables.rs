//! Tables of names, with their columns in any order.

use super::super::tables::{EXPORTED, Tables};
use super::{MadeUpMemory, PlanBytes, halves};

/// The content of a row; for a static field, the number is its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Says {
    Offset(u64),
    Address(u64),
    Size(u64),
    Int(i32),
    Long(u64),
}

/// The addresses of the variables in `EXPORTED`.
pub(in super::super) type Exported = [Option<u64>; EXPORTED.len()];

/// Columns of the four tables: the name of a constant and its value.
const COLUMNS: [u64; 4] = [5, 2, 2, 2];

/// Writes all four tables, with fields named as `Type::field`. `spread` orders the columns and widens the rows.
pub(in super::super) fn describe(memory: &mut MadeUpMemory, rows: &[(&str, Says)], spread: u64) -> Exported {
    let mut variables = Vec::new();
    for (n, columns) in (0..).zip(COLUMNS) {
        let cells: Vec<Vec<u64>> = rows.iter().filter_map(|(name, says)| cells(memory, n, name, *says)).collect();
        let (stride, column) = (8 * (columns + spread % 3), |c: u64| 8 * ((c + spread) % columns));
        let table = memory.place(stride * (cells.len() as u64 + 1), 8);
        for (row, cells) in (0..).zip(cells) {
            for (c, cell) in (0..).zip(cells) {
                memory.word(table + row * stride + column(c), cell);
            }
        }
        variables.extend([table, stride].into_iter().chain((0..columns).map(column)));
    }
    let at = memory.place(8 * variables.len() as u64, 8);
    let mut exported = [None; EXPORTED.len()];
    for ((at, variable), exported) in (at..).step_by(8).zip(variables).zip(&mut exported) {
        memory.word(at, variable);
        *exported = Some(at);
    }
    exported
}

/// The cells of a row, if it belongs to this table.
fn cells(memory: &mut MadeUpMemory, table: u64, name: &str, says: Says) -> Option<Vec<u64>> {
    match (table, says) {
        (0, Says::Offset(_) | Says::Address(_)) => {
            let (of, field) = name.split_once("::")?;
            let (offset, address, is_static) = match says {
                Says::Offset(offset) => (offset, 0, 0),
                Says::Address(address) => (0, address, 1),
                _ => return None,
            };
            Some(vec![memory.write_text(of), memory.write_text(field), is_static, offset, address])
        }
        (1, Says::Size(number)) | (3, Says::Long(number)) => Some(vec![memory.write_text(name), number]),
        (2, Says::Int(number)) => Some(vec![memory.write_text(name), u64::from(number.cast_unsigned())]),
        _ => None,
    }
}

/// Whether the tables have the same value for this name.
pub(in super::super) fn agrees(tables: &Tables, name: &str, says: Says) -> bool {
    // Nothing in HotSpot is this large: the tables may contain such a value, but must not return it.
    const TOO_LARGE: u64 = 1 << 20;
    match says {
        Says::Offset(offset) if offset >= TOO_LARGE => tables.offset(&[name]).is_err(),
        Says::Size(size) if size >= TOO_LARGE => tables.size(name).is_err(),
        Says::Offset(offset) => tables.offset(&[name]) == Ok(offset),
        Says::Address(address) => tables.address(&[name]) == Ok(address),
        Says::Size(size) => tables.size(name) == Ok(size),
        Says::Int(number) => tables.constant(name) == Ok(i64::from(number).cast_unsigned()),
        Says::Long(number) => tables.constant(name) == Ok(number),
    }
}

pub(in super::super) fn rows(plan: &mut PlanBytes) -> Vec<(String, Says)> {
    const NAMES: [&str; 6] = ["Thread", "Ω", "a b", "<i>", "GrowableArray<int>", ""];
    let mut rows = Vec::new();
    while !plan.is_over() {
        let (kind, n, name) = (plan.next(), rows.len(), NAMES[rows.len() % NAMES.len()]);
        let number = match kind % 7 {
            0 => u64::MAX - plan.next(),
            1..3 => 1 << (plan.next() % 64),
            _ => plan.pair(),
        };
        rows.push(match kind % 5 {
            0 => (format!("{name}::_{n}"), Says::Offset(number)),
            1 => (format!("{name}::{n}::_of"), Says::Address(number)),
            2 => (format!("{name}{n}"), Says::Size(number)),
            3 => (format!("{name}{n}"), Says::Int(number as i32)),
            _ => (format!("{name}{n}"), Says::Long(number)),
        });
    }
    rows
}

/// For fuzzing and tests: tables from the first half of the input, in which the second half changes words. Panics if an
/// unchanged value is not found, or reading does not end.
pub(crate) fn check(input: &[u8]) {
    // Four tables of 8,192 rows, with two strings of 1 KiB and five cells each.
    const ASKED_MAX: u64 = 4 * 8192 * (2 * (1024 + 64) + 48) + 4096;
    let (plan, changes) = halves(input);
    let (mut memory, mut plan) = (MadeUpMemory::default(), PlanBytes::of(plan));
    let spread = plan.next();
    let rows = rows(&mut plan);
    let said: Vec<(&str, Says)> = rows.iter().map(|(name, says)| (name.as_str(), *says)).collect();
    let exported = describe(&mut memory, &said, spread);
    let damaged = memory.damage(changes);
    let read = Tables::read(&memory, exported);
    assert!(memory.asked() < ASKED_MAX, "{} bytes", memory.asked());
    if !damaged {
        let tables = read.unwrap_or_else(|why| panic!("{why}"));
        for (name, says) in said {
            assert!(agrees(&tables, name, says), "{name}: {says:?}");
        }
    }
}
