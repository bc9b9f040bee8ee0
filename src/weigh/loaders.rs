//! A JVM's class loaders across marks: matched by the address of their data, grouped by type.

use crate::observe::class_loaders::ClassLoader;
use crate::record::{LoaderChange, LoaderSum, LoaderType, LoadersRecord};
use crate::units::growth;
use loadline_base::order::Order as _;
use std::collections::HashMap;

/// Types listed per mark: servers have 5 to 20; the rest are only counted.
const TYPES_MAX: usize = 100;

#[derive(Debug, Default)]
pub(super) struct KnownLoaders(Option<HashMap<u64, KnownLoader>>);

#[derive(Debug)]
struct KnownLoader {
    name: String,
    sum: LoaderSum,
}

impl KnownLoaders {
    /// The loaders at this mark, with changes since the previous one. A new loader at the address of one that is gone
    /// is recognized by its different type. If both have the same type, it is taken for the old one, which keeps the
    /// sums correct.
    pub(super) fn record(&mut self, loaders: &[ClassLoader]) -> LoadersRecord {
        let mut before = self.0.take();
        let compares = before.is_some();
        let mut types: HashMap<&str, (LoaderSum, LoaderChange)> = HashMap::new();
        for loader in loaders {
            let (now, change) = types.entry(&loader.name).or_default();
            let sum = sum_of(loader);
            *now = now.plus(sum);
            match before.as_mut().and_then(|known| known.remove(&loader.data)) {
                Some(known) if known.name == loader.name => *change = change.plus(grown(known.sum, sum)),
                Some(known) => {
                    change.added = change.added.plus(sum);
                    before.get_or_insert_default().insert(loader.data, known);
                }
                None => change.added = change.added.plus(sum),
            }
        }
        let gone: Vec<KnownLoader> = before.into_iter().flat_map(HashMap::into_values).collect();
        for known in &gone {
            let (_, change) = types.entry(&known.name).or_default();
            change.ended = change.ended.plus(known.sum);
        }
        let listed = types.into_iter().map(|(name, (now, change))| LoaderType {
            name: name.to_owned(),
            now,
            change: compares.then_some(change),
        });
        let record = folded(listed.collect());
        let known =
            |loader: &ClassLoader| (loader.data, KnownLoader { name: loader.name.clone(), sum: sum_of(loader) });
        self.0 = Some(loaders.iter().map(known).collect());
        record
    }
}

pub(super) fn together<'a>(parts: impl Iterator<Item = &'a LoadersRecord>) -> LoadersRecord {
    let both = |one: Option<LoaderChange>, other| [one, other].into_iter().flatten().reduce(LoaderChange::plus);
    let mut types: HashMap<&str, LoaderType> = HashMap::new();
    let mut sum = LoadersRecord::default();
    for record in parts {
        sum.types_left_out += record.types_left_out;
        sum.total = sum.total.plus(record.total);
        sum.change = both(sum.change, record.change);
        for of in &record.types {
            let known = types.entry(&of.name).or_default();
            known.name.clone_from(&of.name);
            known.now = known.now.plus(of.now);
            known.change = both(known.change, of.change);
        }
    }
    let listed = folded(types.into_values().collect());
    // The sums include omitted rows.
    LoadersRecord { types_left_out: listed.types_left_out + sum.types_left_out, types: listed.types, ..sum }
}

/// The sums over all types, and the most important types.
fn folded(mut types: Vec<LoaderType>) -> LoadersRecord {
    let total = types.iter().fold(LoaderSum::default(), |sum, of| sum.plus(of.now));
    let change = types.iter().filter_map(|of| of.change).reduce(LoaderChange::plus);
    let weight = |of: &LoaderType| {
        let moved = of.change.map_or(0, |change| change.added.taken_bytes.max(change.ended.taken_bytes));
        of.now.taken_bytes.max(moved)
    };
    types.order_by(|one, other| weight(other).cmp(&weight(one)).then_with(|| one.name.cmp(&other.name)));
    let types_left_out = types.len().saturating_sub(TYPES_MAX) as u64;
    types.truncate(TYPES_MAX);
    LoadersRecord { total, change, types, types_left_out }
}

