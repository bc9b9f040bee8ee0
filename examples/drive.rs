//! The load engine alone, for `bench/load.sh`: `drive URL CONNECTIONS SECONDS [close]` prints one JSON object.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's own output")]

use loadline::clock::Clock;
use loadline::error::{Error, Result};
use loadline::load::{Control, GiveUp, Outcome, Plan, Target, drive};
use loadline::scenario::{Method, Request, Until, Work, defaults};
use loadline::units::Span;
use std::net::ToSocketAddrs;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match plan(&arguments).and_then(|plan| drive(&plan, Clock::start(), &Control::default(), &mut |_| {})) {
        Ok(outcome) => {
            println!("{}", json(&outcome));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn plan(arguments: &[String]) -> Result<Plan> {
    let usage = || Error::request("usage: drive http://HOST:PORT/PATH CONNECTIONS SECONDS [close]");
    let [url, connections, seconds, rest @ ..] = arguments else { return Err(usage()) };
    let (host, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).ok_or_else(usage)?;
    let mut addresses = host.to_socket_addrs().map_err(|_| usage())?;
    let address = addresses.next().ok_or_else(usage)?;
    let connections = connections.parse().map_err(|_| usage())?;
    let until = Until::Elapsed(seconds.parse::<Span>().map_err(|_| usage())?);
    let mut work = Work::closed(Request::new(Method::Get, format!("/{path}")), connections, until);
    work.keep_alive = rest.is_empty();
    let (give_up, target) = (GiveUp::for_work(&work), Target::plain(address, host));
    Ok(Plan { target, give_up, work, seed: defaults::SEED, rows_max: 0 })
}

fn json(outcome: &Outcome) -> serde_json::Value {
    let ms = |quantile| outcome.service.value_at_quantile(quantile) as f64 / 1e6;
    serde_json::json!({
        "requests": outcome.requests,
        "ok": outcome.ok,
        "failed": outcome.failures.total(),
        "achieved_per_s": outcome.achieved_per_s().round(),
        "cpu_us_per_request": outcome.cpu_ns as f64 / 1e3 / outcome.requests.max(1) as f64,
        "service_ms": {"p50": ms(0.5), "p99": ms(0.99), "max": ms(1.0)},
        "connections_opened": outcome.connections_opened,
        "rss_kib_peak": rss_kib_peak(),
        "ended": format!("{:?}", outcome.ended),
    })
}

/// The high-water mark of this process; `None` where the kernel does not tell.
fn rss_kib_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
