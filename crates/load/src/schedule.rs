//! The intended starts of requests. The engine calls only [`Arrivals::next`], whenever a connection is free, and does
//! not know the model. Arrivals are drawn one by one from a [`Cursor`] of a few words. Waiting arrivals need no queue:
//! a second cursor follows the clock and counts them.

use crate::work::{self, Rate, Schedule, Spacing, Until};
use loadline_base::bounded;
use loadline_base::error::{Error, Result};
use loadline_base::numbers::SplitMix64;
use std::path::Path;
use std::sync::Arc;

/// About 20 million starts; their parsed times take the same amount of memory again.
const STARTS_BYTES_MAX: u64 = 256 << 20;

/// The answer to "may a request start now?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Start a request that was meant to start at `intended_ns` (now or earlier).
    Due { intended_ns: u64 },
    /// No start is due before this time.
    At(u64),
    /// No more starts.
    Done,
}

/// One thread's share of a phase's arrivals and connections: those whose number is `index` modulo `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) index: u64,
    pub(super) count: u64,
}

impl Share {
    /// Everything.
    pub(super) const WHOLE: Self = Self { index: 0, count: 1 };

    /// How many of the numbers below `total` belong to it.
    pub(super) fn of(self, total: u64) -> u64 {
        total / self.count + u64::from(self.index < total % self.count)
    }
}

/// The arrivals of a phase, or one thread's share of them.
#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    model: Model,
    /// Arrivals taken.
    begun: u64,
    requests_max: u64,
    end_ns: u64,
    last_due_ns: u64,
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one for each phase and thread")]
enum Model {
    /// The next request starts when a connection is free.
    Closed,
    Open {
        start_ns: u64,
        taken: Cursor,
        due: Cursor,
        due_count: u64,
    },
}

/// A place in the sequence of planned starts.
#[derive(Debug, Clone)]
struct Cursor {
    source: ArrivalSource,
    share: Share,
    /// Nanoseconds since the start of the phase; `None` after the last.
    next: Option<u64>,
}

#[derive(Debug, Clone)]
enum ArrivalSource {
    /// A request starts when the integral of the rate reaches `reached`: 0, 1, 2, … or, at random, the sum of
    /// exponential gaps. So every rate supports both spacings.
    Rate {
        rate: Rate,
        seconds: f64,
        reached: f64,
        random: Option<SplitMix64>,
        until: Until,
        number: u64,
    },
    File {
        starts_ns: Arc<[u64]>,
        number: u64,
    },
}

impl Arrivals {
    /// A share of a schedule's arrivals; [`Arrivals::start`] sets when it begins. Errors: `Request` if the file of
    /// starts cannot be read or parsed.
    pub(super) fn of(schedule: &Schedule, seed: u64, share: Share) -> Result<Self> {
        match schedule {
            Schedule::Closed { until, .. } => {
                let (requests_max, end_ns) = match until {
                    Until::Requests(requests) => (share.of(*requests), u64::MAX),
                    Until::Elapsed(span) => (u64::MAX, nanoseconds(span.0)),
                };
                Ok(Self { model: Model::Closed, begun: 0, requests_max, end_ns, last_due_ns: 0 })
            }
            Schedule::Open { arrivals, .. } => {
                let (source, requests, length_ns) = ArrivalSource::of(arrivals, seed)?;
                let cursor = Cursor::first(source, share);
                let model = Model::Open { start_ns: 0, taken: cursor.clone(), due: cursor, due_count: 0 };
                Ok(Self { model, begun: 0, requests_max: share.of(requests), end_ns: length_ns, last_due_ns: 0 })
            }
        }
    }

    pub(super) fn start(&mut self, at_ns: u64) {
        if let Model::Open { start_ns, .. } = &mut self.model {
            *start_ns = at_ns;
        }
        self.end_ns = self.end_ns.saturating_add(at_ns);
    }

