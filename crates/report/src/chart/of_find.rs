//! The chart of a search for the load line: rate, p99, and CPU per request by limit, one dot per trial.

use super::model::{Axis, Chart, Figure, Guide, Item, Panel, Sign};
use super::scale::{Scale, ScaleKind, tick_text};
use super::values::MIB;
use crate::comparison::split;
use crate::record::{Document, FindRecord, ProbeRecord, ProbeStage, ProbeVerdict, Trial, Unknowns};
use crate::scenario::{Amount, Budget, Limit};
use crate::summary::tried::{Reached, reached, trial_text, tried_told};
use crate::table::Table;
use crate::units::{Bytes, milliseconds, per_second, shortened};
use loadline_base::order::Order as _;

const HEIGHT: u32 = 120;
const TICKS: usize = 6;
/// Longest label next to its line.
const NAME_CHARS: usize = 40;
/// Margin outside the outermost dots, as a ratio: about one or two steps of a search.
const ROOM: f64 = 1.04;

struct Dot<'a> {
    trial: &'a Trial,
    probe: &'a ProbeRecord,
    reached: Reached,
    /// MiB, or requests per second if the search was for a rate.
    x: f64,
}

/// The chart; empty if no trial has a limit.
pub(crate) fn finds(document: &Document) -> Vec<Figure> {
    let dots: Vec<Dot<'_>> = document.trials.iter().filter_map(dot).collect();
    let find = document.find.as_ref().filter(|_| !dots.is_empty());
    let table = || Table { title: "Every trial as a table".to_owned(), ..tried_told(&document.trials) };
    find.map(|find| Figure { chart: chart(find, &dots), table: table() }).into_iter().collect()
}

/// A trial's dot: at its limit, or at its offered rate if rates were searched. With ample memory, the dot is at the
/// peak charge that the trial needed.
fn dot(trial: &Trial) -> Option<Dot<'_>> {
    let (probe, reached) = (trial.probe.as_ref()?, reached(trial));
    let bytes = match probe.stage {
        ProbeStage::Limit | ProbeStage::Warm | ProbeStage::Soak => trial.limit_bytes,
        ProbeStage::Reference | ProbeStage::Heap => reached.peak_bytes,
        // A start without load has no values to show.
        ProbeStage::HeapStart | ProbeStage::Rate => None,
    };
    let mib = bytes.map(|bytes| bytes as f64 / MIB);
    let x = mib.or(probe.rate_per_s).filter(|x| *x > 0.0 && x.is_finite())?;
    Some(Dot { trial, probe, reached, x })
}

/// Verdicts with classes and words. Dots are filled for passed trials and hollow for failed ones, so the verdict is
/// visible without color.
const VERDICTS: [(ProbeVerdict, &str, &str); 3] = [
    (ProbeVerdict::Holds, "held", "held"),
    (ProbeVerdict::Fails, "failed", "failed"),
    (ProbeVerdict::Discarded, "hollow", "discarded: disturbed by other activity on the machine"),
];
/// Drawn stages, with shapes and words.
const STAGES: [(ProbeStage, usize, &str); 6] = [
    (ProbeStage::Reference, 1, "with ample memory, at its peak charge"),
    (ProbeStage::Heap, 2, "for the heap, at its peak charge"),
    (ProbeStage::Limit, 0, "for the limit, at its limit"),
    (ProbeStage::Warm, 3, "for the limit with a warm page cache, at its limit"),
    (ProbeStage::Soak, 1, "limit to set, under a longer load"),
    (ProbeStage::Rate, 0, "for the rate, at the rate offered"),
];

