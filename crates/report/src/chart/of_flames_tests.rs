//! Flame graphs: widths add up, deep graphs are collapsed, hostile names are escaped.

use super::super::svg::{fixed, fluid};
use super::*;
use crate::record::{FlameFrameRecord, FlameStackRecord};
use crate::units::MIB;
use proptest::prelude::*;

fn frame(name: &str, code: FrameCode) -> FlameFrameRecord {
    FlameFrameRecord { name: name.to_owned(), code }
}

/// Stacks of a few frames, identified by numbers.
fn flame(stacks: &[(&[u32], u64)], left_out_bytes: u64) -> FlameRecord {
    let codes = [FrameCode::Framework, FrameCode::Application, FrameCode::Jdk, FrameCode::Native];
    let frames = (0..200).map(|at| frame(&format!("a.B.m{at}(B.java:{at})"), codes[at % 4])).collect();
    let stack = |(frames, bytes): &(&[u32], u64)| FlameStackRecord {
        outer_left_out: u64::from(frames.len() > 9),
        frames: frames.to_vec(),
        bytes: *bytes,
    };
    let stacks: Vec<FlameStackRecord> = stacks.iter().map(stack).collect();
    let told: u64 = stacks.iter().map(|stack| stack.bytes).sum();
    FlameRecord {
        kind: "zlib".to_owned(),
        bytes: told + left_out_bytes,
        left_out_bytes,
        frames,
        stacks,
        ..FlameRecord::default()
    }
}

#[test]
fn a_small_flame_graph_is_drawn() {
    let record = FlameRecord {
        kind: "zlib".to_owned(),
        bytes: 12 * MIB,
        left_out_bytes: MIB,
        frames: vec![
            frame("java.lang.Thread.run(Thread.java:840)", FrameCode::Jdk),
            frame("com.shop.Responses.answer(Responses.java:15)", FrameCode::Application),
            frame("java.util.zip.Deflater.<init>(Deflater.java:218)", FrameCode::Jdk),
            frame("libz.so.1`deflateInit2_", FrameCode::Native),
        ],
        stacks: vec![
            FlameStackRecord { outer_left_out: 0, frames: vec![0, 1, 2, 3], bytes: 8 * MIB },
            FlameStackRecord { outer_left_out: 0, frames: vec![0, 1], bytes: MIB },
            FlameStackRecord { outer_left_out: 7, frames: vec![2, 3], bytes: 2 * MIB },
        ],
        ..FlameRecord::default()
    };
    let explanation = ExplanationRecord { flames: vec![record], ..ExplanationRecord::default() };
    let [figure] = &flames(&explanation, 0)[..] else { panic!("one kind must give one chart") };
    insta::assert_snapshot!(
        fluid(&figure.chart).as_str().replace("></", ">\u{0}</").replace('>', ">\n").replace('\u{0}', "")
    );
    let rows: Vec<String> = figure
        .table
        .rows
        .iter()
        .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "))
        .collect();
    assert_eq!(rows.len(), 9, "{rows:?}");
    assert_eq!(
        rows[..3].concat(),
        "zlib | 0 | 12.0 | 0.0 | 100.0java.lang.Thread.run(Thread.java:840) | 1 | 9.0 | \
        0.0 | 75.0com.shop.Responses.answer(Responses.java:15) | 2 | 9.0 | 1.0 | 75.0"
    );
}

#[test]
fn a_deep_graph_merges_single_call_chains_but_keeps_the_application() {
    let deep: Vec<u32> = (0..120).map(|at| if at == 60 { 1 } else { 4 * (at + 1) % 200 }).collect();
    let deep = flame(&[(&deep, 3 * MIB), (&[0, 5], MIB)], 0);
    let tree = Tree::new(&deep);
    let (boxes, is_joined) = tree.boxes();
    assert!(is_joined);
    assert_eq!(boxes.iter().map(|of| of.nodes).max(), Some(60));
    assert!(boxes.iter().any(|of| tree.class(of.first) == "f-own" && of.nodes == 1 && of.across.1 == 3000));
    let text = format!("{:?}", tree.item(boxes.iter().find(|of| of.nodes == 60).unwrap()));
    assert!(text.contains("60 frames"), "{text}");
    // A graph that cannot be collapsed is truncated.
    let own: Vec<u32> = (0..100).map(|at| 4 * (at % 50) + 1).collect();
    let figure = figure(&flame(&[(&own, MIB)], 0), String::new());
    assert_eq!(figure.chart.panels[0].height, ROWS_MAX * ROW);
}

#[test]
fn hostile_frame_names_are_escaped_and_not_drawn_in_boxes() {
    let evil = "</title><script>alert(1)</script>\u{202e}\u{1b}[31m\"'`x";
    let mut record = flame(&[(&[0, 4711], 9 * MIB)], 0);
    record.kind = evil.to_owned();
    record.frames[0].name = evil.to_owned();
    let figure = figure(&record, "flame-1-1".to_owned());
    for text in [fluid(&figure.chart).as_str(), &fixed(&figure.chart, "")] {
        assert!(!text.contains("<script") && !text.contains(['\u{202e}', '\u{1b}']), "{text}");
        assert!(text.contains("&lt;script&gt;") && text.contains("unknown: 9.0 MiB"), "{text}");
    }
    assert_eq!(
        ["a.<b>\u{202e}.x(y", "..(", "", "`", "(", "é.é(", "a\u{200b}"].map(|name| label(name, 90.0)),
        ["x", ".(", "", "`", "(", "é.é(", ""]
    );
    for (room, expect) in [(300.0, "Orders.of(Orders.java:88)"), (80.0, "Orders.of"), (30.0, "of"), (9.0, "")] {
        assert_eq!(label("com.shop.Orders.of(Orders.java:88)", room), expect);
    }
    assert_eq!(label("libz.so.1`inflate", 60.0), "inflate");
}

proptest! {
    #[test]
    fn a_frame_is_as_wide_as_its_callees_and_its_own_bytes(
        stacks in proptest::collection::vec((proptest::collection::vec(0u32..6, 0..60), 0u64..MIB), 0..40),
        left_out in 0u64..MIB,
    ) {
        let stacks: Vec<(&[u32], u64)> = stacks.iter().map(|(frames, bytes)| (&frames[..], *bytes)).collect();
        let record = flame(&stacks, left_out);
        let tree = Tree::new(&record);
        prop_assert_eq!(tree.nodes[0].bytes, record.bytes);
        for node in &tree.nodes {
            let called: u64 = node.calls.iter().map(|call| tree.nodes[*call].bytes).sum();
            prop_assert_eq!(node.bytes, node.own_bytes + called);
        }
        let (boxes, _) = tree.boxes();
        for of in &boxes {
            prop_assert!(of.across.0 < of.across.1 && of.across.1 <= WIDTH && of.row < ROWS_MAX);
            let callers = boxes.iter().filter(|other| tree.nodes[other.last].calls.contains(&of.first));
            let callers: Vec<&Placed> = callers.collect();
            prop_assert!(callers.len() == 1 || of.row == 0);
            prop_assert!(callers.iter().all(|by| by.row + 1 == of.row && by.across.0 <= of.across.0));
            prop_assert!(callers.iter().all(|by| of.across.1 <= by.across.1));
        }
        for pair in boxes.chunk_by(|left, right| left.row == right.row).flat_map(|row| row.windows(2)) {
            prop_assert!(pair[0].across.1 <= pair[1].across.0, "neighbors do not overlap");
        }
    }
}