    /// Takes the next arrival if it is due.
    #[inline]
    pub(super) fn next(&mut self, now_ns: u64) -> Arrival {
        match &mut self.model {
            Model::Closed => {
                if self.begun >= self.requests_max || now_ns >= self.end_ns {
                    return Arrival::Done;
                }
                self.begun += 1;
                Arrival::Due { intended_ns: now_ns }
            }
            Model::Open { start_ns, taken, .. } => match taken.next {
                None => Arrival::Done,
                Some(next) if *start_ns + next > now_ns => Arrival::At(*start_ns + next),
                Some(next) => {
                    let intended_ns = *start_ns + next;
                    taken.step();
                    self.begun += 1;
                    Arrival::Due { intended_ns }
                }
            },
        }
    }

    /// Prevents any further arrivals.
    pub(super) fn close(&mut self) {
        self.requests_max = self.begun;
        if let Model::Open { taken, .. } = &mut self.model {
            taken.next = None;
        }
    }

    /// Whether no arrival is left.
    pub(super) fn are_over(&self, now_ns: u64) -> bool {
        match &self.model {
            Model::Closed => self.begun >= self.requests_max || now_ns >= self.end_ns,
            Model::Open { taken, .. } => taken.next.is_none(),
        }
    }

    /// How many are due but not yet taken; 0 in a closed model.
    pub(super) fn waiting(&mut self, now_ns: u64) -> u64 {
        match &mut self.model {
            Model::Closed => 0,
            Model::Open { start_ns, due, due_count, .. } => {
                while let Some(next) = due.next.filter(|next| *start_ns + *next <= now_ns) {
                    self.last_due_ns = *start_ns + next;
                    due.step();
                    *due_count += 1;
                }
                *due_count - self.begun
            }
        }
    }

    /// When the last arrival came due, if it has; `None` in a closed model.
    pub(super) fn all_due_at(&mut self, now_ns: u64) -> Option<u64> {
        self.waiting(now_ns);
        match &self.model {
            Model::Open { due: Cursor { next: None, .. }, .. } => Some(self.end_ns.max(self.last_due_ns)),
            _ => None,
        }
    }

    /// How many starts the plan has scheduled up to now; `None` in a closed model.
    pub(super) fn offered(&mut self, now_ns: u64) -> Option<u64> {
        self.waiting(now_ns);
        match &self.model {
            Model::Closed => None,
            Model::Open { due_count, .. } => Some(*due_count),
        }
    }

    /// Whether the plan sets the intended start, in which case response time differs from service time.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.model, Model::Closed)
    }

    /// The planned end; `u64::MAX` if a count ends the phase.
    pub(super) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Maximum number of starts; `u64::MAX` if time ends the phase.
    pub(super) fn requests_max(&self) -> u64 {
        self.requests_max
    }
}

impl Cursor {
    fn first(source: ArrivalSource, share: Share) -> Self {
        let mut cursor = Self { source, share, next: None };
        cursor.next = cursor.source.draw();
        for _ in 0..share.index {
            cursor.next = cursor.next.and_then(|_| cursor.source.draw());
        }
        cursor
    }

    /// Advances to the next start of its share.
    fn step(&mut self) {
        for _ in 0..self.share.count {
            self.next = self.next.and_then(|_| self.source.draw());
        }
    }
}

impl ArrivalSource {
    /// The source, its maximum number of starts, and its planned length in nanoseconds.
    fn of(arrivals: &work::Arrivals, seed: u64) -> Result<(Self, u64, u64)> {
        match arrivals {
            work::Arrivals::Rate { rate, spacing, until } => {
                let random = (*spacing == Spacing::Poisson).then(|| SplitMix64::new(seed));
                let (requests, seconds) = match until {
                    Until::Requests(requests) => (*requests, *requests as f64 / rate.mean()),
                    Until::Elapsed(span) => (u64::MAX, span.as_s()),
                };
                // The first random start is not at the beginning.
                let (mut random, mut reached) = (random, 0.0);
                if let Some(random) = &mut random {
                    reached = random.exponential();
                }
                let source = Self::Rate { rate: *rate, seconds, reached, random, until: *until, number: 0 };
                Ok((source, requests, (seconds * 1e9).round() as u64))
            }
            work::Arrivals::File(path) => {
                let starts_ns = read_starts(path)?;
                let requests = starts_ns.len() as u64;
                let last_ns = starts_ns.last().copied().unwrap_or(0);
                // The last start gets its share of the time, like the others.
                let length_ns = match requests {
                    0 | 1 => last_ns + 1_000_000_000,
                    n => last_ns + (last_ns / (n - 1)).max(1),
                };
                Ok((Self::File { starts_ns: starts_ns.into(), number: 0 }, requests, length_ns))
            }
        }
    }

