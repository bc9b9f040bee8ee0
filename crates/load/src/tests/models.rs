//! Models: request starts, waiting, draining, and the end of a phase.

use super::*;
use crate::work::{Arrivals, Condition, Rate, Spacing};

fn open(address: SocketAddr, rate: f64, until: Until, pool: Pool) -> Plan {
    let mut plan = plan(address, 1, until);
    plan.work.schedule = at_rate(rate, until, pool);
    plan
}

fn ms(n: u64) -> Span {
    Span(Duration::from_millis(n))
}

#[test]
fn a_stall_delays_all_due_requests_and_drops_none() {
    let server = ScriptedServer::start(|exchange| {
        if exchange.nth == 100 {
            thread::sleep(Duration::from_millis(400));
        }
        exchange.say(OK)
    });
    let mut plan = open(server.address, 500.0, Until::Elapsed(Span::seconds(1)), Pool::fixed(1));
    plan.rows_max = 1000;
    let outcome = drive_lawfully(&plan);
    assert_eq!((outcome.ok, outcome.offered, server.requests()), (500, Some(500), 500));
    let response = outcome.response.as_ref().unwrap();
    assert!(response.value_at_quantile(0.9) >= 100_000_000, "200 of 500 requests waited for the end of the stall");
    assert!(outcome.service.value_at_quantile(0.9) < response.value_at_quantile(0.9));
    assert!(outcome.queued >= 150 && outcome.queue_max >= 150, "{} {}", outcome.queued, outcome.queue_max);
    assert_eq!(outcome.offered_per_s(), Some(500.0));
    let late = outcome.rows.iter().filter(|row| row.started_ns > row.intended_ns + 50_000_000).count();
    assert!(late >= 100, "only {late} rows started later than intended");
    let lag = outcome.lag.unwrap();
    assert!(lag.value_at_quantile(0.5) < 100_000_000, "the server's stall is not generator lag");
}

/// A server that never responds, so a busy machine cannot affect how many requests finish in time.
fn silent() -> ScriptedServer {
    ScriptedServer::start(|exchange| exchange.hang())
}

#[test]
fn unanswered_requests_are_counted_with_their_age() {
    let server = silent();
    let mut plan = open(server.address, 200.0, Until::Elapsed(ms(500)), Pool::fixed(2));
    plan.work.drain = Some(ms(300));
    let outcome = drive_lawfully(&plan);
    assert_eq!((outcome.requests, outcome.ended.clone(), outcome.in_flight), (100, End::Done, 0));
    assert_eq!((outcome.ok, outcome.failures.unanswered), (0, 100));
    // The first one was due immediately, the last one 5 ms before the end.
    assert!(outcome.unanswered.min() >= 300_000_000 && outcome.unanswered.max() >= 790_000_000);
    assert_eq!(outcome.queue_max, 98);
}

#[test]
fn answered_requests_are_not_unanswered() {
    let server = ScriptedServer::start(|exchange| match exchange.nth {
        0..10 => exchange.say(OK),
        _ => exchange.hang(),
    });
    let mut plan = open(server.address, 200.0, Until::Requests(20), Pool::fixed(2));
    // The drain is long enough for the server even on a busy machine.
    plan.work.drain = Some(ms(3000));
    let outcome = drive_lawfully(&plan);
    assert_eq!((outcome.ok, outcome.failures.unanswered, outcome.never_begun), (10, 10, 8));
}

#[test]
fn requests_that_never_began_are_not_counted_for_a_mix_entry() {
    let server = silent();
    let mut plan = open(server.address, 200.0, Until::Elapsed(ms(500)), Pool::fixed(2));
    plan.work.others = vec![Request::new(Method::Get, "/other")];
    (plan.work.drain, plan.rows_max) = (Some(ms(100)), 1000);
    let outcome = drive_lawfully(&plan);
    assert_eq!((outcome.ok, outcome.failures.unanswered), (0, 100));
    // Two were in flight on the two connections; all the others were still waiting for one.
    assert_eq!(outcome.never_begun, 98);
    assert_eq!(outcome.by_request.iter().map(|(_, failed)| failed).sum::<u64>(), 2, "{:?}", outcome.by_request);
    let placeless = outcome.rows.iter().filter(|row| row.request.is_none() && row.connection.is_none());
    assert_eq!(placeless.count(), 98);
}

