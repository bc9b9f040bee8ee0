//! The tables of `vmStructs` (`vmStructs.cpp`, JDK 11–27): rows of fields, types, and constants. The library exports
//! them by name, together with the row layout. JDK 17 has about 790 fields, 770 types, and 480 constants.
//!
//! Offsets are filled in at JVM startup, so the rows are read from its memory, not from the file.

use super::super::Unavailable;
use super::super::memory::Memory;
use super::SOURCE;
use std::fmt::{self, Write};

/// The exported variables, eight bytes each: address, layout, and row length of each of the four tables.
pub(super) const EXPORTED: [&str; 19] = [
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySizeOffset",
    "gHotSpotVMIntConstants",
    "gHotSpotVMIntConstantEntryArrayStride",
    "gHotSpotVMIntConstantEntryNameOffset",
    "gHotSpotVMIntConstantEntryValueOffset",
    "gHotSpotVMLongConstants",
    "gHotSpotVMLongConstantEntryArrayStride",
    "gHotSpotVMLongConstantEntryNameOffset",
    "gHotSpotVMLongConstantEntryValueOffset",
];

/// Ten times the size of the largest known table.
const ROWS_MAX: u64 = 8192;
const ROW_BYTES_MAX: u64 = 256;
/// Ten times the size of all names in a JVM.
const NAMES_BYTES_MAX: usize = 1 << 20;
/// Nothing that HotSpot describes is larger; larger offsets are rejected.
const OFFSET_MAX: u64 = 1 << 20;

/// The library's descriptions, by `Type::field`, type, and constant.
#[derive(Debug, Default)]
pub struct Tables {
    offsets: Named,
    addresses: Named,
    sizes: Named,
    constants: Named,
}

/// Values by name. All names are in one string: stored separately, a JVM's 2,000 names would take three times the
/// memory.
#[derive(Debug, Default)]
struct Named {
    names: String,
    /// Start and end of a name in `names`, and its value; ordered by name.
    rows: Vec<(u32, u32, u64)>,
}

impl Named {
    fn push(&mut self, name: fmt::Arguments<'_>, value: u64) -> Option<()> {
        let start = self.names.len();
        self.names.write_fmt(name).ok()?;
        (self.names.len() <= NAMES_BYTES_MAX).then_some(())?;
        self.rows.push((u32::try_from(start).ok()?, u32::try_from(self.names.len()).ok()?, value));
        Some(())
    }

    fn sort(&mut self) {
        let Self { names, rows } = self;
        rows.sort_by_key(|(start, end, _)| &names[*start as usize..*end as usize]);
        names.shrink_to_fit();
        rows.shrink_to_fit();
    }

    fn get(&self, name: &str) -> Option<u64> {
        let of = |(start, end, _): &(u32, u32, u64)| &self.names[*start as usize..*end as usize];
        let found = self.rows.binary_search_by(|row| of(row).cmp(name)).ok()?;
        Some(self.rows[found].2)
    }
}

impl Tables {
    /// Reads all four tables. `exported` contains the addresses of the variables in [`EXPORTED`]. Fails if one of the
    /// variables is missing, or a table has an unknown form.
    pub(super) fn read(memory: &dyn Memory, exported: [Option<u64>; EXPORTED.len()]) -> Result<Self, Unavailable> {
        let missing = exported.iter().zip(EXPORTED).find(|(at, _)| at.is_none());
        if let Some((_, name)) = missing {
            return Err(Unavailable::new(SOURCE, format!("libjvm.so does not export `{name}`")));
        }
        let values = exported.map(|at| at.and_then(|at| memory.u64(at)));
        let mut tables = Self::default();
        tables.fill(memory, values).ok_or_else(|| Unavailable::new(SOURCE, "the tables have an unknown format"))?;
        Ok(tables)
    }