    /// The next start in nanoseconds since the beginning.
    fn draw(&mut self) -> Option<u64> {
        match self {
            Self::Rate { rate, seconds, reached, random, until, number } => {
                let at_s = when(rate, *seconds, *reached)?;
                match until {
                    Until::Requests(requests) if *number >= *requests => return None,
                    Until::Elapsed(_) if at_s >= *seconds => return None,
                    _ => {}
                }
                *number += 1;
                match random {
                    Some(random) => *reached += random.exponential(),
                    // Computed from the number, because sums of many small steps drift.
                    None => *reached = *number as f64,
                }
                Some((at_s * 1e9).round() as u64)
            }
            Self::File { starts_ns, number } => {
                let start = starts_ns.get(*number as usize).copied();
                *number += 1;
                start
            }
        }
    }
}

/// When the integral of the rate reaches `reached`, in seconds; `None` if it never does.
fn when(rate: &Rate, seconds: f64, reached: f64) -> Option<f64> {
    match *rate {
        Rate::Constant(rate) => Some(reached / rate),
        Rate::Ramp { from, to } => on_ramp(from, to, seconds, reached),
        Rate::Staircase { from, to, steps } => {
            let (step_s, height) = (seconds / f64::from(steps), (to - from) / f64::from(steps - 1));
            let mut before = 0.0;
            for step in 0..steps {
                let rate = from + height * f64::from(step);
                if reached < before + rate * step_s {
                    return Some(f64::from(step) * step_s + (reached - before) / rate);
                }
                before += rate * step_s;
            }
            None
        }
    }
}

/// Solves `from·t + (to − from)·t²/(2·seconds) = reached` for t, in the form without cancellation.
fn on_ramp(from: f64, to: f64, seconds: f64, reached: f64) -> Option<f64> {
    if reached == 0.0 {
        return Some(0.0);
    }
    let slope = (to - from) / seconds;
    let root = from * from + 2.0 * slope * reached;
    // A falling rate may never reach it.
    (root >= 0.0).then(|| 2.0 * reached / (from + root.sqrt()))
}

/// One start per line, in ascending decimal seconds; skips empty lines and those that begin with `#`.
fn read_starts(path: &Path) -> Result<Vec<u64>> {
    let text = bounded::text_named(path, STARTS_BYTES_MAX).map_err(|cause| {
        Error::request(format!("cannot read the schedule {}: {}", path.display(), loadline_base::error::plain(&cause)))
    })?;
    const FORM: &str = "write one start time per line, in seconds from the beginning of the phase, such as `0.125`";
    let mut starts_ns = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let refuse =
            |why: &str| Error::request(format!("line {} of {}: `{line}` {why}", number + 1, path.display())).hint(FORM);
        // At most a year, as for every span.
        let seconds: Option<f64> = line.parse().ok().filter(|seconds| (0.0..=31_536_000.0).contains(seconds));
        let start_ns = (seconds.ok_or_else(|| refuse("is not a number of seconds"))? * 1e9).round() as u64;
        if starts_ns.last().is_some_and(|last| *last > start_ns) {
            return Err(refuse("is earlier than the previous line"));
        }
        starts_ns.push(start_ns);
    }
    if starts_ns.is_empty() {
        return Err(Error::request(format!("the schedule {} has no start times", path.display())).hint(FORM));
    }
    Ok(starts_ns)
}

