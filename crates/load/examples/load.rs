//! `load HOST:PORT PATH`: sends ten thousand GETs over 25 connections and prints their times.
#![expect(clippy::print_stdout, reason = "a program that prints")]

use loadline_base::clock::Clock;
use loadline_load::work::{Method, Request, Until, Work};
use loadline_load::{Control, GiveUp, Plan, Target, drive};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(host), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: load HOST:PORT PATH".into());
    };
    let work = Work::closed(Request::new(Method::Get, path), 25, Until::Requests(10_000));
    let plan = Plan {
        target: Target::plain(host.parse()?, host),
        give_up: GiveUp::for_work(&work),
        work,
        seed: 1,
        rows_max: 0,
        rows_failed_max: 0,
    };
    let outcome = drive(&plan, Clock::start(), &Control::default(), &mut |_| {}).map_err(|error| error.what)?;
    println!("{:.0} requests/s, {} of {} correct", outcome.achieved_per_s(), outcome.ok, outcome.requests);
    for quantile in [0.5, 0.99, 1.0] {
        println!("p{:<4} {:.2} ms", quantile * 100.0, outcome.service.value_at_quantile(quantile) as f64 / 1e6);
    }
    Ok(())
}
