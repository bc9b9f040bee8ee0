//! Response times from a trial's `phases.hlog`: coarse classes per interval, and a spectrum per phase.

use super::histogram_counts::Decoder;
use super::histograms::tagged;
use super::lines::Gaps;
use super::thinned::Thinned;
use crate::record::{IntervalRecord, PhaseRecord, SpectrumRecord, Timing, Trial};
use crate::units::grouped;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
use loadline_base::order::Order as _;
use std::path::Path;

/// The file name in a trial's directory.
const FILE: &str = "phases.hlog";
/// Intervals per trial, or one per phase if there are more phases.
const INTERVALS_MAX: usize = 300;
/// Points of a spectrum.
const POINTS_MAX: usize = 100;
/// Larger than a histogram that covers a day in ns with three digits and uses every slot.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Classes of equal width per power of two, as bits; each class is at most 25% above the previous one.
const CLASS_BITS: u32 = 2;

/// The contents of a trial's histogram log.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) intervals: Vec<IntervalRecord>,
    pub(super) spectra: Vec<SpectrumRecord>,
    pub(super) missing: Vec<String>,
}

pub(super) fn read(folder: &Path, trial: &Trial) -> Times {
    let mut phases: Vec<Phase<'_>> = trial.phases.iter().filter_map(Phase::new).collect();
    let mut gaps = Gaps::of(FILE);
    let mut decoder = Decoder::new();
    if let Some(mut lines) = gaps.open(&folder.join(FILE), LINE_BYTES_MAX) {
        while let Some(line) = gaps.next(&mut lines) {
            let taken = match IntervalLogIterator::new(line.bytes).next() {
                Some(Ok(LogEntry::Interval(interval))) => take(&mut phases, &interval, &mut decoder),
                Some(Err(_)) => None,
                _ => Some(()),
            };
            if taken.is_none() {
                gaps.damaged(line.number);
            }
        }
    }
    let mut times = Times::default();
    times.missing.extend(gaps.words().filter(|_| gaps.unopened().is_none() || !phases.is_empty()));
    if gaps.unopened().is_none() {
        times.missing.extend(phases.iter().filter_map(Phase::lacks));
    }
    times.spectra = phases.iter().flat_map(Phase::spectra).collect();
    times.intervals = thin(phases);
    times
}

/// When the command was started, derived from the first interval of a phase whose time is known on both clocks.
pub(super) fn started_unix_s(folder: &Path, trial: &Trial) -> Option<f64> {
    let mut gaps = Gaps::of(FILE);
    let mut lines = gaps.open(&folder.join(FILE), LINE_BYTES_MAX)?;
    while let Some(line) = gaps.next(&mut lines) {
        if let Some(Ok(LogEntry::Interval(interval))) = IntervalLogIterator::new(line.bytes).next() {
            let is_its = |phase: &&PhaseRecord| phase.is_sent() && time_of(&tags(phase), &interval).is_some();
            if let Some(phase) = trial.phases.iter().find(is_its) {
                return Some(interval.start_timestamp().as_secs_f64() - phase.at_s);
            }
        }
    }
    None
}

fn tags(record: &PhaseRecord) -> [(Timing, String); 2] {
    [Timing::Service, Timing::Response].map(|time| (time, tagged(&record.name, time.name())))
}

fn time_of(tags: &[(Timing, String)], interval: &IntervalLogHistogram<'_>) -> Option<Timing> {
    let tag = interval.tag()?;
    tags.iter().find(|(_, name)| name == tag.as_str()).map(|(time, _)| *time)
}

/// A phase, as the log is being read.
struct Phase<'a> {
    record: &'a PhaseRecord,
    tags: [(Timing, String); 2],
    /// The timing that represents its responses.
    usual: Timing,
    /// The start of the phase in the log, in seconds since the epoch.
    start_s: Option<f64>,
    intervals: Thinned<IntervalRecord>,
    service: Histogram<u64>,
    response: Histogram<u64>,
}