#[test]
fn a_closed_phase_drains_too() {
    let server = ScriptedServer::start(|exchange| exchange.hang());
    let mut plan = plan(server.address, 3, Until::Elapsed(ms(100)));
    plan.work.drain = Some(ms(100));
    let outcome = drive_lawfully(&plan);
    assert_eq!(failures(&outcome), Failures { unanswered: 3, ..Failures::default() });
    assert!(outcome.unanswered.min() >= 190_000_000);
}

#[test]
fn a_pool_grows_while_requests_wait_up_to_its_maximum() {
    let slow = |exchange: &mut Exchange<'_>| {
        thread::sleep(Duration::from_millis(100));
        exchange.say(OK)
    };
    let server = ScriptedServer::start(slow);
    let pool = Pool { connections: 1, connections_max: 50 };
    let outcome = drive_lawfully(&open(server.address, 100.0, Until::Requests(60), pool));
    assert_eq!(outcome.ok, 60);
    assert!((5..=50).contains(&outcome.connections_asked), "{}", outcome.connections_asked);
    assert_eq!((outcome.connections_opened, outcome.queue_max), (outcome.connections_asked, 0));
    let server = ScriptedServer::start(slow);
    let pool = Pool { connections: 1, connections_max: 3 };
    let outcome = drive_lawfully(&open(server.address, 100.0, Until::Requests(60), pool));
    assert_eq!((outcome.ok, outcome.connections_asked), (60, 3));
    assert!(outcome.queue_max > 5);
}

#[test]
fn an_open_model_uses_all_its_connections() {
    let server = ScriptedServer::start(|exchange| exchange.say(OK));
    let outcome = drive_lawfully(&open(server.address, 200.0, Until::Requests(40), Pool::fixed(10)));
    assert_eq!((outcome.ok, server.connections()), (40, 10));
}

#[test]
fn all_random_and_file_arrivals_begin() {
    let server = ScriptedServer::start(|exchange| exchange.say(OK));
    let mut random = open(server.address, 1.0, Until::Elapsed(ms(300)), Pool::fixed(5));
    let Schedule::Open { arrivals, .. } = &mut random.work.schedule else { panic!() };
    let until = Until::Elapsed(ms(300));
    *arrivals = Arrivals::Rate { rate: Rate::Ramp { from: 0.0, to: 2000.0 }, spacing: Spacing::Poisson, until };
    let outcome = drive_lawfully(&random);
    assert_eq!(Some(outcome.ok), outcome.offered);
    // Five standard deviations of 300.
    assert!((213..387).contains(&outcome.ok), "{}", outcome.ok);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("starts");
    std::fs::write(&file, "0\n0\n0.05\n0.1\n").unwrap();
    let Schedule::Open { arrivals, .. } = &mut random.work.schedule else { panic!() };
    *arrivals = Arrivals::File(file);
    let outcome = drive_lawfully(&random);
    assert_eq!((outcome.ok, outcome.offered), (4, Some(4)));
    assert!(outcome.elapsed_ns >= 100_000_000);
}

#[test]
fn connections_with_a_think_time_pause_between_requests() {
    let server = ScriptedServer::start(|exchange| exchange.say(OK));
    let mut plan = plan(server.address, 2, Until::Elapsed(ms(500)));
    let Schedule::Closed { think, .. } = &mut plan.work.schedule else { panic!() };
    *think = ms(100);
    let outcome = drive_lawfully(&plan);
    assert!((2..=10).contains(&outcome.ok), "{}", outcome.ok);
    assert_eq!((outcome.ended.clone(), server.connections()), (End::Done, 2));
    plan.work.schedule.set_until(Until::Requests(5));
    assert_eq!(drive_lawfully(&plan).ok, 5);
    let Schedule::Closed { think, until, .. } = &mut plan.work.schedule else { panic!() };
    (*think, *until) = (Span::seconds(100), Until::Elapsed(ms(200)));
    assert!(drive_lawfully(&plan).elapsed_ns < 50_000_000_000, "a think time does not delay the end of the phase");
}

