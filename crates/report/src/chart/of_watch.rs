//! The chart of a watched JVM: memory by part until its end, the limit, and when accounts were taken.

use super::model::{Axis, Chart, Figure, Guide, Item, Panel, Sign};
use super::scale::Scale;
use super::thin::Point;
use super::values::MIB;
use crate::record::{PostMortem, WatchCourse, WatchPart};
use crate::summary::{mib, watch::part_name};
use crate::table::Table;
use crate::units::{Bytes, roughly};

/// Parts of anonymous memory, bottom to top, with classes.
const STACKED: [(&str, &str); 5] = [
    ("java_heap", "o-heap2"),
    ("metaspace", "o-class"),
    ("direct", "o-malloc3"),
    ("threads", "o-rest"),
    ("rest", "o-malloc"),
];
/// Parts drawn as lines, each with its class and its description.
const LINES: [(&str, &str, &str); 2] =
    [("heap", "line l-used", "heap after old GCs"), ("memory", "line l-rss", "memory that cannot be reclaimed")];
const LIMIT: &str = "memory that cannot be reclaimed";
const HEIGHT: u32 = 260;
/// A limit higher than this many times the memory would flatten the chart, so it is omitted.
const LIMIT_WITHIN: f64 = 3.0;
const ROWS_MAX: usize = 40;

/// The chart, if there is any data over time.
pub(crate) fn last_hours(of: &PostMortem) -> Option<Figure> {
    let course = &of.course;
    let stretches = course.parts.iter().map(|part| part.values.len()).max().filter(|stretches| *stretches > 1)?;
    let span_s = course.step_s * stretches as f64;
    let (unit_s, unit) = match span_s {
        span if span < 300.0 => (1.0, "seconds"),
        span if span < 3.0 * 3600.0 => (60.0, "minutes"),
        _ => (3600.0, "hours"),
    };
    let x = Axis::new(Scale::linear(-span_s / unit_s, 0.0), &format!("{unit} before the end"), "", 8);
    let drawing = Drawing { course, x, before: |at| (at as f64 - stretches as f64 + 0.5) * course.step_s / unit_s };
    let most = part(course, "memory").iter().flat_map(|part| &part.values).flatten().copied().max().unwrap_or(0);
    let shows_limit = (of.limit_bytes as f64) < LIMIT_WITHIN * most as f64;
    let (panel, legend) = drawing.memory(shows_limit.then_some(of.limit_bytes));
    let weighed = |at_s: &f64| {
        let before = (at_s - course.from_age_s - span_s) / unit_s;
        (at_s >= &course.from_age_s).then(|| Guide { x: drawing.x.across(before), label: "weighed".to_owned() })
    };
    let title = format!("Memory by part in the last {}", roughly(span_s));
    let limit = match shows_limit {
        true => format!(" The limit is the line at {}.", Bytes(of.limit_bytes)),
        false => format!(" The limit, {}, is far above the chart.", Bytes(of.limit_bytes)),
    };
    let chart = Chart {
        name: "last-hours".to_owned(),
        description: format!("{title} of {}, from JVM counters, stacked.{limit}", of.name),
        title: format!("{title}, from JVM counters.{limit}"),
        guides: of.weighed_at_s.iter().filter_map(weighed).collect(),
        x: Some(drawing.x.clone()),
        panels: vec![panel],
        legend,
        ..Chart::default()
    };
    Some(Figure { table: drawing.table(stretches, unit), chart })
}

fn part<'a>(course: &'a WatchCourse, name: &str) -> Option<&'a WatchPart> {
    course.parts.iter().find(|part| part.name == name)
}

/// Data shared by the panel and the table.
struct Drawing<'a, F> {
    course: &'a WatchCourse,
    x: Axis,
    /// The axis value for the middle of a span.
    before: F,
}