impl<'a> Phase<'a> {
    /// `None` for a phase that no log contains.
    fn new(record: &'a PhaseRecord) -> Option<Self> {
        // Auto-resizing histograms.
        let (service, response) = (Histogram::new(3).ok()?, Histogram::new(3).ok()?);
        // The log contains only requests that Loadline itself sent.
        record.is_sent().then(|| Self {
            record,
            tags: tags(record),
            usual: if record.is_open() { Timing::Response } else { Timing::Service },
            start_s: None,
            intervals: Thinned::new(2 * INTERVALS_MAX, join),
            service,
            response,
        })
    }

    fn of(&self, time: Timing) -> &Histogram<u64> {
        match time {
            Timing::Service => &self.service,
            Timing::Response => &self.response,
        }
    }

    /// Reports responses that are in the record but missing from the log.
    fn lacks(&self) -> Option<String> {
        let (there, all) = (self.of(self.usual).len(), self.record.ok);
        let name = &self.record.name;
        (there < all)
            .then(|| format!("{FILE}: of {} responses in {name}, it contains only {}", grouped(all), grouped(there)))
    }

    fn spectra(&self) -> Vec<SpectrumRecord> {
        let both = [Timing::Response, Timing::Service].into_iter().filter(|time| !self.of(*time).is_empty());
        both.map(|time| spectrum(&self.record.name, time, self.of(time))).collect()
    }
}

