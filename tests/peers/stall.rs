//! Coordinated omission: a server that is silent for 1 s in every 5, at 500 requests a second. Lower bounds follow from
//! the schedule and hold on any machine. Other programs only add delay, and rarely to every period, so the least
//! delayed period must be close to the truth; `bench/stall.sh` checks how close.

use super::laws::{drive_lawfully, gets};
use loadline::clock::Clock;
use loadline::load::{Failures, Row, Target};
use loadline::scenario::{Arrivals, Pool, Rate, Schedule, Spacing, Until};
use loadline::units::Span;
use loadline_test_support::record;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const PERIOD_MS: u64 = 5000;
/// The silence lies inside a period, so that it begins and ends within the phase.
const SILENT_MS: std::ops::Range<u64> = 2000..3000;
/// A starved engine itself sends late: its lag (p99) was 86 ms on two cores full of other tests.
const LAG_NS_MAX: u64 = 20_000_000;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Accepts this many connections and serves each until closed; time starts with the first request.
fn serve(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (clock, first_ms) = (Clock::start(), Arc::new(AtomicU64::new(u64::MAX)));
    thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let (stream, first_ms) = (stream.unwrap(), Arc::clone(&first_ms));
            // Ends when the client closes.
            thread::spawn(move || answer(stream, clock, &first_ms));
        }
    });
    address
}

fn answer(mut stream: TcpStream, clock: Clock, first_ms: &AtomicU64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // A request arrives in one piece, as it was sent.
    while stream.read(&mut [0; 4096])? > 0 {
        let now_ms = clock.now().as_millis() as u64;
        let start_ms = first_ms.fetch_min(now_ms, SeqCst).min(now_ms);
        let into_ms = (now_ms - start_ms) % PERIOD_MS;
        if SILENT_MS.contains(&into_ms) {
            // Whole milliseconds round down, so the silence is never too short.
            thread::sleep(Duration::from_millis(SILENT_MS.end - into_ms));
        }
        stream.write_all(ANSWER)?;
    }
    Ok(())
}

/// Response times of the requests due in one period.
#[derive(Debug)]
struct Period {
    /// Those above 20 ms.
    late: usize,
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

fn periods(rows: &[Row]) -> Vec<Period> {
    let first_ns = rows.iter().map(|row| row.intended_ns).min().unwrap();
    let mut times: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for row in rows {
        let period = (row.intended_ns - first_ns) / (PERIOD_MS * 1_000_000);
        times.entry(period).or_default().push((row.ended_ns - row.intended_ns) as f64 / 1e6);
    }
    let of = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let late = times.iter().filter(|ms| **ms > 20.0).count();
        Period { late, p50_ms: at(0.5), p90_ms: at(0.9), p99_ms: at(0.99), max_ms: at(1.0) }
    };
    times.into_values().map(of).collect()
}

#[test]
fn a_stall_shows_in_every_request_it_delayed() {
    let (rate, seconds, connections) = (500, 20, 25);
    let requests = rate * seconds;
    let target = Target::plain(serve(connections), "localhost");
    let mut plan = gets(target, "/", 1, 1);
    let until = Until::Elapsed(Span::seconds(seconds));
    let arrivals = Arrivals::Rate { rate: Rate::Constant(rate as f64), spacing: Spacing::Even, until };
    plan.work.schedule = Schedule::Open { arrivals, pool: Pool::fixed(connections as u32) };
    let outcome = drive_lawfully(&plan);
    let response = outcome.response.as_ref().unwrap();
    let ms = |quantile: f64| response.value_at_quantile(quantile) as f64 / 1e6;
    let lag = outcome.lag.as_ref().unwrap();
    eprintln!(
        "response time: p50 {:.1}, p90 {:.1}, p99 {:.1}, max {:.1} ms (truth: < 1, 500, 950, 1000); lag p99 {:.3} ms",
        ms(0.5),
        ms(0.9),
        ms(0.99),
        ms(1.0),
        lag.value_at_quantile(0.99) as f64 / 1e6
    );
    assert_eq!((outcome.ok, outcome.requests, outcome.offered), (requests, requests, Some(requests)));
    assert_eq!(outcome.failures, Failures::default());
    assert_eq!(outcome.connections_opened, connections as u64);
    // 2,000 of 10,000 are evenly due in silence and wait for its end, so 1,000 wait for at least half of it. One
    // millisecond allows for the server's rounding, two for the interval between requests.
    assert!(ms(0.9) >= 490.0 && ms(0.99) >= 940.0 && ms(1.0) >= 996.0, "{}, {}, {} ms", ms(0.9), ms(0.99), ms(1.0));
    let periods = periods(&outcome.rows);
    eprintln!("periods: {periods:?}");
    // Among the 500 requests due in silence, those of the last 20 ms wait no longer than that.
    assert!(periods.iter().all(|period| (480..).contains(&period.late)), "{periods:?}");
    // Of these requests, all but those that found one of the 25 connections free waited for a connection.
    assert!(outcome.queued >= 4 * 400, "all but a few requests waited for a connection: {}", outcome.queued);
    // Upper bounds assume that the engine was on time, which its own lag shows.
    if lag.value_at_quantile(0.99) > LAG_NS_MAX {
        return record("CPU=idle", "the engine itself sent late, so only the lower bounds were checked");
    }
    let least = |of: fn(&Period) -> f64| periods.iter().map(of).fold(f64::INFINITY, f64::min);
    assert!(least(|period| period.late as f64) <= 510.0, "{periods:?}");
    assert!(least(|period| period.p50_ms) < 5.0 && least(|period| period.max_ms) < 1020.0, "{periods:?}");
    assert!(least(|period| period.p90_ms) < 520.0 && least(|period| period.p99_ms) < 970.0, "{periods:?}");
    assert!(outcome.queued <= outcome.requests / 2, "too many requests waited: {}", outcome.queued);
}