/// Logarithmic, because a search's steps are ratios.
fn across(find: &FindRecord, dots: &[Dot<'_>]) -> Axis {
    let of_find = marks(find).into_iter().map(|(mib, _)| mib);
    let all = dots.iter().map(|dot| dot.x).chain(of_find);
    let (low, high) = all.fold((f64::INFINITY, 0.0f64), |(low, high), mib| (low.min(mib), high.max(mib)));
    let scale = Scale { low: low / ROOM, high: high * ROOM, kind: ScaleKind::Log };
    let ticks = Scale::linear(scale.low, scale.high).ticks(TICKS);
    let ticks: Vec<f64> = ticks.into_iter().filter(|tick| *tick >= scale.low && *tick <= scale.high).collect();
    let texts = ticks.iter().map(|tick| (*tick, tick_text(*tick, &ticks))).collect();
    let (title, unit) = match find.unknowns {
        Unknowns::Rate => ("offered requests per second", "/s"),
        _ => ("limit, or peak charge if memory was ample, MiB", " MiB"),
    };
    Axis { scale, title: title.to_owned(), unit, ticks: texts }
}

/// Named positions on the axis: the line, its headroom, the warm host, the knee, and the highest rate, if known.
fn marks(find: &FindRecord) -> Vec<(f64, String)> {
    let mib = |bytes: u64| bytes as f64 / MIB;
    let named = |bytes: u64, what: &str| (mib(bytes), format!("{what} {}", Bytes(bytes)));
    let mut found: Vec<(f64, String)> = Vec::new();
    found.extend(find.warm.as_ref().map(|warm| named(warm.limit_bytes, "warm page cache")));
    let of_line = if find.prove_bytes.is_some() { "tested limit" } else { "load line" };
    found.extend(find.line.as_ref().map(|line| named(line.limit_bytes, of_line)));
    let set = find.limit_bytes.filter(|_| find.headroom > 0.0);
    found.extend(set.map(|limit| named(limit, "with headroom")));
    found.extend(find.knee.map(|knee| named(knee.limit_bytes, "knee")));
    let rate = find.rate.as_ref().map(|rate| rate.rate_per_s);
    found.extend(rate.map(|rate| (rate, format!("highest rate {}/s", per_second(rate)))));
    found.retain(|(x, _)| *x > 0.0 && x.is_finite());
    found.order_by(|left, right| left.0.total_cmp(&right.0));
    found
}

fn chart(find: &FindRecord, dots: &[Dot<'_>]) -> Chart {
    let x = across(find, dots);
    let against = if find.unknowns == Unknowns::Rate { "Offered rate" } else { "Limit" };
    let guides = marks(find).into_iter().map(|(mib, label)| Guide { x: x.across(mib), label }).collect();
    let rate = |dot: &Dot<'_>| dot.reached.rate_per_s;
    let p99 = |dot: &Dot<'_>| dot.reached.p99_ms.filter(|ms| *ms > 0.0);
    let cpu = |dot: &Dot<'_>| dot.reached.cpu_us;
    let values = |value: &dyn Fn(&Dot<'_>) -> Option<f64>| dots.iter().filter_map(value).collect::<Vec<f64>>();
    let rates = Axis::new(Scale::from_zero(values(&rate).into_iter()), "", "/s", 4);
    let bounds = bounds(find);
    let of_times: Vec<f64> = values(&p99).into_iter().chain(bounds.iter().map(|(ms, _)| *ms)).collect();
    let times = Axis::new(Scale::log_around(of_times.into_iter()), "", " ms", 4);
    let cpus = Axis::new(Scale::from_zero(values(&cpu).into_iter()), "", " \u{b5}s", 4);
    let bound =
        |(ms, text): &(f64, String)| Item::bound(times.down(*ms, HEIGHT), text.clone(), shortened(text, NAME_CHARS));
    let asked: Vec<Item> = bounds.iter().flat_map(bound).collect();
    let mut of_p99 = panel("p99 of the worst phase, ms", times, dots, &x, &p99);
    if let Some(panel) = &mut of_p99 {
        panel.items.splice(0..0, asked);
    }
    let panels = [
        // A trial that did not reach its measured phases has a rate of 0, because no request was answered in them.
        panel("successful responses per second", rates, dots, &x, &|dot| Some(rate(dot).unwrap_or(0.0))),
        of_p99,
        panel("CPU per request, \u{b5}s", cpus, dots, &x, &cpu),
    ];
    Chart {
        name: "load-line".to_owned(),
        title: format!("{against} vs. rate, p99, and CPU per request"),
        description: "Every trial of the search as a dot: filled if the target was met, hollow if it was missed. \
             A dot is at the trial's limit or, if memory was ample, at its peak charge. Vertical lines mark the \
             load line, the limit with headroom, the load line with a warm page cache, and the knee."
            .to_owned(),
        x: Some(x),
        panels: panels.into_iter().flatten().collect(),
        guides,
        legend: legend(dots),
        ..Chart::default()
    }
}

/// The target's bounds on p99: in ms, and as the user wrote them.
fn bounds(find: &FindRecord) -> Vec<(f64, String)> {
    let of = |text: &String| {
        let budget: Budget = text.parse().ok()?;
        let Limit::Absolute(Amount::Time(bound)) = budget.limit else { return None };
        let ms = bound.as_s() * 1e3;
        let about = split(&budget.metric).0 == "p99";
        (about && ms > 0.0).then(|| (ms, budget.to_string()))
    };
    find.target.iter().filter_map(of).collect()
}

/// A panel; `None` if no trial has its value.
fn panel(title: &str, y: Axis, dots: &[Dot<'_>], x: &Axis, value: &dyn Fn(&Dot<'_>) -> Option<f64>) -> Option<Panel> {
    let mark = |dot: &Dot<'_>| {
        let at = (x.across(dot.x), y.down(value(dot)?, HEIGHT));
        let (_, class, _) = VERDICTS.iter().find(|(verdict, ..)| *verdict == dot.probe.verdict)?;
        let (_, shape, _) = STAGES.iter().find(|(stage, ..)| *stage == dot.probe.stage)?;
        Some(Item::mark(at, *shape, *class, words(dot)))
    };
    let items: Vec<Item> = dots.iter().filter_map(mark).collect();
    (!items.is_empty()).then(|| Panel::plot(title, y, HEIGHT, items))
}

fn words(dot: &Dot<'_>) -> String {
    let mut text = format!("trial {}", dot.trial.index + 1);
    text.extend(trial_text(dot.trial).map(|what| format!(" {what}")));
    let numbers = [
        dot.reached.rate_per_s.map(|rate| format!("{}/s", per_second(rate))),
        dot.reached.p99_ms.map(|ms| format!("p99 {} ms", milliseconds(ms))),
        dot.reached.cpu_us.map(|us| format!("{us:.0} \u{b5}s of CPU per request")),
    ];
    let numbers: Vec<String> = numbers.into_iter().flatten().collect();
    if numbers.is_empty() { text } else { format!("{text}; {}", numbers.join(", ")) }
}

fn legend(dots: &[Dot<'_>]) -> Vec<(Sign, String)> {
    let verdicts = VERDICTS.iter().filter(|(of, ..)| dots.iter().any(|dot| dot.probe.verdict == *of));
    let verdicts = verdicts.map(|(_, class, words)| (Sign::Mark(0, (*class).to_owned()), *words));
    let stages = STAGES.iter().filter(|(of, ..)| dots.iter().any(|dot| dot.probe.stage == *of));
    let stages = stages.map(|(_, shape, words)| (Sign::Mark(*shape, "dominated".to_owned()), *words));
    verdicts.chain(stages).map(|(sign, words)| (sign, words.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::svg;
    use super::*;
    use crate::find_sample;

    #[test]
    fn a_search_chart_has_a_dot_for_each_trial_and_a_line_for_the_edge() {
        let document = find_sample::found();
        let [figure] = &finds(&document)[..] else { panic!("expected one chart") };
        insta::assert_snapshot!(svg::fluid(&figure.chart).as_str().replace('>', ">\n"));
        assert_eq!(figure.chart.panels.len(), 3);
        assert_eq!(figure.chart.panels[0].items.len(), document.trials.len());
        let asked = |item: &&Item| matches!(item, Item::Words { text, .. } if text == "p99<50ms");
        assert_eq!(figure.chart.panels[1].items.iter().filter(asked).count(), 1);
        assert_eq!(figure.table.rows.len(), document.trials.len());
    }

    #[test]
    fn dots_and_lines_are_ordered_by_limit() {
        let document = find_sample::found();
        let chart = &finds(&document)[0].chart;
        let at = |name: &str| chart.guides.iter().find(|guide| guide.label.starts_with(name)).unwrap().x;
        assert!(at("warm page cache") < at("load line") && at("load line") < at("with headroom"));
        let line = document.find.as_ref().unwrap().line.as_ref().unwrap().limit_bytes;
        for (item, trial) in chart.panels[0].items.iter().zip(&document.trials) {
            let Item::Mark { at: (x, _), class, .. } = item else { panic!("{item:?}") };
            let probe = trial.probe.as_ref().unwrap();
            if probe.stage == ProbeStage::Limit {
                assert_eq!(*x < at("load line"), trial.limit_bytes < Some(line));
                assert_eq!(class == "held", probe.verdict == ProbeVerdict::Holds);
            }
        }
    }

    #[test]
    fn every_ending_and_no_search_at_all_can_be_drawn() {
        for (outcome, document) in find_sample::endings() {
            let figures = finds(&document);
            assert_eq!(figures.len(), 1, "{outcome:?}");
            let axis = figures[0].chart.x.as_ref().unwrap();
            assert!(axis.scale.low < axis.scale.high && axis.scale.low > 0.0, "{outcome:?}");
        }
        let document = Document { trials: Vec::new(), ..find_sample::found() };
        assert!(finds(&document).is_empty());
        assert!(finds(&Document { find: None, ..find_sample::found() }).is_empty());
    }

    #[test]
    fn a_rate_search_is_drawn_over_the_offered_rate() {
        let document = find_sample::highest_rate(512 << 20);
        let chart = &finds(&document)[0].chart;
        let rate = document.find.as_ref().unwrap().rate.as_ref().unwrap().rate_per_s;
        let [guide] = &chart.guides[..] else { panic!("{:?}", chart.guides) };
        assert!(guide.label.starts_with("highest rate 1,2"), "{}", guide.label);
        assert_eq!(guide.x, chart.x.as_ref().unwrap().across(rate));
        assert_eq!(chart.panels[0].items.len(), document.trials.len());
    }
}