#[test]
fn a_stop_condition_ends_the_phase_and_is_named() {
    let server = ScriptedServer::start(|exchange| exchange.say("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"));
    let mut plan = open(server.address, 20.0, Until::Elapsed(Span::seconds(60)), Pool::fixed(2));
    plan.work.stop = vec!["p99>10s".parse::<Condition>().unwrap(), "failed>=10%".parse().unwrap()];
    let outcome = drive_lawfully(&plan);
    assert_eq!(outcome.ended, End::Met("the stop condition failed>=10% was met (100%)".to_owned()));
    assert!(outcome.elapsed_ns < 30_000_000_000);
}

#[test]
fn a_stop_condition_sees_all_threads_together() {
    let server = ScriptedServer::start(|exchange| exchange.say(OK));
    let mut plan = open(server.address, 100.0, Until::Elapsed(Span::seconds(60)), Pool::fixed(4));
    // Each of the two threads achieves half of this rate.
    plan.work.stop = vec!["rate>=80".parse().unwrap()];
    let outcome = drive_threads(&plan, Clock::start(), &Control::default(), 2, &[], &mut |_| {}).unwrap();
    let End::Met(why) = &outcome.ended else { panic!("{outcome:?}") };
    assert!(why.starts_with("the stop condition rate>=80 was met ("), "{why}");
}

#[test]
fn threads_share_the_work_and_their_outcomes_merge_exactly() {
    let server = ScriptedServer::start(|exchange| exchange.say(OK));
    let mut counted = plan(server.address, 5, Until::Requests(1001));
    counted.rows_max = 2000;
    let (mut ok, mut service) = (0, None::<hdrhistogram::Histogram<u64>>);
    let control = Control::default();
    let outcome = drive_threads(&counted, Clock::start(), &control, 3, &[], &mut |interval| {
        ok += interval.ok;
        match &mut service {
            None => service = Some(interval.service.clone()),
            Some(sum) => sum.add(&interval.service).unwrap(),
        }
    })
    .unwrap();
    assert_eq!((outcome.ok, outcome.requests, ok, outcome.threads), (1001, 1001, 1001, 3));
    assert_eq!((server.requests(), server.connections(), outcome.connections_asked), (1001, 5, 5));
    assert_eq!(service.unwrap(), outcome.service);
    assert_eq!((outcome.rows.len(), outcome.service.len()), (1001, 1001));
    assert_eq!((control.ok(), control.failed()), (1001, 0));
    let open = open(server.address, 1000.0, Until::Requests(300), Pool::fixed(4));
    let outcome = drive_threads(&open, Clock::start(), &Control::default(), 2, &[0], &mut |_| {}).unwrap();
    assert_eq!((outcome.ok, outcome.offered, outcome.response.unwrap().len()), (300, Some(300), 300));
}

#[test]
fn a_stop_is_passed_on_to_all_threads() {
    let server = ScriptedServer::start(|exchange| exchange.hang());
    let plan = plan(server.address, 4, Until::Elapsed(Span::seconds(600)));
    let (control, clock) = (Control::default(), Clock::start());
    thread::scope(|scope| {
        let driving = scope.spawn(|| drive_threads(&plan, clock, &control, 2, &[], &mut |_| {}).unwrap());
        wait_until(clock, || server.requests() == 4 && control.open_connections() == 4);
        control.stop();
        let outcome = driving.join().unwrap();
        assert_eq!((outcome.ended, outcome.in_flight), (End::Stopped, 4));
    });
}

#[test]
fn a_thread_that_cannot_begin_ends_the_phase() {
    let mut impossible = plan(NOWHERE, 4, Until::Requests(100));
    impossible.work.request = Request { body: Body::File("/nowhere".into()), ..Request::new(Method::Put, "/") };
    let error = drive_threads(&impossible, Clock::start(), &Control::default(), 2, &[], &mut |_| {}).unwrap_err();
    assert!(error.what.contains("/nowhere"), "{error}");
}
