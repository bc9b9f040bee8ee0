//! Rendering: paths in whole numbers, labels without overlap, a small chart in full.

use super::super::model::{Band, Guide};
use super::super::scale::Scale;
use super::*;

fn small() -> Chart {
    let x = Axis::new(Scale::linear(0.0, 10.0), "seconds", " s", 3);
    let y = Axis::new(Scale::from_zero([70.0].into_iter()), "MiB", " MiB", 3);
    let points = [(0.0, 10.0), (5.0, 60.0), (10.0, 50.0)];
    let points = points.map(|(at, mib)| (x.across(at), y.down(mib, 100))).to_vec();
    let line = Item::Line { points, class: "line l-rss".to_owned(), name: "RSS".to_owned() };
    let stems =
        Item::Stems { points: vec![(1000, 400), (2000, 100)], class: "line l-gc".to_owned(), name: "GC".to_owned() };
    Chart {
        name: "small".to_owned(),
        title: "A <small> chart".to_owned(),
        description: "RSS over time.".to_owned(),
        group: "one".to_owned(),
        x: Some(x),
        panels: vec![Panel::plot("memory, MiB", y, 100, vec![line, stems, Item::Crosses(vec![(3000, 500)])])],
        guides: vec![Guide { x: 400, label: "warm".to_owned() }, Guide { x: 3900, label: "loaded".to_owned() }],
        bands: vec![Band { from: 400, to: 3900, label: "steady".to_owned() }],
        legend: vec![(Sign::Line("line l-rss".to_owned()), "RSS".to_owned()), (Sign::Cross, "failed".to_owned())],
    }
}

#[test]
fn a_small_fluid_chart_is_drawn() {
    insta::assert_snapshot!(fluid(&small()).as_str().replace('>', ">\n"));
}

#[test]
fn a_small_standalone_chart_is_drawn() {
    let svg = fixed(&small(), ".line { fill: none; }");
    assert!(!svg.contains('%') || svg.matches('%').count() == 2, "only the background has a size in percent");
    insta::assert_snapshot!(svg.replace('>', ">\n"));
}

#[test]
fn paths_are_relative_integer_steps() {
    for (points, d) in [
        (&[(0, 50), (3, 48), (7, 53)][..], "M0 50l3-2 4 5"),
        (&[(5, 5)], "M5 5l0 0"),
        (&[], ""),
        (&[(9, 9), (8, 8)], "M9 9l-1-1"),
    ] {
        assert_eq!(relative(points), d);
    }
    let dots = Frame::Fluid.strokes([((10, 20), (0, 0)), ((14, 10), (0, 0))].into_iter());
    assert_eq!(dots, "M10 20h0m4-10h0");
    let stems = Frame::Fluid.strokes([((10, 20), (0, 80)), ((14, 90), (0, 10))].into_iter());
    assert_eq!(stems, "M10 20v80m4-10v10");
    assert_eq!(Frame::Fixed(800.0).strokes([((2000, 20), (1000, 0))].into_iter()), "M400 2h200");
}

#[test]
fn labels_of_close_guides_use_rows_and_the_last_precedes_its_line() {
    let guide = |x: u32, label: &str| Guide { x, label: label.to_owned() };
    let guides = vec![guide(100, "start"), guide(200, "warm"), guide(300, "loaded"), guide(3999, "collected")];
    let chart = Chart { guides, ..Chart::default() };
    assert_eq!(label_rows(&chart), [Some(0), Some(1), Some(2), Some(0)]);
    let many = Chart { guides: (0..50).map(|_| guide(10, "mark")).collect(), ..Chart::default() };
    assert_eq!(label_rows(&many).iter().flatten().count(), LABEL_ROWS);
}