fn sum_of(loader: &ClassLoader) -> LoaderSum {
    LoaderSum {
        loaders: 1,
        classes: loader.classes,
        hidden_classes: loader.hidden_classes,
        taken_bytes: loader.size,
        used_bytes: loader.used,
    }
}

fn grown(before: LoaderSum, now: LoaderSum) -> LoaderChange {
    LoaderChange {
        kept_classes_growth: growth(before.classes, now.classes),
        kept_taken_bytes_growth: growth(before.taken_bytes, now.taken_bytes),
        ..LoaderChange::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::class_loaders;
    use proptest::prelude::*;

    fn reply(rows: &[(u64, u64, u64)]) -> Vec<ClassLoader> {
        let row = |(data, kind, classes): &(u64, u64, u64)| {
            format!("0x{kind:x} 0x0 0x{data:x} {classes} {} {} web.Loader{kind}\n", 1000 * classes, 800 * classes)
        };
        class_loaders::parse(&rows.iter().map(row).collect::<String>())
    }

    #[test]
    fn loaders_are_matched_by_address_and_type() {
        let mut known = KnownLoaders::default();
        assert_eq!(known.record(&reply(&[(1, 7, 10), (2, 7, 20), (3, 8, 5)])).change, None);
        // One is kept and grows, one is gone, one address has a new type, two are new.
        let record = known.record(&reply(&[(1, 7, 14), (3, 7, 6), (4, 7, 1), (5, 9, 2)]));
        let of = |name: &str| record.types.iter().find(|of| of.name == name).unwrap();
        let change = of("web.Loader7").change.unwrap();
        assert_eq!((change.added.loaders, change.added.classes, change.ended.loaders), (2, 7, 1));
        assert_eq!((change.kept_classes_growth, change.kept_taken_bytes_growth), (4, 4000));
        assert_eq!((change.classes_growth(), change.loaders_growth()), (-9, 1));
        assert_eq!((of("web.Loader8").now.loaders, of("web.Loader8").change.unwrap().ended.classes), (0, 5));
        assert_eq!(of("web.Loader9").change.unwrap().added.taken_bytes, 2000);
    }

    #[test]
    fn ten_thousand_loader_types_are_counted_but_few_listed() {
        let rows: Vec<(u64, u64, u64)> = (1..=10_000).map(|n| (n, n, n % 7)).collect();
        let record = KnownLoaders::default().record(&reply(&rows));
        assert_eq!((record.types.len() as u64, record.types_left_out), (100, 9_900));
        assert_eq!((record.total.loaders, record.types[0].now.classes), (10_000, 6));
    }

    proptest! {
        #[test]
        fn earlier_loaders_plus_changes_give_current_ones(
            marks in prop::collection::vec(prop::collection::btree_map(0u64..20, (0u64..4, 0u64..9), 0..20), 1..6),
        ) {
            let mut known = KnownLoaders::default();
            let mut last: Option<LoadersRecord> = None;
            for mark in marks {
                let rows: Vec<_> = mark.into_iter().map(|(data, (kind, classes))| (data, kind + 1, classes)).collect();
                let record = known.record(&reply(&rows));
                prop_assert_eq!(record.total.loaders, rows.len() as u64);
                if let Some((last, change)) = last.zip(record.change) {
                    let grown = |of: fn(&LoaderSum) -> u64| of(&record.total) as i64 - of(&last.total) as i64;
                    prop_assert_eq!(grown(|sum| sum.loaders), change.loaders_growth());
                    prop_assert_eq!(grown(|sum| sum.classes), change.classes_growth());
                    prop_assert_eq!(grown(|sum| sum.taken_bytes), change.taken_bytes_growth());
                }
                let twice = together([&record, &record].into_iter());
                prop_assert_eq!(twice.total, record.total.plus(record.total));
                last = Some(record);
            }
        }
    }
}
