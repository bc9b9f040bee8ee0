//! The limits of rules of thumb: the JVM's own defaults and the formula of the buildpacks.

use crate::record::{ClassesRecord, RuleRecord};
use crate::scenario::RamShare;
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
/// The share that people usually set.
const MOST_SHARE: f64 = 0.75;

/// The limit by each rule, so that the server gets the heap that was found to be enough, and no less than
/// the line.
pub fn rules(heap: u64, line: u64, classes: Option<ClassesRecord>) -> Vec<RuleRecord> {
    let by_share = |name: &str, share: RamShare| RuleRecord {
        name: name.to_owned(),
        limit_bytes: share.memory(heap).max(line),
        how: share_text(heap, line, share),
    };
    let usual = RamShare::default();
    let most = RamShare { large: MOST_SHARE, ..usual };
    let mut rules = vec![by_share("JVM default", usual), by_share("MaxRAMPercentage=75", most)];
    rules.extend(classes.map(|classes| buildpack(heap, classes)));
    rules
}

fn share_text(heap: u64, line: u64, share: RamShare) -> String {
    let needed = share.memory(heap);
    let limit = needed.max(line);
    let why = if needed > line { "the heap needs this limit" } else { "all else needs this limit" };
    format!("the heap would be {:.0} % of it, {}; {why}", share.of(limit) * 100.0, Bytes(share.heap(limit)))
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
    fn a_share_says_what_asks_for_its_limit() {
        let text = |heap: u64, line: u64, large: f64| {
            share_text(heap * MIB, line * MIB, RamShare { large, ..RamShare::default() })
        };
        assert_eq!(text(64, 100, 0.25), "the heap would be 50 % of it, 64.0 MiB; the heap needs this limit");
        assert_eq!(text(8, 100, 0.25), "the heap would be 50 % of it, 50.0 MiB; all else needs this limit");
        assert_eq!(text(8, 16, 0.25), "the heap would be 50 % of it, 8.0 MiB; all else needs this limit");
        assert_eq!(text(1024, 1200, 0.75), "the heap would be 75 % of it, 1024.0 MiB; the heap needs this limit");
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