/// Adds an interval; `None` if it is damaged.
fn take(phases: &mut [Phase<'_>], interval: &IntervalLogHistogram<'_>, decoder: &mut Decoder) -> Option<()> {
    // An unknown tag: the trial ended before the phase was recorded.
    let Some((time, phase)) = phases.iter_mut().find_map(|phase| Some((time_of(&phase.tags, interval)?, phase))) else {
        return Some(());
    };
    let at_s = interval.start_timestamp().as_secs_f64();
    let start_s = *phase.start_s.get_or_insert(at_s);
    let mut record = IntervalRecord {
        phase: phase.record.name.clone(),
        at_s: phase.record.at_s + (at_s - start_s),
        seconds: interval.duration().as_secs_f64(),
        ..IntervalRecord::default()
    };
    let mut counts = Vec::new();
    decoder.decode(interval.encoded_histogram(), &mut |value, count| counts.push((value, count)))?;
    let total = if time == Timing::Service { &mut phase.service } else { &mut phase.response };
    for (value, count) in counts {
        total.record_n(value, count).ok()?;
        add(&mut record, class_end(value), count);
    }
    if time == phase.usual {
        phase.intervals.push(record);
    }
    Some(())
}

/// Adds responses of one class; classes arrive in ascending order.
fn add(record: &mut IntervalRecord, end_ns: u64, count: u64) {
    record.ok = record.ok.saturating_add(count);
    let end_ms = end_ns as f64 / 1e6;
    match record.classes.last_mut().filter(|(last, _)| *last == end_ms) {
        Some((_, sum)) => *sum = sum.saturating_add(count),
        None => record.classes.push((end_ms, count)),
    }
}

/// The exclusive end of a value's class, in ns.
fn class_end(ns: u64) -> u64 {
    let Some(bits) = ns.checked_ilog2().and_then(|bits| bits.checked_sub(CLASS_BITS)) else { return ns + 1 };
    ((ns >> bits) + 1) << bits
}

/// Merges a later interval into an earlier one.
fn join(into: &mut IntervalRecord, later: IntervalRecord) {
    into.seconds = into.seconds.max(later.at_s + later.seconds - into.at_s);
    into.ok = into.ok.saturating_add(later.ok);
    for (end_ms, count) in later.classes {
        match into.classes.binary_search_by(|(end, _)| end.total_cmp(&end_ms)) {
            Ok(at) => into.classes[at].1 = into.classes[at].1.saturating_add(count),
            Err(at) => into.classes.insert(at, (end_ms, count)),
        }
    }
}

/// The intervals of all phases, with lengths as uniform as their number allows.
fn thin(phases: Vec<Phase<'_>>) -> Vec<IntervalRecord> {
    let series: Vec<Thinned<IntervalRecord>> = phases.into_iter().map(|phase| phase.intervals).collect();
    let lengths: Vec<(u64, u64)> = series.iter().map(|series| (series.len() as u64, series.group())).collect();
    let kept =
        |width: u64| -> u64 { lengths.iter().map(|(len, group)| len.div_ceil(width.div_ceil(*group).max(1))).sum() };
    let most = lengths.iter().map(|(len, group)| len * group).max().unwrap_or(1).max(1);
    let width = (1..most).find(|width| kept(*width) <= INTERVALS_MAX as u64).unwrap_or(most);
    let mut intervals = Vec::new();
    for (series, (len, group)) in series.into_iter().zip(lengths) {
        let joined = width.div_ceil(group).max(1);
        intervals.extend(series.finish(len.div_ceil(joined) as usize));
    }
    intervals.order_by(|a: &IntervalRecord, b| a.at_s.total_cmp(&b.at_s));
    intervals
}

fn spectrum(phase: &str, time: Timing, histogram: &Histogram<u64>) -> SpectrumRecord {
    let with = |ticks: u32| -> Vec<(f64, f64)> {
        let steps = histogram.iter_quantiles(ticks);
        steps.map(|step| (step.quantile_iterated_to(), step.value_iterated_to() as f64 / 1e6)).collect()
    };
    // With one step per halving of the distance to 1, there are at most 64 points.
    let points = (1..=5).rev().map(with).find(|points| points.len() <= POINTS_MAX).unwrap_or_default();
    SpectrumRecord { phase: phase.to_owned(), time, points, count: histogram.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_classes_are_at_most_a_quarter_wide_without_gaps() {
        for ns in (0..100_000).chain((17..62).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1])) {
            let end = class_end(ns);
            assert!(end > ns && class_end(end - 1) == end, "{ns}: {end}");
            assert!(class_end(end) as f64 <= end as f64 * 1.25 + 1.0, "{ns}");
        }
    }

    #[test]
    fn a_spectrum_rises_to_the_maximum_with_few_points() {
        for count in [1u64, 2, 1000, 3_000_000, 1 << 50] {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            (1..=1000u64).for_each(|n| histogram.record_n(n * 1_000_000, count.div_ceil(1000)).unwrap());
            let found = spectrum("x", Timing::Service, &histogram);
            assert_eq!(found.count, histogram.len());
            assert!((5..=POINTS_MAX).contains(&found.points.len()), "{count}: {}", found.points.len());
            assert!(found.points.is_sorted(), "{:?}", found.points);
            let last = found.points.last().unwrap();
            assert!(last.0 == 1.0 && (last.1 - 1000.0).abs() < 1.0, "{last:?}");
        }
    }

    proptest! {
        #[test]
        fn thinned_intervals_keep_all_responses_in_order(lengths in prop::collection::vec(0usize..900, 1..6)) {
            let records: Vec<PhaseRecord> =
                (0..lengths.len()).map(|n| PhaseRecord { name: n.to_string(), ..PhaseRecord::default() }).collect();
            let mut phases: Vec<Phase<'_>> = records.iter().filter_map(Phase::new).collect();
            let mut at_s = 0.0;
            for (phase, length) in phases.iter_mut().zip(&lengths) {
                for n in 0..*length {
                    let classes = vec![(1.0 + (n % 3) as f64, 2)];
                    let name = phase.record.name.clone();
                    phase.intervals.push(IntervalRecord { phase: name, at_s, seconds: 1.0, ok: 2, classes });
                    at_s += 1.0;
                }
            }
            let intervals = thin(phases);
            prop_assert!(intervals.len() <= INTERVALS_MAX);
            prop_assert!(intervals.is_sorted_by(|a, b| a.at_s + a.seconds <= b.at_s));
            for (n, length) in lengths.iter().enumerate() {
                let its = intervals.iter().filter(|interval| interval.phase == n.to_string());
                prop_assert_eq!(its.clone().map(|interval| interval.ok).sum::<u64>(), 2 * *length as u64);
                prop_assert_eq!(its.clone().map(|interval| interval.seconds).sum::<f64>(), *length as f64);
                let counted = its.flat_map(|interval| &interval.classes).map(|(_, count)| count).sum::<u64>();
                prop_assert_eq!(counted, 2 * *length as u64);
            }
        }
    }
}
