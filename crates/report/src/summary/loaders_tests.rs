//! Class loaders in words, tested with synthetic marks and with names that contain markup.

use super::*;
use crate::record::ClassCounts;
use crate::terminal::render_within;

fn sum(loaders: u64, classes: u64, taken_bytes: u64) -> LoaderSum {
    LoaderSum { loaders, classes, taken_bytes, used_bytes: taken_bytes / 2, ..LoaderSum::default() }
}

fn mark(name: &str, loaded: u64, types: &[(&str, LoaderSum, LoaderSum, LoaderSum)]) -> Mark {
    let of = |(name, now, added, ended): &(&str, LoaderSum, LoaderSum, LoaderSum)| LoaderType {
        name: (*name).to_owned(),
        now: *now,
        change: Some(LoaderChange { added: *added, ended: *ended, ..LoaderChange::default() }),
    };
    let types: Vec<LoaderType> = types.iter().map(of).collect();
    let total = types.iter().fold(LoaderSum::default(), |sum, of| sum.plus(of.now));
    let change = types.iter().filter_map(|of| of.change).reduce(LoaderChange::plus);
    Mark {
        name: name.to_owned(),
        classes: Some(ClassCounts { loaded, shared: 400, unloaded: 3 }),
        loaders: Some(LoadersRecord { total, change, types, types_left_out: 0 }),
        ..Mark::default()
    }
}

/// A server that creates 412 loaders under load, 12 of which a collection frees.
fn leaking(name: &str) -> Trial {
    let (none, mib) = (sum(0, 0, 0), |n: u64| n << 20);
    let app = ("jdk.internal.loader.ClassLoaders$AppClassLoader", sum(1, 900, mib(6)), none, none);
    let grown = sum(412, 412, 10_276_045);
    Trial {
        marks: vec![
            mark("start", 1_000, &[app, (name, none, none, none)]),
            mark("loaded", 1_412, &[app, (name, grown, grown, none)]),
            mark("rested", 1_420, &[app, (name, grown, none, none)]),
            mark("collected", 1_340, &[app, (name, sum(400, 400, mib(9)), none, sum(12, 80, 300 << 10))]),
        ],
        ..Trial::new("a", 0, 0)
    }
}

fn text(blocks: Vec<Part>) -> String {
    render_within(&blocks, 80)
}

#[test]
fn spans_with_class_changes_are_shown() {
    let table = of_trial(&leaking("groovy.lang.GroovyClassLoader")).unwrap();
    insta::assert_snapshot!(text(vec![Part::Table(table)]));
}

#[test]
fn few_new_classes_are_not_reported() {
    let mut trial = leaking("a.B");
    trial.marks.truncate(1);
    assert_eq!(of_trial(&trial), None);
    trial.marks.push(mark("loaded", 1_050, &[("a.B", sum(50, 50, 1), sum(50, 50, 1), sum(0, 0, 0))]));
    assert_eq!(of_trial(&trial), None);
    trial.marks[1].classes = Some(ClassCounts { loaded: 1_051, ..ClassCounts::default() });
    assert!(of_trial(&trial).is_some());
}

#[test]
fn a_loader_type_with_negligible_growth_has_no_row() {
    let mut trial = leaking("a.B");
    let kept = |classes, bytes| LoaderChange {
        kept_classes_growth: classes,
        kept_taken_bytes_growth: bytes,
        ..LoaderChange::default()
    };
    let rows = |trial: &Trial| of_trial(trial).unwrap().rows.iter().map(|row| row[1].clone()).collect::<Vec<_>>();
    for (classes, bytes, shown) in [(9, 40_000, false), (10, 0, true), (-10, 0, true), (0, 60_000, true)] {
        let types = &mut trial.marks[1].loaders.as_mut().unwrap().types;
        types[0].change = Some(kept(classes, bytes));
        assert_eq!(rows(&trial).contains(&"ClassLoaders$AppClassLoader".into()), shown, "{classes} {bytes}");
    }
}

#[test]
fn an_account_lists_loader_types_and_explains_the_numbers() {
    let trial = leaking("groovy.lang.GroovyClassLoader");
    insta::assert_snapshot!(text(vec![by_type(&trial.marks[1])]));
    let unknown = text(vec![by_type(&Mark::default())]);
    assert!(unknown.contains("did not report them"), "{unknown}");
}

#[test]
fn markup_in_loader_names_is_escaped_and_rows_are_limited() {
    let nasty = "x.\u{1b}[31m<script>`|\u{202e}\r\n# y";
    let trial = leaking(nasty);
    let shown = text(vec![by_type(&trial.marks[1]), Part::Table(of_trial(&trial).unwrap())]);
    assert!(!shown.contains(['\u{1b}', '\u{202e}', '\r']), "{shown}");
    let names: Vec<String> = (0..10_000).map(|n| format!("web.Loader{n}")).collect();
    let types: Vec<_> = names.iter().map(|name| (name.as_str(), sum(1, 1, 9), sum(1, 1, 9), sum(0, 0, 0))).collect();
    let mut many = leaking("a.B");
    many.marks.push(mark("after", 11_000, &types));
    let shown = text(vec![by_type(&many.marks[4]), Part::Table(of_trial(&many).unwrap())]);
    assert!(shown.lines().count() < 80 && shown.contains("and 9,960 more types"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}
