//! Limits by rules of thumb: the JVM's own defaults, and the formula of the buildpacks.

use crate::record::{ClassesRecord, RuleRecord};
use crate::scenario::RamShare;
use crate::units::{Bytes, MIB, grouped};

/// Paketo's memory calculator (libjvm): metaspace = 14,000,000 + 5,800 × classes. It expects 35% of classes to be
/// loaded.
const METASPACE_BASE: f64 = 14_000_000.0;
const METASPACE_PER_CLASS: f64 = 5_800.0;
const LOADED_SHARE: f64 = 0.35;
/// Also from the calculator: 10 MiB of direct memory, 240 MiB of code, 250 stacks of 1 MiB.
const DIRECT: u64 = 10 * MIB;
const CODE: u64 = 240 * MIB;
const STACKS: u64 = 250;
/// The share that is usually set.
const MOST_SHARE: f64 = 0.75;

/// The limit according to each rule. Its heap is at least the one found, and everything else at the line still fits
/// even when the heap is full.
pub fn rules(heap: u64, line: u64, classes: Option<ClassesRecord>) -> Vec<RuleRecord> {
    let rest = line.saturating_sub(heap);
    let usual = RamShare::default();
    let most = RamShare { large: MOST_SHARE, ..usual };
    let by_share = |name: &str, share: RamShare| {
        let limit_bytes = share.memory_beside(heap, rest)?;
        Some(RuleRecord { name: name.to_owned(), limit_bytes, how: share_text(limit_bytes, share) })
    };
    let shares = [by_share("JVM default", usual), by_share("MaxRAMPercentage=75", most)];
    shares.into_iter().flatten().chain(classes.map(|classes| buildpack(heap, classes))).collect()
}

fn share_text(limit: u64, share: RamShare) -> String {
    let heap = share.heap(limit);
    let percent = heap as f64 / limit.max(1) as f64 * 100.0;
    format!("the heap may take {percent:.0}% of the limit ({}), in addition to everything else", Bytes(heap))
}

fn buildpack(heap: u64, classes: ClassesRecord) -> RuleRecord {
    let loaded = LOADED_SHARE * (classes.jdk + classes.application) as f64;
    let metaspace = (METASPACE_BASE + METASPACE_PER_CLASS * loaded) as u64;
    let limit_bytes = heap + metaspace + DIRECT + CODE + STACKS * MIB;
    RuleRecord {
        name: "buildpack formula".to_owned(),
        limit_bytes,
        how: format!(
            "heap {}, metaspace {} for {} classes, direct memory {}, code cache {}, {STACKS} thread stacks of 1 MiB \
                each",
            Bytes(heap),
            Bytes(metaspace),
            grouped(classes.jdk + classes.application),
            Bytes(DIRECT),
            Bytes(CODE)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_determines_the_heap_in_a_limit() {
        let text = |limit: u64, large: f64| share_text(limit * MIB, RamShare { large, ..RamShare::default() });
        assert_eq!(text(128, 0.25), "the heap may take 50% of the limit (64.0 MiB), in addition to everything else");
        assert_eq!(text(4096, 0.25), "the heap may take 25% of the limit (1024.0 MiB), in addition to everything else");
        assert_eq!(text(300, 0.25), "the heap may take 42% of the limit (124.8 MiB), in addition to everything else");
    }

    #[test]
    fn the_formula_names_its_parts() {
        let rule = buildpack(64 * MIB, ClassesRecord { jdk: 27_000, application: 3_000 });
        assert_eq!(
            rule.how,
            "heap 64.0 MiB, metaspace 71.4 MiB for 30,000 classes, direct memory 10.0 MiB, code cache 240.0 MiB, \
             250 thread stacks of 1 MiB each"
        );
    }

    #[test]
    fn a_rule_has_room_for_a_full_heap_and_everything_else() {
        let found = rules(8 * MIB, 97 * MIB, Some(ClassesRecord { jdk: 27_000, application: 3_000 }));
        // With 89 MiB for everything else, half of 178 MiB is heap.
        assert_eq!((found[0].limit_bytes, found[1].limit_bytes), (178 * MIB, 178 * MIB));
        assert_eq!(rules(64 * MIB, 100 * MIB, None)[0].limit_bytes, 128 * MIB);
        // 14,000,000 + 5,800 × 10,500 = 74,900,000 bytes of metaspace.
        assert_eq!(found[2].limit_bytes, 8 * MIB + 74_900_000 + (10 + 240 + 250) * MIB);
        let large = rules(1024 * MIB, 1200 * MIB, None);
        assert_eq!(large.iter().map(|rule| rule.limit_bytes / MIB).collect::<Vec<_>>(), [4096, 1365]);
    }
}
