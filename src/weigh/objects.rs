//! Live objects by class: a histogram, or the growth from a fresh JVM to one after load.

use crate::observe::class_histogram::ClassHistogram;
use crate::record::{ObjectClass, ObjectKind, ObjectKindName, ObjectSum, ObjectsRecord};
use loadline_base::java_names::is_of_jdk;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Classes listed per histogram; JVMs have 1,000 to 100,000.
const CLASSES_MAX: usize = 200;
/// Additional classes outside the JDK with the most new objects: one small object per request is a leak, too.
const NUMEROUS_MAX: usize = 300;
const BOXED: [&str; 8] = [
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Short",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Boolean",
    "java.lang.Float",
    "java.lang.Double",
];
/// Maps allocate their table with the first entry: a map without one has always been empty. Tables of subclasses are
/// counted but their maps are not, so the difference is a lower bound.
const MAPS: [(&[&str], &str); 2] = [
    (&["java.util.HashMap", "java.util.LinkedHashMap"], "[Ljava.util.HashMap$Node;"),
    (&["java.util.concurrent.ConcurrentHashMap"], "[Ljava.util.concurrent.ConcurrentHashMap$Node;"),
];

/// Sums by name: classes with the same name in several loaders are one.
type ByName<'a> = HashMap<&'a str, ObjectSum>;

/// The live objects, compared with those at the start if known.
pub(crate) fn record(now: &ClassHistogram, at_start: Option<&ClassHistogram>) -> ObjectsRecord {
    let (now, before) = (by_name(now), at_start.map(by_name));
    let mut names: Vec<&str> = now.keys().copied().collect();
    names.extend(before.iter().flatten().map(|(name, _)| *name).filter(|name| !now.contains_key(name)));
    let all = names.len() as u64;
    let of = |sums: &ByName<'_>, name: &str| sums.get(name).copied().unwrap_or_default();
    let growth = |name: &str, amount: fn(ObjectSum) -> u64| {
        let start = before.as_ref().map_or(0, |before| amount(of(before, name)));
        i128::from(amount(of(&now, name))) - i128::from(start)
    };
    let order = |names: &mut Vec<&str>, amount: fn(ObjectSum) -> u64| {
        let size = |name: &str| amount(of(&now, name));
        names.sort_by_cached_key(|name| Reverse((growth(name, amount), size(name), Reverse(*name))));
    };
    order(&mut names, |of| of.bytes);
    let mut numerous = names.split_off(names.len().min(CLASSES_MAX));
    numerous.retain(|name| !is_of_jdk(name));
    order(&mut numerous, |of| of.instances);
    numerous.truncate(NUMEROUS_MAX);
    order(&mut numerous, |of| of.bytes);
    names.extend(numerous);
    let class = |name: &str| ObjectClass {
        name: name.to_owned(),
        now: of(&now, name),
        at_start: before.as_ref().map(|before| of(before, name)),
    };
    let kinds = [ObjectKindName::Strings, ObjectKindName::ByteArrays, ObjectKindName::Boxed, ObjectKindName::EmptyMaps];
    ObjectsRecord {
        total: total(&now),
        at_start: before.as_ref().map(total),
        kinds: kinds
            .map(|kind| ObjectKind {
                kind,
                now: sum_of(kind, &now),
                at_start: before.as_ref().map(|before| sum_of(kind, before)),
            })
            .to_vec(),
        classes_left_out: all - names.len() as u64,
        classes: names.into_iter().map(class).collect(),
    }
}

fn by_name(histogram: &ClassHistogram) -> ByName<'_> {
    let mut sums = ByName::new();
    for row in &histogram.rows {
        let sum = sums.entry(&row.name).or_default();
        *sum = sum.plus(ObjectSum { instances: row.instances, bytes: row.bytes });
    }
    sums
}

fn total(sums: &ByName<'_>) -> ObjectSum {
    sums.values().fold(ObjectSum::default(), |sum, of| sum.plus(*of))
}

