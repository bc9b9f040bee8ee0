//! Replies to `GC.class_histogram` (JDK 11–27): the number of objects per class in the heap, and their bytes. Without
//! `-all`, the JVM performs a full collection first, so it counts only reachable objects.
//!
//! ```text
//!  num     #instances         #bytes  class name (module)
//! -------------------------------------------------------
//!    1:          5312         417800  [B (java.base@17.0.15)
//!    2:          5120         122880  java.lang.String (java.base@17.0.15)
//! Total         25718        1236552
//! ```
//!
//! Sizes are shallow: the objects themselves, with headers and padding.

use super::Unavailable;

/// The command.
pub const COMMAND: &str = "GC.class_histogram";
/// Maximum number of rows read; a JVM has 1,000 to 100,000 classes with objects.
const ROWS_MAX: usize = 1 << 20;
/// Maximum number of characters in a name; Java's own limit is 65,535 bytes.
const NAME_CHARS_MAX: usize = 512;

/// The objects of one class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassRow {
    /// As the JVM spells it: `[B`, `java.lang.String`, without the module.
    pub name: String,
    /// Number of objects.
    pub instances: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// All objects by class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassHistogram {
    /// One row per class and loader, largest first.
    pub rows: Vec<ClassRow>,
}

impl ClassHistogram {
    /// Parses a reply; skips unrecognized lines. Fails if no row is recognized, or the reply is truncated: half a
    /// histogram would show growth that did not happen.
    pub fn parse(text: &str) -> Result<Self, Unavailable> {
        let rows: Vec<ClassRow> = text.lines().filter_map(row).take(ROWS_MAX).collect();
        let ended = text.lines().rev().take(4).any(|line| line.starts_with("Total "));
        match (rows.is_empty(), ended) {
            (true, _) => Err(Unavailable::new("GC.class_histogram", "no row in a known format")),
            (_, false) => Err(Unavailable::new("GC.class_histogram", "the response is incomplete")),
            _ => Ok(Self { rows }),
        }
    }
}

/// `   1:          5312         417800  [B (java.base@17.0.15)`.
fn row(line: &str) -> Option<ClassRow> {
    let (number, rest) = line.split_once(':')?;
    number.trim().parse::<u64>().ok()?;
    let rest = rest.trim_start();
    let (instances, rest) = rest.split_once(char::is_whitespace)?;
    let (bytes, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let name = rest.trim();
    // The module is in the last parentheses, after a space.
    let name = match name.rsplit_once(" (") {
        Some((name, module)) if module.ends_with(')') => name,
        _ => name,
    };
    let name = name.chars().take(NAME_CHARS_MAX).collect();
    Some(ClassRow { name, instances: instances.parse().ok()?, bytes: bytes.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &str = " num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:          5312         417800  [B (java.base@17.0.15)
   2:          5120         122880  java.lang.String (java.base@17.0.15)
   3:             2             32  Main$$Lambda$14/0x0000000800c03000
   4:             1             16  sun.nio.fs.UnixFileSystem (java.base@17.0.15)
Total         10435         540728
";

    #[test]
    fn row_names_have_no_modules() {
        let found = ClassHistogram::parse(REPLY).unwrap();
        let rows: Vec<_> = found.rows.iter().map(|row| (row.name.as_str(), row.instances, row.bytes)).collect();
        assert_eq!(rows[0], ("[B", 5312, 417_800));
        assert_eq!(rows[2], ("Main$$Lambda$14/0x0000000800c03000", 2, 32));
        assert_eq!(rows[3].0, "sun.nio.fs.UnixFileSystem");
        assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), 540_728);
    }

    #[test]
    fn truncated_input_is_rejected_or_complete() {
        for end in 0..REPLY.len() {
            let found = ClassHistogram::parse(&REPLY[..end]);
            assert!(found.is_err() || found.unwrap().rows.len() == 4, "{end}");
        }
    }

    #[test]
    fn markup_in_names_is_kept() {
        let text = "1: 2 3 <b>\u{1b}[31m (x) y (m@1)\n2: 99999999999999999999 3 a.B\nTotal 2 3\n";
        let found = ClassHistogram::parse(text).unwrap();
        assert_eq!(found.rows, [ClassRow { name: "<b>\u{1b}[31m (x) y".to_owned(), instances: 2, bytes: 3 }]);
        let long = format!("1: 2 3 {}\nTotal 2 3\n", "x".repeat(70_000));
        assert_eq!(ClassHistogram::parse(&long).unwrap().rows[0].name.len(), NAME_CHARS_MAX);
    }

    #[test]
    fn a_hundred_thousand_classes_are_read() {
        let row = |n: u64| format!("{n:>6}: {n:>12} {:>14}  gen.Class{n}\n", 16 * n);
        let text: String = (1..=100_000).map(row).chain(["Total 1 2\n".to_owned()]).collect();
        let found = ClassHistogram::parse(&text).unwrap();
        assert_eq!((found.rows.len(), found.rows[99_999].bytes), (100_000, 1_600_000));
    }
}
