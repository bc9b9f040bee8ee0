//! Allocates every block with the process's malloc, as a JVM without a metaspace would.

use super::native::{Blocks, Header, trim};
use super::replay::Scheme;
use std::io;

/// Whether malloc returns retained memory to the kernel before each mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trim {
    /// Never.
    Never,
    /// Call `malloc_trim(0)` before each mark.
    AtMarks,
}

/// Each arena's blocks, allocated with malloc.
pub(crate) struct Malloc {
    arenas: Vec<Blocks>,
    header: Header,
    trim: Trim,
    trimmed: u64,
}

impl Malloc {
    pub(crate) fn new(header: Header, trim: Trim) -> Self {
        Self { arenas: Vec::new(), header, trim, trimmed: 0 }
    }
}

impl Scheme for Malloc {
    fn allocate(&mut self, arena: u32, words: u32) -> io::Result<()> {
        let index = arena as usize;
        while self.arenas.len() <= index {
            self.arenas.push(Blocks::new(self.header));
        }
        self.arenas[index].push(words)
    }

    fn die(&mut self, arena: u32) -> io::Result<()> {
        if let Some(blocks) = self.arenas.get_mut(arena as usize) {
            blocks.clear();
        }
        Ok(())
    }

    fn rest(&mut self) {
        if self.trim == Trim::AtMarks {
            self.trimmed += u64::from(trim());
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        match self.trim {
            Trim::Never => Vec::new(),
            Trim::AtMarks => vec![("trims", self.trimmed)],
        }
    }
}
