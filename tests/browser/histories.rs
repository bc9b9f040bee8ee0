//! The page of a history in a browser: on a phone and in the dark as on a screen, whatever its names are.

use crate::browser::{Browser, DARK};
use crate::page::fits;
use loadline::record::{
    Better, ChangeRecord, DifferenceVerdict, HISTORY_SCHEMA, HistoryBy, HistoryDocument, HistoryOrder, MetricHistory,
    OwnerMove, PointRecord, PointValue, SeriesRecord, Unit,
};
use loadline::report::history_page;

const MIB: f64 = 1_048_576.0;
const POINTS: u32 = 60;
const CHANGED: u32 = 40;

/// A history of which each name ends in this.
fn history(text: &str) -> HistoryDocument {
    let point = |at: u32| PointRecord {
        name: format!("{at:07x}{text}"),
        started: format!("2026-11-{:02}T02:00:00Z", at % 28 + 1),
        trials: 3,
        conditions_changed: if at == 50 { vec![format!("JDK: 17.0.15 | 21.0.3{text}")] } else { Vec::new() },
        ..PointRecord::default()
    };
    let value = |at: u32| {
        let mib = 180.0 + f64::from(at % 7) * 0.2 + if at >= CHANGED { 8.0 } else { 0.0 };
        let [centre, low, high] = [mib, mib - 0.8, mib + 0.9].map(|mib| mib * MIB);
        Some(PointValue { centre, low: Some(low), high: Some(high), trials: 3 })
    };
    let [bytes, bytes_low, bytes_high] = [7.5, 7.1, 7.9].map(|mib| mib * MIB);
    let change = ChangeRecord {
        point: CHANGED,
        point_first: CHANGED,
        point_last: CHANGED,
        difference: 8.0 * MIB,
        low: 7.2 * MIB,
        high: 8.9 * MIB,
        verdict: DifferenceVerdict::Worse,
        trials_before: 120,
        trials_after: 60,
        conditions_changed: Vec::new(),
        owners: vec![OwnerMove { owner: format!("metaspace{text}"), bytes, bytes_low, bytes_high }],
    };
    let metric = |name: &str| MetricHistory {
        metric: format!("{name}{text}"),
        unit: Unit::Bytes,
        better: Better::Lower,
        values: (0..POINTS).map(value).collect(),
        noise: Some(MIB),
        changes: vec![change.clone()],
        trends: Vec::new(),
    };
    let series = SeriesRecord {
        scenario: format!("tiny-http{text}"),
        configuration: format!("serial{text}"),
        points: (0..POINTS).map(point).collect(),
        metrics: vec![metric("rss.loaded"), metric("rss_peak")],
        refused: Vec::new(),
    };
    HistoryDocument {
        schema: HISTORY_SCHEMA.to_owned(),
        loadline: "0.1.0".to_owned(),
        by: HistoryBy::Commit,
        order: HistoryOrder::Commits,
        series: vec![series.clone(), series],
        left_out: vec![format!("night/7 cannot be read{text}")],
    }
}

#[test]
fn a_history_fits_a_phone_and_a_screen() {
    let Some(browser) = Browser::find() else { return };
    fits(&browser, &history_page(&history("")));
    fits(&browser, &history_page(&history(&"</td><b onload=alert(1)>".repeat(20))));
}

#[test]
fn a_history_is_drawn_by_day_and_by_night() {
    let Some(browser) = Browser::find() else { return };
    browser.write(&history_page(&history("")));
    for (options, paper) in [(&[][..], [0xff, 0xff, 0xff]), (DARK, [0x14, 0x18, 0x1d])] {
        for width in [400, 1280] {
            let picture = browser.screenshot_with(width, 6000, options);
            assert!(picture.count(paper) * 2 > picture.pixels(), "the paper, at {width}");
            assert!(picture.count(paper) < picture.pixels() * 99 / 100, "nothing is drawn at {width}");
        }
    }
}