    fn fill(&mut self, memory: &dyn Memory, values: [Option<u64>; EXPORTED.len()]) -> Option<()> {
        let mut numbers = [0; EXPORTED.len()];
        for (number, value) in numbers.iter_mut().zip(values) {
            *number = value?;
        }
        let [structs, stride, of, name, is_static, offset, address, rest @ ..] = numbers;
        rows(memory, structs, stride, &[of, name, is_static, offset, address], |row| {
            let (of, field) = (memory.text(memory.u64(row + of)?)?, memory.text(memory.u64(row + name)?)?);
            match memory.u32(row + is_static)? {
                0 => self.offsets.push(format_args!("{of}::{field}"), memory.u64(row + offset)?),
                _ => self.addresses.push(format_args!("{of}::{field}"), memory.u64(row + address)?),
            }
        })?;
        let [types, stride, name, size, rest @ ..] = rest;
        rows(memory, types, stride, &[name, size], |row| {
            self.sizes.push(format_args!("{}", memory.text(memory.u64(row + name)?)?), memory.u64(row + size)?)
        })?;
        let [ints, stride, name, value, longs, long_stride, long_name, long_value] = rest;
        rows(memory, ints, stride, &[name, value], |row| {
            let constant = memory.u32(row + value)?.cast_signed();
            let name = memory.text(memory.u64(row + name)?)?;
            self.constants.push(format_args!("{name}"), i64::from(constant).cast_unsigned())
        })?;
        rows(memory, longs, long_stride, &[long_name, long_value], |row| {
            let name = memory.text(memory.u64(row + long_name)?)?;
            self.constants.push(format_args!("{name}"), memory.u64(row + long_value)?)
        })?;
        for named in [&mut self.offsets, &mut self.addresses, &mut self.sizes, &mut self.constants] {
            named.sort();
        }
        Some(())
    }

    /// The offset of the first of these fields that this JVM has: releases rename and move them.
    pub fn offset(&self, fields: &[&str]) -> Result<u64, Unavailable> {
        let known = fields.iter().find_map(|field| self.offsets.get(field));
        known.filter(|offset| *offset < OFFSET_MAX).ok_or_else(|| lacks(fields))
    }

    /// The address of the first of these static fields that this JVM has.
    pub fn address(&self, fields: &[&str]) -> Result<u64, Unavailable> {
        fields.iter().find_map(|field| self.addresses.get(field)).ok_or_else(|| lacks(fields))
    }

    /// The size of a type in bytes.
    pub fn size(&self, of: &str) -> Result<u64, Unavailable> {
        self.sizes.get(of).filter(|size| *size < OFFSET_MAX).ok_or_else(|| lacks(&[of]))
    }

    /// The value of a constant.
    pub fn constant(&self, name: &str) -> Result<u64, Unavailable> {
        self.constants.get(name).ok_or_else(|| lacks(&[name]))
    }

    /// Tables for tests.
    #[cfg(test)]
    pub(super) fn made_up(offsets: &[(&str, u64)], addresses: &[(&str, u64)], sizes: &[(&str, u64)]) -> Self {
        let named = |of: &[(&str, u64)]| {
            let mut named = Named::default();
            of.iter().for_each(|(name, value)| _ = named.push(format_args!("{name}"), *value));
            named.sort();
            named
        };
        let constants = Named::default();
        Self { offsets: named(offsets), addresses: named(addresses), sizes: named(sizes), constants }
    }
}

fn lacks(names: &[&str]) -> Unavailable {
    Unavailable::new(SOURCE, format!("this JVM does not describe `{}`", names.join("` or `")))
}

/// Reads a table up to the row without a name. The name is the first column.
fn rows(
    memory: &dyn Memory,
    table: u64,
    stride: u64,
    columns: &[u64],
    mut each: impl FnMut(u64) -> Option<()>,
) -> Option<()> {
    let known = (8..=ROW_BYTES_MAX).contains(&stride) && columns.iter().all(|column| *column < stride);
    (known && table.checked_add(ROWS_MAX * stride).is_some()).then_some(())?;
    for row in (0..ROWS_MAX).map(|n| table + n * stride) {
        if memory.u64(row + columns[0])? == 0 {
            return Some(());
        }
        each(row)?;
    }
    None
}
