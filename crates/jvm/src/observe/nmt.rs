//! Replies to `VM.native_memory summary` and `summary.diff` with `scale=KB` (JDK 11–27; the JVM runs with
//! `-XX:NativeMemoryTracking=summary`, and needs a `baseline` before a diff). Reserved is address space, and committed
//! is a promise: neither is resident memory.

use super::Unavailable;
use super::text::{between, size};
use loadline_base::units::{Bytes, Growth};

const SOURCE: &str = "NMT";

/// Reserved and committed bytes; in a `summary.diff` with their growth since the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Reserved address space.
    pub reserved: Bytes,
    /// Committed bytes.
    pub committed: Bytes,
    /// Growth of `committed` since the baseline; `None` in a `summary`.
    pub committed_growth: Option<Growth>,
}

/// A part of the JVM with the memory that it has taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Category {
    /// As the JVM spells it: `Java Heap`, `Thread`, `Native Memory Tracking` …
    pub name: String,
    /// Malloc, mappings, and arenas together.
    pub amount: Amount,
    /// The part of `amount` allocated through malloc.
    pub malloc: Bytes,
    /// The part of `amount` that is mapped and committed (for `Thread`: the stacks).
    pub mmap_committed: Bytes,
    /// The part of `amount` in NMT arenas (not malloc arenas).
    pub nmt_arena: Bytes,
    /// `#n` of threads for `Thread`, of classes for `Class`.
    pub count: Option<u64>,
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeMemory {
    /// All categories, including those below 1 KiB, which the reply omits.
    pub total: Amount,
    /// In the order of the reply.
    pub categories: Vec<Category>,
}

impl NativeMemory {
    /// Parses a reply to `VM.native_memory summary scale=KB` or `summary.diff scale=KB`:
    ///
    /// ```text
    /// Total: reserved=1460575KB +1KB, committed=91659KB +1KB
    /// -                    Thread (reserved=13352KB, committed=784KB)
    ///                             (threads #13)
    ///                             (stack: reserved=13312KB, committed=744KB, peak=744KB)
    ///                             (malloc=27KB #82) (peak=35KB #86)
    ///                             (arena=13KB #24) (peak=114KB #4)
    /// ```
    pub fn parse(text: &str) -> Result<Self, Unavailable> {
        if text.contains("Native memory tracking is not enabled") {
            return Err(Unavailable::new(SOURCE, "off; start the JVM with `-XX:NativeMemoryTracking=summary`"));
        }
        if text.contains("No baseline") {
            return Err(Unavailable::new(SOURCE, "no baseline; run `VM.native_memory baseline` before `summary.diff`"));
        }
        let mut total = None;
        let mut categories: Vec<Category> = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("Total:") {
                total = Amount::parse(rest);
            } else if let Some(category) = line.strip_prefix('-').and_then(Category::parse) {
                categories.push(category);
            } else if let Some(last) = categories.last_mut() {
                last.take(line.trim());
            }
        }
        let total = total.ok_or_else(|| Unavailable::new(SOURCE, "the response has an unknown format"))?;
        Ok(Self { total, categories })
    }

    /// A category by its name.
    pub fn category(&self, name: &str) -> Option<&Category> {
        self.categories.iter().find(|category| category.name == name)
    }
}

impl Amount {
    /// `reserved=1385834KB +1KB, committed=82230KB +1KB`
    fn parse(text: &str) -> Option<Self> {
        let (reserved, _growth) = size_and_growth(between(text, "reserved=", &[',', ')'])?)?;
        let (committed, committed_growth) = size_and_growth(between(text, "committed=", &[',', ')'])?)?;
        Some(Self { reserved, committed, committed_growth })
    }
}

impl Category {
    /// `                 Java Heap (reserved=65536KB, committed=65536KB)`
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('(')?;
        Some(Self { name: name.trim().to_owned(), amount: Amount::parse(rest)?, ..Self::default() })
    }

    /// Parses a line below the category's own; ignores unrecognized ones.
    fn take(&mut self, line: &str) {
        let sized = |before| between(line, before, &[' ', ',', ')']).and_then(size);
        // The lines below `Metadata` and `Class space` repeat the `mmap` figures; they begin with `(  `.
        if line.starts_with("(malloc=") {
            self.malloc = sized("malloc=").unwrap_or_default();
        } else if line.starts_with("(arena=") {
            self.nmt_arena = sized("arena=").unwrap_or_default();
        } else if line.starts_with("(mmap:") || line.starts_with("(stack:") {
            self.mmap_committed = sized("committed=").unwrap_or_default();
        } else if line.starts_with("(thread") || line.starts_with("(classes") {
            self.count = between(line, "#", &[' ', ')']).and_then(|n| n.parse().ok());
        }
    }
}

/// `82230KB +1KB` or `82230KB`.
fn size_and_growth(text: &str) -> Option<(Bytes, Option<Growth>)> {
    let mut words = text.split_ascii_whitespace();
    let now = size(words.next()?)?;
    let growth = words.next().and_then(|word| {
        let by = i64::try_from(size(word.get(1..)?)?.0).ok()?;
        match word.as_bytes().first()? {
            b'+' => Some(Growth(by)),
            b'-' => Some(Growth(-by)),
            _ => None,
        }
    });
    Some((now, growth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_has_a_sign() {
        let text =
            "Total: reserved=9KB -1KB, committed=8KB +2KB\n-  Other (reserved=3KB, committed=3KB)\n (malloc=3KB #1)\n";
        let nmt = NativeMemory::parse(text).unwrap();
        assert_eq!(nmt.total.committed_growth, Some(Growth(2048)));
        assert_eq!(nmt.category("Other").unwrap().malloc, Bytes::kib(3));
        assert_eq!(nmt.category("Other").unwrap().amount.committed_growth, None);
    }

    #[test]
    fn disabled_tracking_and_missing_baseline_are_reported() {
        let why = |text| NativeMemory::parse(text).unwrap_err().why;
        assert!(why("Native memory tracking is not enabled").contains("-XX:NativeMemoryTracking=summary"));
        assert!(why("No baseline for comparison").contains("baseline"));
        assert!(why("").contains("unknown format"));
    }
}
