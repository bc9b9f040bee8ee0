//! What observing a JVM costs, for benchmarks; each prints one JSON object.
//!
//! `observe added PID`, for `bench/observer.sh`: what reading an idle JVM as a trial does adds to it.
//! `observe tables PID`, for `bench/inside.sh`: what reading HotSpot's own tables takes.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's own output")]

mod added;
mod tables;

use loadline::clock::Clock;
use loadline::observe::Unavailable;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["added", pid] => pid.parse().ok().map(added::observe),
        ["tables", pid] => pid.parse().ok().map(tables::observe),
        _ => None,
    };
    match asked {
        Some(Ok(found)) => {
            println!("{found}");
            ExitCode::SUCCESS
        }
        Some(Err(cause)) => {
            eprintln!("error: {cause}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("usage: observe added|tables PID");
            ExitCode::FAILURE
        }
    }
}

/// Odd, so that the median is one of them.
const READINGS: usize = 101;

/// What each source cost, in the order of first use.
#[derive(Default)]
struct Costs(Vec<(&'static str, Vec<u64>)>);

impl Costs {
    fn add(&mut self, name: &'static str, cost_ns: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, costs)) => costs.push(cost_ns),
            None => self.0.push((name, vec![cost_ns])),
        }
    }

    /// Reads one source again and again.
    fn read<T>(
        &mut self,
        name: &'static str,
        clock: &Clock,
        mut read: impl FnMut() -> Result<T, Unavailable>,
    ) -> Result<(), Unavailable> {
        for _ in 0..READINGS {
            let begin_ns = clock.now_ns();
            read()?;
            self.add(name, clock.now_ns() - begin_ns);
        }
        Ok(())
    }

    /// In microseconds.
    fn medians(mut self) -> Map<String, Value> {
        let median = |costs: &mut Vec<u64>| {
            costs.sort_unstable();
            costs[costs.len() / 2] as f64 / 1e3
        };
        self.0.iter_mut().map(|(name, costs)| ((*name).to_owned(), json!(median(costs)))).collect()
    }
}
