//! Invariants of every outcome, no matter what the server does.

use loadline::clock::Clock;
use loadline::load::{Control, End, GiveUp, Interval, Outcome, Plan, Row, Target, drive, drive_threads};
use loadline::scenario::{Method, Protocol, Request, Until, Work};

/// More than any test here sends: every request has its row.
const ROWS_MAX: usize = 100_000;

/// This many GET requests for this path.
pub(crate) fn gets(target: Target, path: &str, connections: u32, requests: u64) -> Plan {
    sends(target, Request::new(Method::Get, path), connections, requests)
}

/// This request, this many times.
pub(crate) fn sends(target: Target, request: Request, connections: u32, requests: u64) -> Plan {
    let work = Work::closed(request, connections, Until::Requests(requests));
    Plan { target, give_up: GiveUp::for_work(&work), work, seed: 1, rows_max: ROWS_MAX, rows_failed_max: 0 }
}

/// The sum of the intervals.
#[derive(Default)]
struct Sum {
    ok: u64,
    failed: u64,
    bytes_received: u64,
    service: Option<hdrhistogram::Histogram<u64>>,
    response: Option<hdrhistogram::Histogram<u64>>,
}

impl Sum {
    fn add(&mut self, interval: &Interval) {
        self.ok += interval.ok;
        self.failed += interval.failed;
        self.bytes_received += interval.bytes_received;
        let merge = |sum: &mut Option<hdrhistogram::Histogram<u64>>, other: &hdrhistogram::Histogram<u64>| match sum {
            None => *sum = Some(other.clone()),
            Some(sum) => sum.add(other).unwrap(),
        };
        merge(&mut self.service, &interval.service);
        if let Some(response) = &interval.response {
            merge(&mut self.response, response);
        }
    }
}

/// Drives the plan on this thread, and checks the outcome's invariants.
pub(crate) fn drive_lawfully(plan: &Plan) -> Outcome {
    drive_lawfully_on(plan, 1)
}

/// The same on several threads.
pub(crate) fn drive_lawfully_on(plan: &Plan, threads: u32) -> Outcome {
    let (mut sum, mut spans, control) = (Sum::default(), Vec::new(), Control::default());
    let mut watch = |interval: &Interval| {
        sum.add(interval);
        spans.push((interval.start_ns, interval.end_ns));
    };
    let outcome = match threads {
        1 => drive(plan, Clock::start(), &control, &mut watch),
        _ => drive_threads(plan, Clock::start(), &control, threads, &[], &mut watch),
    }
    .unwrap();
    if threads == 1 {
        assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0), "intervals have a gap or overlap: {spans:?}");
    }
    assert_eq!((control.ok(), control.failed()), (outcome.ok, outcome.failures.total()));
    check_intervals(&outcome, &sum);
    check(plan, &outcome);
    outcome
}

fn check_intervals(outcome: &Outcome, sum: &Sum) {
    assert_eq!((sum.ok, sum.failed), (outcome.ok, outcome.failures.total()), "intervals add up");
    assert_eq!(sum.bytes_received, outcome.bytes_received, "intervals add up");
    assert_eq!(sum.service.as_ref(), Some(&outcome.service), "merged interval histograms equal the total");
    assert_eq!(sum.response, outcome.response, "merged interval histograms equal the total");
}

fn check(plan: &Plan, outcome: &Outcome) {
    let failed = outcome.failures.total();
    assert_eq!(outcome.requests, outcome.ok + failed, "{outcome:?}");
    assert_eq!(outcome.service.len(), outcome.ok, "every correct response is in the histogram");
    assert_eq!(outcome.unanswered.len(), outcome.failures.unanswered);
    assert_eq!(outcome.wrong_statuses.values().sum::<u64>(), outcome.failures.status);
    assert_eq!(outcome.by_request.len(), plan.work.requests().count());
    let by_request = outcome.by_request.iter().fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    let by_request = (by_request.0, by_request.1 + outcome.never_begun);
    assert_eq!(by_request, (outcome.ok, failed), "{:?}", outcome.by_request);
    assert!(outcome.rate_ok <= outcome.ok && outcome.rate_span_ns <= outcome.elapsed_ns.max(outcome.rate_span_ns));
    // In HTTP/2, a connection that ends after GOAWAY overlaps its successor, and has at least one last request.
    let at_once = if plan.work.protocol == Protocol::Http1 { 1 } else { 1 + u64::from(plan.work.protocol.streams()) };
    assert!(outcome.connections_open_max <= at_once * outcome.connections_asked, "{outcome:?}");
    assert!(outcome.connections_open_max <= outcome.connections_opened, "{outcome:?}");
    if let Some(response) = &outcome.response {
        assert_eq!(response.len(), outcome.ok, "every correct response is in the histogram");
        assert!(response.max() >= outcome.service.max().saturating_sub(1), "response time includes service time");
    }
    if let Some(Until::Requests(n)) = plan.work.schedule.until()
        && outcome.ended == End::Done
    {
        assert_eq!(outcome.requests, n, "{outcome:?}");
    }
    if outcome.ended == End::Done {
        assert_eq!(outcome.in_flight, 0, "{outcome:?}");
    }
    check_rows(outcome);
}

fn check_rows(outcome: &Outcome) {
    assert_eq!(outcome.rows.len() as u64, outcome.requests.min(ROWS_MAX as u64), "every request has a row");
    let in_order = |row: &Row| {
        row.intended_ns <= row.started_ns
            && row.started_ns <= row.connected_ns
            && row.connected_ns <= row.ended_ns
            && row.first_byte_ns <= row.ended_ns
    };
    assert!(outcome.rows.iter().all(in_order), "{:?}", outcome.rows.iter().find(|row| !in_order(row)));
    let failed = outcome.rows.iter().filter(|row| row.failure.is_some()).count() as u64;
    assert_eq!(failed, outcome.failures.total(), "the rows include every failure");
}
