//! The limits of rules of thumb: the JVM's own defaults and the formula of the buildpacks.

use crate::record::{ClassesRecord, RuleRecord};
use crate::units::{Bytes, MIB};

/// Paketo's memory calculator (libjvm): metaspace = 14,000,000 + 5,800 × classes, of which it expects 35 % to be
/// loaded.
const METASPACE_BASE: f64 = 14_000_000.0;
const METASPACE_PER_CLASS: f64 = 5_800.0;
const LOADED_SHARE: f64 = 0.35;
/// The same: 10 MiB of direct memory, 240 MiB of code, 250 stacks of 1 MiB.
const DIRECT: u64 = 10 * MIB;
const CODE: u64 = 240 * MIB;
const STACKS: u64 = 250;
/// `MinRAMPercentage`: below about 250 MiB the JVM takes half of what there is, `MaxRAMPercentage` or not.
const SMALL_HEAP_SHARE: f64 = 0.50;
const SMALL_MEMORY: u64 = 250 * MIB;
/// `MaxRAMPercentage` by default.
pub(super) const DEFAULT_SHARE: f64 = 0.25;
/// The share that people usually set.
const MOST_SHARE: f64 = 0.75;

/// The limit by each rule, so that the server gets the heap that was found to be enough, and no less than
/// the line.
pub fn rules(heap: u64, line: u64, classes: Option<ClassesRecord>) -> Vec<RuleRecord> {
    let by_share = |name: &str, share: f64| RuleRecord {
        name: name.to_owned(),
        limit_bytes: for_heap(heap, share).max(line),
        how: share_text(heap, line, share),
    };
    let mut rules = vec![by_share("JVM default", DEFAULT_SHARE), by_share("MaxRAMPercentage=75", MOST_SHARE)];
    rules.extend(classes.map(|classes| buildpack(heap, classes)));
    rules
}

/// The smallest limit at which the JVM would choose this heap by itself.
pub(super) fn for_heap(heap: u64, share: f64) -> u64 {
    let small = (heap as f64 / SMALL_HEAP_SHARE).ceil() as u64;
    let large = (heap as f64 / share).ceil() as u64;
    if small <= SMALL_MEMORY { small } else { large.max(SMALL_MEMORY) }
}

/// The heap that the JVM chooses by itself at this limit.
pub(super) fn heap_by(limit: u64, share: f64) -> u64 {
    let of = |share: f64| (limit as f64 * share) as u64;
    if limit <= SMALL_MEMORY { of(SMALL_HEAP_SHARE) } else { of(share).max(SMALL_MEMORY / 2) }
}

fn share_text(heap: u64, line: u64, share: f64) -> String {
    let needed = for_heap(heap, share);
    let limit = needed.max(line);
    let used = if limit <= SMALL_MEMORY { SMALL_HEAP_SHARE } else { share };
    let heap_there = Bytes((limit as f64 * used) as u64);
    let why = if needed > line { "the heap found asks for it" } else { "the line asks for it" };
    format!("the heap would be {:.0} % of it, {heap_there}; {why}", used * 100.0)
}

fn buildpack(heap: u64, classes: ClassesRecord) -> RuleRecord {
    let loaded = LOADED_SHARE * (classes.jdk + classes.application) as f64;
    let metaspace = (METASPACE_BASE + METASPACE_PER_CLASS * loaded) as u64;
    let limit_bytes = heap + metaspace + DIRECT + CODE + STACKS * MIB;
    RuleRecord {
        name: "buildpack formula".to_owned(),
        limit_bytes,
        how: format!(
            "heap {}, metaspace {} for {} classes, direct memory {}, code cache {}, {STACKS} stacks of 1 MiB",
            Bytes(heap),
            Bytes(metaspace),
            classes.jdk + classes.application,
            Bytes(DIRECT),
            Bytes(CODE)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_gives_half_and_a_large_one_a_share() {
        assert_eq!(for_heap(125 * MIB, 0.25), 250 * MIB, "half of what is just small");
        assert_eq!(for_heap(125 * MIB + 1, 0.25), 500 * MIB + 4);
        assert_eq!(for_heap(126 * MIB, 0.75), 250 * MIB, "no less than what is no longer small");
        assert_eq!(
            share_text(64 * MIB, 100 * MIB, 0.25),
            "the heap would be 50 % of it, 64.0 MiB; the heap found asks for it"
        );
        assert_eq!(
            share_text(8 * MIB, 100 * MIB, 0.25),
            "the heap would be 50 % of it, 50.0 MiB; the line asks for it"
        );
        assert_eq!(share_text(8 * MIB, 16 * MIB, 0.25), "the heap would be 50 % of it, 8.0 MiB; the line asks for it");
        assert_eq!(
            share_text(125 * MIB, MIB, 0.25),
            "the heap would be 50 % of it, 125.0 MiB; the heap found asks for it"
        );
        assert_eq!(
            share_text(1024 * MIB, 1200 * MIB, 0.75),
            "the heap would be 75 % of it, 1024.0 MiB; the heap found asks for it"
        );
    }

    #[test]
    fn a_heap_that_is_chosen_fits_the_limit_that_it_asks_for() {
        assert_eq!([100, 250, 251, 800].map(|mib| heap_by(mib * MIB, 0.25) / MIB), [50, 125, 125, 200]);
        for heap in [3, 60, 124, 126, 400, 4000] {
            let limit = for_heap(heap * MIB, 0.25);
            assert!(heap_by(limit, 0.25) >= heap * MIB && heap_by(limit - MIB, 0.25) < heap * MIB, "{heap}");
        }
    }

    #[test]
    fn the_formula_names_its_parts() {
        let rule = buildpack(64 * MIB, ClassesRecord { jdk: 27_000, application: 3_000 });
        assert_eq!(
            rule.how,
            "heap 64.0 MiB, metaspace 71.4 MiB for 30000 classes, direct memory 10.0 MiB, code cache 240.0 MiB, \
             250 stacks of 1 MiB"
        );
    }

    #[test]
    fn rules_say_what_they_would_need() {
        let found = rules(8 * MIB, 97 * MIB, Some(ClassesRecord { jdk: 27_000, application: 3_000 }));
        assert_eq!((found[0].limit_bytes, found[1].limit_bytes), (97 * MIB, 97 * MIB));
        assert_eq!(rules(64 * MIB, 100 * MIB, None)[0].limit_bytes, 128 * MIB);
        // 14,000,000 + 5,800 × 10,500 = 74,900,000 bytes of metaspace.
        assert_eq!(found[2].limit_bytes, 8 * MIB + 74_900_000 + (10 + 240 + 250) * MIB);
        let large = rules(1024 * MIB, 1200 * MIB, None);
        assert_eq!(large.iter().map(|rule| rule.limit_bytes / MIB).collect::<Vec<_>>(), [4096, 1365]);
    }
}