/// A span in nanoseconds, up to 584 years.
pub(super) fn nanoseconds(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Pool;
    use loadline_base::units::Span;
    use proptest::prelude::*;

    fn open(rate: Rate, spacing: Spacing, until: Until) -> Schedule {
        let arrivals = work::Arrivals::Rate { rate, spacing, until };
        Schedule::Open { arrivals, pool: Pool::fixed(1) }
    }

    fn started(schedule: &Schedule, start_ns: u64, seed: u64, share: Share) -> Arrivals {
        let mut arrivals = Arrivals::of(schedule, seed, share).unwrap();
        arrivals.start(start_ns);
        arrivals
    }

    /// All starts of a share, in nanoseconds since the beginning.
    fn starts_of(schedule: &Schedule, seed: u64, share: Share) -> Vec<u64> {
        let mut arrivals = started(schedule, 1000, seed, share);
        let mut starts = Vec::new();
        while let Arrival::Due { intended_ns } = arrivals.next(u64::MAX) {
            starts.push(intended_ns - 1000);
        }
        assert_eq!(arrivals.offered(u64::MAX), Some(starts.len() as u64));
        starts
    }

    fn starts(schedule: &Schedule) -> Vec<u64> {
        starts_of(schedule, 1, Share::WHOLE)
    }

    #[test]
    fn closed_arrivals_are_always_due() {
        let closed = |until| {
            let schedule = Schedule::Closed { connections: 1, until, think: Span::default() };
            started(&schedule, 1000, 1, Share::WHOLE)
        };
        let mut counted = closed(Until::Requests(2));
        assert_eq!(counted.next(1005), Arrival::Due { intended_ns: 1005 });
        assert_eq!(counted.next(1007), Arrival::Due { intended_ns: 1007 });
        assert_eq!(counted.next(1008), Arrival::Done);
        let mut timed = closed(Until::Elapsed(Span::seconds(1)));
        assert_eq!(timed.next(1_000_000_999), Arrival::Due { intended_ns: 1_000_000_999 });
        assert_eq!(timed.next(1_000_001_000), Arrival::Done);
        assert_eq!((timed.waiting(9), timed.offered(9)), (0, None));
    }

    #[test]
    fn late_arrivals_keep_their_intended_start() {
        let schedule = open(Rate::Constant(1e8), Spacing::Even, Until::Requests(3));
        let mut constant = started(&schedule, 100, 1, Share::WHOLE);
        assert_eq!(constant.next(95), Arrival::At(100));
        assert_eq!(constant.next(95), Arrival::At(100), "a peek does not consume the arrival");
        assert_eq!(constant.waiting(111), 2);
        assert_eq!(constant.next(500), Arrival::Due { intended_ns: 100 });
        assert_eq!(constant.next(500), Arrival::Due { intended_ns: 110 });
        assert_eq!((constant.waiting(119), constant.waiting(500)), (0, 1));
        assert_eq!(constant.next(115), Arrival::At(120));
        assert_eq!(constant.next(120), Arrival::Due { intended_ns: 120 });
        assert_eq!(constant.next(120), Arrival::Done);
        assert_eq!(constant.end_ns(), 130);
    }

    #[test]
    fn a_rate_and_a_time_give_an_exact_count() {
        let count = |rate, seconds| starts(&open(rate, Spacing::Even, Until::Elapsed(Span::seconds(seconds)))).len();
        assert_eq!(count(Rate::Constant(500.0), 20), 10_000);
        assert_eq!(count(Rate::Constant(3.0), 7), 21);
        assert_eq!(count(Rate::Ramp { from: 100.0, to: 300.0 }, 10), 2000);
        assert_eq!(count(Rate::Ramp { from: 300.0, to: 100.0 }, 10), 2000);
        assert_eq!(count(Rate::Ramp { from: 0.0, to: 10.0 }, 10), 50);
        assert_eq!(count(Rate::Staircase { from: 100.0, to: 300.0, steps: 3 }, 6), 1200);
    }

    #[test]
    fn ramps_and_staircases_follow_their_rate() {
        let seconds = |starts: &[u64], from: f64, to: f64| {
            starts.iter().filter(|ns| (from..to).contains(&(**ns as f64 / 1e9))).count()
        };
        let until = Until::Elapsed(Span::seconds(10));
        let ramp = starts(&open(Rate::Ramp { from: 0.0, to: 1000.0 }, Spacing::Even, until));
        assert_eq!(seconds(&ramp, 0.0, 5.0), 1250);
        let stairs = starts(&open(Rate::Staircase { from: 100.0, to: 200.0, steps: 2 }, Spacing::Even, until));
        assert_eq!((seconds(&stairs, 0.0, 5.0), seconds(&stairs, 5.0, 10.0)), (500, 1000));
        assert!(stairs.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_closed_schedule_starts_no_request_and_keeps_its_offered_count() {
        let until = Until::Elapsed(Span::seconds(10));
        let closed = Schedule::Closed { connections: 1, until, think: Span::default() };
        for (schedule, offered) in [(open(Rate::Constant(1.0), Spacing::Even, until), Some(3)), (closed, None)] {
            let mut arrivals = started(&schedule, 0, 1, Share::WHOLE);
            assert!(matches!(arrivals.next(0), Arrival::Due { .. }));
            arrivals.close();
            assert_eq!((arrivals.next(2_000_000_000), arrivals.are_over(0)), (Arrival::Done, true));
            assert_eq!(arrivals.offered(2_000_000_000), offered);
        }
    }

    #[test]
    fn random_arrivals_follow_rate_spread_and_seed() {
        let schedule = open(Rate::Constant(1000.0), Spacing::Poisson, Until::Elapsed(Span::seconds(100)));
        let drawn = starts(&schedule);
        // Five standard deviations of 100,000.
        assert!((98_400..101_600).contains(&drawn.len()), "{}", drawn.len());
        let gaps: Vec<f64> = drawn.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((deviation / mean - 1.0).abs() < 0.03, "{mean} {deviation}");
        assert_eq!(drawn, starts(&schedule));
        assert_ne!(drawn, starts_of(&schedule, 2, Share::WHOLE));
    }

    #[test]
    fn a_bad_file_is_rejected_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("starts");
        let schedule = Schedule::Open { arrivals: work::Arrivals::File(path.clone()), pool: Pool::fixed(1) };
        let refused = |text: &str, why: &str| {
            std::fs::write(&path, text).unwrap();
            let error = Arrivals::of(&schedule, 1, Share::WHOLE).unwrap_err();
            assert!(error.what.contains(why), "{error}");
        };
        refused("0.1\nx\n", "line 2");
        refused("# one\n\n0.2\n0.1\n", "line 4");
        refused("-1\n", "not a number of seconds");
        refused("# none\n", "has no start");
        std::fs::write(&path, "# seconds\n0\n0.5\n0.5\n 2.25 \n").unwrap();
        assert_eq!(starts(&schedule), [0, 500_000_000, 500_000_000, 2_250_000_000]);
        std::fs::remove_file(&path).unwrap();
        let error = Arrivals::of(&schedule, 1, Share::WHOLE).unwrap_err();
        assert!(error.what.contains("cannot read the schedule"), "{error}");
    }

    proptest! {
        #[test]
        fn schedules_of_all_threads_add_up_to_the_total(
            from in 1.0..2000.0f64, to in 1.0..2000.0f64, steps in 2u32..9, kind in 0..3u8, random: bool,
            threads in 1u64..5, counted: bool,
        ) {
            let rate = match kind {
                0 => Rate::Constant(from),
                1 => Rate::Ramp { from, to },
                _ => Rate::Staircase { from, to, steps },
            };
            let until = match kind {
                0 if counted => Until::Requests(500),
                _ => Until::Elapsed(Span::seconds(1)),
            };
            let schedule = open(rate, if random { Spacing::Poisson } else { Spacing::Even }, until);
            let whole = starts(&schedule);
            prop_assert!(whole.windows(2).all(|pair| pair[0] <= pair[1]));
            if kind == 0 && counted {
                prop_assert_eq!(whole.len(), 500);
            } else {
                prop_assert!(whole.iter().all(|ns| *ns <= 1_000_000_000));
            }
            let mut merged: Vec<u64> = (0..threads)
                .flat_map(|index| starts_of(&schedule, 1, Share { index, count: threads }))
                .collect();
            merged.sort_unstable();
            prop_assert_eq!(merged, whole);
        }

        #[test]
        fn counts_are_divided_without_remainder(total in 0u64..10_000, count in 1u64..9) {
            prop_assert_eq!((0..count).map(|index| Share { index, count }.of(total)).sum::<u64>(), total);
        }
    }
}
