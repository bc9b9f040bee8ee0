//! Maps tag numbers to categories of Native Memory Tracking. The numbers differ between JDK versions, but their order
//! always matches the summary. So the module aligns numbers and categories by their byte counts.

use crate::observe::nmt::NativeMemory;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TagNames {
    names: BTreeMap<u8, String>,
}

impl TagNames {
    /// Aligns the tags found (requested bytes by NMT's number) with the categories of a summary: in order, with the
    /// smallest sum of differences.
    pub(super) fn align(tags: BTreeMap<u8, u64>, summary: &NativeMemory) -> Self {
        let tags: Vec<(u8, u64)> = tags.into_iter().collect();
        let categories = expected(summary);
        let (rows, columns) = (tags.len(), categories.len());
        let mut cost = vec![vec![0u64; columns + 1]; rows + 1];
        for (row, (_, asked)) in tags.iter().enumerate() {
            cost[row + 1][0] = cost[row][0].saturating_add(*asked);
        }
        for (column, (_, bytes)) in categories.iter().enumerate() {
            cost[0][column + 1] = cost[0][column].saturating_add(*bytes);
        }
        for row in 1..=rows {
            for column in 1..=columns {
                let (tag, bytes) = (tags[row - 1].1, categories[column - 1].1);
                let same = cost[row - 1][column - 1].saturating_add(tag.abs_diff(bytes));
                let alone = cost[row - 1][column].saturating_add(tag);
                let unseen = cost[row][column - 1].saturating_add(bytes);
                cost[row][column] = same.min(alone).min(unseen);
            }
        }
        let mut names = BTreeMap::new();
        let (mut row, mut column) = (rows, columns);
        while row > 0 && column > 0 {
            let (tag, bytes) = (tags[row - 1].1, categories[column - 1].1);
            if cost[row][column] == cost[row - 1][column - 1].saturating_add(tag.abs_diff(bytes)) {
                names.insert(tags[row - 1].0, categories[column - 1].0.clone());
                (row, column) = (row - 1, column - 1);
            } else if cost[row][column] == cost[row - 1][column].saturating_add(tag) {
                row -= 1;
            } else {
                column -= 1;
            }
        }
        Self { names }
    }

    /// The category's name, or the number if unknown.
    pub(super) fn name(&self, number: u8) -> String {
        self.names.get(&number).cloned().unwrap_or_else(|| format!("tag {number}"))
    }
}

/// The malloc bytes of each category. NMT reports chunks of its arenas under their users instead of `Arena Chunk`; in
/// memory they still carry the tag of `Arena Chunk`.
fn expected(summary: &NativeMemory) -> Vec<(String, u64)> {
    let arenas = summary.categories.iter().map(|category| category.nmt_arena.0);
    let in_arenas = arenas.fold(0, u64::saturating_add);
    let bytes = |name: &str, malloc: u64| malloc.saturating_add(if name == "Arena Chunk" { in_arenas } else { 0 });
    summary.categories.iter().map(|c| (c.name.clone(), bytes(&c.name, c.malloc.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_numbers_are_matched_in_order_by_bytes() {
        let text = "Total: reserved=9KB, committed=8KB\n\
                    -  Java Heap (reserved=64KB, committed=64KB)\n\
                    -  Class (reserved=9KB, committed=8KB)\n (malloc=190KB #3)\n\
                    -  Thread (reserved=9KB, committed=8KB)\n (malloc=27KB #9)\n (arena=13KB #2)\n\
                    -  Symbol (reserved=9KB, committed=8KB)\n (malloc=800KB #9)\n (arena=100KB #1)\n\
                    -  Arena Chunk (reserved=9KB, committed=8KB)\n (malloc=2KB #9)\n";
        let summary = NativeMemory::parse(text).unwrap();
        let tags = [(1, 191), (2, 26), (11, 790), (14, 116), (15, 1)].map(|(number, kib)| (number, kib << 10));
        let names = TagNames::align(tags.into(), &summary);
        for (number, name) in [(1, "Class"), (2, "Thread"), (11, "Symbol"), (14, "Arena Chunk"), (15, "tag 15")] {
            assert_eq!(names.name(number), name);
        }
    }
}
