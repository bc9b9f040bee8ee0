//! A synthetic history, for page tests.

use crate::documents;
use loadline_model::record::{
    Better, ChangeRecord, DifferenceVerdict, HISTORY_SCHEMA, HistoryBy, HistoryDocument, HistoryOrder, MetricHistory,
    OwnerMove, PointRecord, PointValue, SeriesRecord, TrendRecord, Unit,
};

fn point(number: usize, name: &str) -> PointRecord {
    PointRecord {
        name: name.to_owned(),
        commit: Some(format!("{name}{:033}", number)),
        build: Some(format!("{}", 100 + number)),
        started: format!("2026-11-{:02}T02:00:00Z", number % 28 + 1),
        archives: vec![format!("night/{number}")],
        trials: 3,
        ..PointRecord::default()
    }
}

fn value(mib: f64) -> Option<PointValue> {
    let at = |mib: f64| mib * documents::MIB;
    Some(PointValue { centre: at(mib), low: Some(at(mib - 0.6)), high: Some(at(mib + 0.7)), trials: 3 })
}

fn metric(values: Vec<Option<PointValue>>) -> MetricHistory {
    MetricHistory {
        metric: "rss.loaded".to_owned(),
        unit: Unit::Bytes,
        better: Better::Lower,
        values,
        noise: Some(0.5 * documents::MIB),
        changes: Vec::new(),
        trends: Vec::new(),
    }
}

fn change(point: u32, mib: f64) -> ChangeRecord {
    ChangeRecord {
        point,
        point_first: point,
        point_last: point,
        difference: mib * documents::MIB,
        low: (mib - 0.9) * documents::MIB,
        high: (mib + 0.8) * documents::MIB,
        verdict: DifferenceVerdict::Worse,
        trials_before: 9,
        trials_after: 6,
        conditions_changed: Vec::new(),
        owners: Vec::new(),
    }
}

/// Six commits: metaspace grows at the fourth, the JDK changes at the sixth.
pub fn history() -> HistoryDocument {
    let names = ["a1b2c3d", "b2c3d4e", "9c01d2e", "3f2a91c", "d4e5f60", "e5f6071"];
    let mut points: Vec<PointRecord> = names.iter().enumerate().map(|(at, name)| point(at, name)).collect();
    points[3].subject = Some("Cache templates by name".to_owned());
    points[5].conditions_changed = vec!["JDK: 17.0.15 | 21.0.3".to_owned()];
    let levels = [180.0, 180.4, 179.9, 187.8, 188.0, 193.1];
    let mut rss = metric(levels.map(value).to_vec());
    rss.values[1] = None;
    let owner = OwnerMove {
        owner: "metaspace".to_owned(),
        bytes: 7.5 * documents::MIB,
        bytes_low: 7.1 * documents::MIB,
        bytes_high: 7.9 * documents::MIB,
    };
    let with_conditions = ChangeRecord { conditions_changed: points[5].conditions_changed.clone(), ..change(5, 5.2) };
    rss.changes = vec![ChangeRecord { owners: vec![owner], ..change(3, 7.8) }, with_conditions];
    let series = SeriesRecord {
        scenario: "tiny-http".to_owned(),
        configuration: "serial".to_owned(),
        points,
        metrics: vec![rss],
        refused: Vec::new(),
    };
    HistoryDocument {
        schema: HISTORY_SCHEMA.to_owned(),
        loadline: "0.1.0".to_owned(),
        by: HistoryBy::Commit,
        order: HistoryOrder::Date,
        series: vec![series],
        left_out: vec!["night/7 has no completed trials".to_owned()],
    }
}

/// The history with `text` in place of all untrusted text.
pub fn hostile(text: &str) -> HistoryDocument {
    documents::with_every_text(&history(), text, &[])
}

/// A history of many points with a gradual rise, and a change whose exact point is uncertain.
pub fn long(points: usize) -> HistoryDocument {
    let mut document = history();
    let series = &mut document.series[0];
    series.points = (0..points).map(|at| point(at, &format!("{at:07x}"))).collect();
    let level = |at: usize| value(180.0 + at as f64 * 0.01 + if at >= points / 2 { 3.0 } else { 0.0 });
    series.metrics = vec![metric((0..points).map(level).collect())];
    let middle = points as u32 / 2;
    series.metrics[0].changes =
        vec![ChangeRecord { point_first: middle - 1, point_last: middle + 2, ..change(middle, 3.0) }];
    series.metrics[0].trends = vec![TrendRecord {
        point_first: 0,
        point_last: middle - 1,
        difference: 5.0 * documents::MIB,
        low: 4.0 * documents::MIB,
        high: 6.0 * documents::MIB,
        verdict: DifferenceVerdict::Worse,
        conditions_changed: Vec::new(),
        owners: Vec::new(),
    }];
    document
}