fn sum_of(kind: ObjectKindName, sums: &ByName<'_>) -> ObjectSum {
    let of = |name: &str| sums.get(name).copied().unwrap_or_default();
    let all = |names: &[&str]| names.iter().fold(ObjectSum::default(), |sum, name| sum.plus(of(name)));
    match kind {
        ObjectKindName::Strings => of("java.lang.String"),
        ObjectKindName::ByteArrays => of("[B"),
        ObjectKindName::Boxed => all(&BOXED),
        ObjectKindName::EmptyMaps => {
            let empty = |(maps, table): (&[&str], &str)| {
                let maps = all(maps);
                let instances = maps.instances.saturating_sub(of(table).instances);
                // Assumes the average size of its class, which is nearly constant for these classes.
                let each = maps.bytes.checked_div(maps.instances).unwrap_or(0);
                ObjectSum { instances, bytes: instances.saturating_mul(each) }
            };
            MAPS.into_iter().map(empty).fold(ObjectSum::default(), ObjectSum::plus)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::class_histogram::ClassRow;
    use proptest::prelude::*;

    fn histogram(rows: &[(&str, u64, u64)]) -> ClassHistogram {
        let row = |(name, instances, bytes): &(&str, u64, u64)| ClassRow {
            name: (*name).to_owned(),
            instances: *instances,
            bytes: *bytes,
        };
        ClassHistogram { rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn the_class_that_grew_most_comes_first_and_kinds_are_summed() {
        let start = histogram(&[("[B", 100, 9_000), ("java.lang.Integer", 256, 4_096), ("a.Gone", 3, 48)]);
        let now = histogram(&[
            ("[B", 110, 9_500),
            ("java.util.HashMap", 10, 480),
            ("[Ljava.util.HashMap$Node;", 7, 560),
            ("java.lang.Integer", 300, 4_800),
            ("java.lang.Long", 5, 80),
            ("web.Session", 50, 4_000),
            ("web.Session", 50, 4_000),
        ]);
        let found = record(&now, Some(&start));
        let first = &found.classes[0];
        assert_eq!((first.name.as_str(), first.now.bytes, first.at_start.unwrap().bytes), ("web.Session", 8_000, 0));
        assert_eq!(found.classes.last().unwrap().name, "a.Gone");
        let kinds: Vec<_> = found.kinds.iter().map(|of| (of.now.instances, of.now.bytes)).collect();
        assert_eq!(kinds, [(0, 0), (110, 9_500), (305, 4_880), (3, 144)]);
        assert_eq!(found.total.bytes, 9_500 + 480 + 560 + 4_880 + 8_000);
        let alone = record(&now, None);
        assert_eq!((alone.classes[0].name.as_str(), alone.at_start), ("[B", None));
    }

    #[test]
    fn a_hundred_thousand_classes_are_counted_but_few_listed() {
        let rows = (0..100_000_u64).map(|n| ClassRow { name: format!("gen.C{n}"), instances: 1, bytes: 16 });
        let found = record(&ClassHistogram { rows: rows.collect() }, None);
        assert_eq!((found.classes.len(), found.classes_left_out, found.total.instances), (500, 99_500, 100_000));
    }

    #[test]
    fn small_objects_allocated_per_request_are_listed() {
        let mut rows: Vec<(String, u64, u64)> = (0..400).map(|n| (format!("java.lang.C{n}"), 9, 1 << 20)).collect();
        rows.extend((0..400).map(|n| (format!("gen.C{n}"), 3, 99_999)));
        let rows = |more: u64| {
            let own = [("web.LoggedRequest".to_owned(), 10 + more, 16 * (10 + more))];
            let row = |(name, instances, bytes)| ClassRow { name, instances, bytes };
            ClassHistogram { rows: rows.iter().cloned().chain(own).map(row).collect() }
        };
        let found = record(&rows(2_000), None);
        assert!(found.classes.iter().any(|class| class.name == "web.LoggedRequest"), "{found:?}");
        assert!(found.classes.is_sorted_by_key(|class| Reverse(class.now.bytes)));
    }

    proptest! {
        #[test]
        fn class_sums_match_the_total_and_do_not_overflow(
            now in prop::collection::vec(("[a-e]", any::<u64>(), any::<u64>()), 0..20),
            start in prop::collection::vec(("[c-h]", any::<u64>(), any::<u64>()), 0..20),
        ) {
            let rows = |rows: &[(String, u64, u64)]| {
                let rows: Vec<_> = rows.iter().map(|(name, n, bytes)| (name.as_str(), *n, *bytes)).collect();
                histogram(&rows)
            };
            let found = record(&rows(&now), Some(&rows(&start)));
            let sum = |of: fn(&ObjectClass) -> u64| found.classes.iter().map(of).fold(0, u64::saturating_add);
            prop_assert_eq!(sum(|class| class.now.bytes), found.total.bytes);
            prop_assert_eq!(sum(|class| class.at_start.unwrap().bytes), found.at_start.unwrap().bytes);
        }
    }
}