impl<F: Fn(usize) -> f64> Drawing<'_, F> {
    fn memory(&self, limit: Option<u64>) -> (Panel, Vec<(Sign, String)>) {
        let known = |name: &str| part(self.course, name).map_or(&[][..], |part| &part.values);
        // Reclaimable pages do not cause kills.
        let all = self.course.parts.iter().filter(|part| part.name != "files");
        let all = all.flat_map(|part| part.values.iter().flatten().copied()).chain(limit);
        let y = Axis::new(Scale::from_zero(all.map(|bytes| bytes as f64 / MIB)), "MiB", " MiB", 5);
        let place =
            |at: usize, bytes: u64| -> Point { (self.x.across((self.before)(at)), y.down(bytes as f64 / MIB, HEIGHT)) };
        let (mut items, mut legend) = (Vec::new(), Vec::new());
        let mut below = vec![0; known("memory").len()];
        for (name, class) in STACKED {
            let values = known(name);
            let above: Vec<u64> =
                (0..below.len()).map(|at| below[at] + values.get(at).copied().flatten().unwrap_or(0)).collect();
            if above != below {
                let top = above.iter().enumerate().map(|(at, bytes)| place(at, *bytes));
                let back = below.iter().enumerate().rev().map(|(at, bytes)| place(at, *bytes));
                items.push(Item::Fill { points: top.chain(back).collect(), class: class.to_owned() });
                legend.push((Sign::Area(class.to_owned(), false), part_name(name).to_owned()));
            }
            below = above;
        }
        for (name, class, words) in LINES {
            let seen = known(name).iter().enumerate().filter_map(|(at, bytes)| Some(place(at, (*bytes)?)));
            let points: Vec<Point> = seen.collect();
            if points.len() > 1 {
                items.push(Item::line(&points, class, part_name(name)));
                legend.push((Sign::Line(class.to_owned()), words.to_owned()));
            }
        }
        if limit.is_some() {
            let seen = self.course.limit_bytes.iter().enumerate().filter_map(|(at, bytes)| Some(place(at, (*bytes)?)));
            items.push(Item::line(&seen.collect::<Vec<_>>(), LIMIT, "limit"));
            legend.push((Sign::Line(LIMIT.to_owned()), "limit".to_owned()));
        }
        (Panel::plot("MiB, the maximum of each interval", y, HEIGHT, items), legend)
    }

    fn table(&self, stretches: usize, unit: &str) -> Table {
        let every = stretches.div_ceil(ROWS_MAX);
        let rows = (0..stretches).rev().step_by(every).map(|at| {
            let values = self.course.parts.iter().map(|part| mib(part.values.get(at).copied().flatten()));
            let limit = mib(self.course.limit_bytes.get(at).copied().flatten());
            [format!("{:.1}", -(self.before)(at))].into_iter().chain(values).chain([limit]).collect()
        });
        let names = self.course.parts.iter().map(|part| part_name(&part.name).trim().to_owned());
        let head = [format!("{unit} before the end")].into_iter().chain(names).chain(["limit".to_owned()]);
        Table::new("Data, MiB", head, rows.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(values: &[Option<u64>], limit_mib: u64) -> PostMortem {
        let of = |name: &str| WatchPart { name: name.to_owned(), values: values.to_vec(), ..WatchPart::default() };
        let limit = limit_mib << 20;
        let course = WatchCourse {
            from_age_s: 100.0,
            step_s: 60.0,
            parts: ["memory", "java_heap", "rest"].map(of).to_vec(),
            limit_bytes: vec![Some(limit); values.len()],
        };
        PostMortem { course, limit_bytes: limit, weighed_at_s: vec![10.0, 220.0], ..PostMortem::default() }
    }

    #[test]
    fn watched_memory_is_drawn_stacked_below_a_nearby_limit() {
        let figure = last_hours(&life(&[Some(10 << 20), None, Some(30 << 20)], 80)).unwrap();
        let items = &figure.chart.panels[0].items;
        let fills = items.iter().filter(|item| matches!(item, Item::Fill { .. })).count();
        assert_eq!((fills, items.len(), figure.chart.guides.len()), (2, 4, 1), "an earlier account is not drawn");
        let words: Vec<&str> = figure.chart.legend.iter().map(|(_, words)| words.as_str()).collect();
        assert_eq!(words, ["java heap", "rest", "memory that cannot be reclaimed", "limit"]);
        assert_eq!(figure.table.rows[0], ["30.0", "30.0", "30.0", "30.0", "80.0"]);
        let far = last_hours(&life(&[Some(10 << 20), Some(30 << 20)], 8000)).unwrap();
        assert!(far.chart.legend.iter().all(|(_, words)| words != "limit"), "{:?}", far.chart.legend);
        assert!(last_hours(&PostMortem::default()).is_none() && last_hours(&life(&[Some(1)], 1)).is_none());
    }
}
