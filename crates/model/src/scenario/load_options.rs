//! Applies load options to the phases of a file, or to the default phases.

use super::load_settings::{LoadOptions, Warmup};
use super::{
    Arrivals, ExpectStatus, Phase, PhaseKind, Pool, Protocol, Request, Schedule, Spacing, Until, WARMUP, Work, defaults,
};
use crate::error::{Error, Result};
use std::path::Path;

fn works(load: &mut [Phase]) -> impl Iterator<Item = (&str, &mut Work)> {
    load.iter_mut().filter_map(|phase| Some((phase.name.as_str(), phase.kind.work_mut()?)))
}

fn requests(work: &mut Work) -> impl Iterator<Item = &mut Request> {
    std::iter::once(&mut work.request).chain(&mut work.others)
}

/// Replaces the phases' paths with a URL's. Errors: `Request` if a phase has several requests, which their paths
/// distinguish.
pub(super) fn change_paths(load: &mut [Phase], path: &str) -> Result<()> {
    for (name, work) in works(load) {
        if !work.others.is_empty() {
            return Err(Error::request(format!(
                "the URL has the path `{path}`, but the phase {name} has several requests"
            ))
            .hint("remove the path from the URL"));
        }
        path.clone_into(&mut work.request.path);
    }
    Ok(())
}

/// Applies options to the phases; the warm-up comes last, because it copies the first measured one. Errors: `Request`
/// for an option that does not fit a phase.
pub(super) fn change_phases(load: &mut Vec<Phase>, typed: &LoadOptions) -> Result<()> {
    for (name, work) in works(load) {
        change_work(work, typed).map_err(|error| error.at(format!("phase: {name}")))?;
    }
    change_warmup(load, typed.warmup)
}

fn change_work(work: &mut Work, typed: &LoadOptions) -> Result<()> {
    change_schedule(work, typed)?;
    work.keep_alive &= !typed.close;
    if typed.http2 {
        work.protocol = Protocol::Http2 { streams: typed.streams.unwrap_or(1) };
    }
    requests(work).try_for_each(|request| typed.phase.apply_to(request, Path::new("")))?;
    if let Some(status) = typed.phase.status() {
        requests(work).for_each(|request| request.checks.status = None);
        work.expect = ExpectStatus::Exactly(status);
    }
    typed.phase.apply(work);
    Ok(())
}

/// `--rate` and `--schedule` make a phase open; it keeps its connections and end.
fn change_schedule(work: &mut Work, typed: &LoadOptions) -> Result<()> {
    let until = typed.requests.map(Until::Requests).or(typed.duration.map(Until::Elapsed));
    if typed.duration.is_some_and(|duration| duration.0.is_zero()) {
        return Err(Error::request("`--duration` must be greater than 0"));
    }
    let pool = |schedule: &Schedule| match schedule {
        Schedule::Open { pool, .. } => *pool,
        Schedule::Closed { connections, .. } => Pool::fixed(*connections),
    };
    if let Some(rate) = typed.rate {
        let until = work.schedule.until().unwrap_or(Until::Elapsed(defaults::DURATION));
        let spacing = match &work.schedule {
            Schedule::Open { arrivals: Arrivals::Rate { spacing, .. }, .. } => *spacing,
            _ => Spacing::Even,
        };
        let arrivals = Arrivals::Rate { rate, spacing, until };
        work.schedule = Schedule::Open { arrivals, pool: pool(&work.schedule) };
    }
    if let Some(file) = &typed.schedule {
        work.schedule = Schedule::Open { arrivals: Arrivals::File(file.clone()), pool: pool(&work.schedule) };
    }
    if let Some(connections) = typed.connections {
        work.schedule.set_connections(connections);
    }
    if let Some(until) = until {
        if work.schedule.until().is_none() {
            return Err(Error::request("a schedule file ends the phase, so a count or a time has no effect")
                .hint("remove `--requests` and `--duration`, or specify a `--rate`"));
        }
        work.schedule.set_until(until);
    }
    change_pool(&mut work.schedule, typed.connections_max)?;
    change_spacing(&mut work.schedule, typed)
}

fn change_pool(schedule: &mut Schedule, connections_max: Option<u32>) -> Result<()> {
    let Some(most) = connections_max else { return Ok(()) };
    match schedule {
        Schedule::Closed { .. } => Err(Error::request(
            "`--connections-max` works only with an open model, in \
             which requests can wait",
        )
        .hint("specify a rate (`--rate 500`), or the number of connections (`--connections`)")),
        Schedule::Open { pool, .. } if most < pool.connections => Err(Error::request(format!(
            "`--connections-max` is {most}, fewer than the {} connections to start with",
            pool.connections
        ))
        .hint("lower `--connections`, or raise `--connections-max`")),
        Schedule::Open { pool, .. } => {
            pool.connections_max = most;
            Ok(())
        }
    }
}

/// `--poisson` and `--think` each apply to one model.
fn change_spacing(schedule: &mut Schedule, typed: &LoadOptions) -> Result<()> {
    if typed.poisson {
        let Schedule::Open { arrivals: Arrivals::Rate { spacing, .. }, .. } = schedule else {
            return Err(Error::request("`--poisson` needs a rate, but none was given").hint("add one: `--rate 500`"));
        };
        *spacing = Spacing::Poisson;
    }
    if let Some(span) = typed.think {
        let Schedule::Closed { think, .. } = schedule else {
            return Err(Error::request(
                "`--think` works only with a closed model; in an open one, requests start \
                 on schedule",
            )
            .hint("remove it, or lower the rate"));
        };
        *think = span;
    }
    Ok(())
}

/// Adds a copy of the first measured phase, possibly with a different end, as the warm-up, or removes the warm-up.
fn change_warmup(load: &mut Vec<Phase>, typed: Option<Warmup>) -> Result<()> {
    let Some(warmup) = typed else { return Ok(()) };
    load.retain(|phase| !phase.is_warmup());
    let Some(mut work) = works(load).next().map(|(_, work)| work.clone()).filter(|_| warmup != Warmup::None) else {
        return Ok(());
    };
    let until = match warmup {
        Warmup::Requests(requests) => Some(Until::Requests(requests)),
        Warmup::Elapsed(span) => Some(Until::Elapsed(span)),
        Warmup::Same | Warmup::None | Warmup::Steady(_) => None,
    };
    if let Some(until) = until {
        if work.schedule.until().is_none() {
            return Err(Error::request("a schedule file cannot be shortened to a warm-up")
                .hint("use `--warmup same`, or `--warmup none`"));
        }
        work.schedule.set_until(until);
    }
    let mut phase = Phase::new(WARMUP, PhaseKind::Work(work));
    if let Warmup::Steady(within) = warmup {
        phase.ends_when_steady(Some(within));
    }
    load.insert(0, phase);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::load_settings::{typed, usual_work};
    use super::super::{Body, Method, validate_load};
    use super::*;
    use crate::units::Span;

    fn load(words: &str) -> Result<Vec<Phase>> {
        let work = usual_work(Request::new(Method::Get, "/"));
        let mut load = vec![Phase::new("steady", PhaseKind::Work(work))];
        change_phases(&mut load, &typed(words))?;
        validate_load(&load)?;
        Ok(load)
    }

    fn schedule(words: &str) -> String {
        load(words).unwrap()[0].kind.work().unwrap().schedule.to_string()
    }

    #[test]
    fn a_rate_makes_the_model_open_and_keeps_connections_and_end() {
        assert_eq!(schedule(""), "closed, 25 connections, 10s");
        assert_eq!(schedule("--think 5ms -n 9"), "closed, 25 connections, think time 5ms, 9 requests");
        assert_eq!(schedule("--rate 500"), "open, 500/s, 10s, 25 connections");
        assert_eq!(schedule("--rate 1k --poisson -n 50 -c 5"), "open, 1000/s (Poisson), 50 requests, 5 connections");
        let ramp = "open, ramp from 1/s to 9/s, 1m, 5 to 50 connections";
        assert_eq!(schedule("--rate 1..9 -d 1m -c 5 --connections-max 50"), ramp);
        assert_eq!(schedule("--schedule s.txt -c 5"), "open, start times from s.txt, 5 connections");
    }

    #[test]
    fn options_reach_the_request() {
        let phases =
            load("--method put --body-size 1k --body-fill zero --expect-header A:b --expect-length 2").unwrap();
        let work = phases[0].kind.work().unwrap();
        assert_eq!(work.request.body, Body::Zero(crate::units::Bytes(1024)));
        assert_eq!(work.request.checks.headers, [("A".to_owned(), Some("b".to_owned()))]);
        let phases = load("--http2 --streams 5 --expect-status 204 --stop-when failed>1% --warmup 10").unwrap();
        assert!(phases[0].is_warmup() && phases.len() == 2);
        let work = phases[1].kind.work().unwrap();
        assert_eq!((work.protocol.streams(), work.stop.len()), (5, 1));
        assert_eq!(work.expect, ExpectStatus::Exactly(204));
        let phases = load("-n 50 --warmup steady:90s").unwrap();
        let until = |phase: &Phase| phase.kind.work().unwrap().schedule.until();
        assert!(phases[0].until_steady && !phases[1].until_steady);
        assert_eq!(
            (until(&phases[0]), until(&phases[1])),
            (Some(Until::Elapsed(Span::seconds(90))), Some(Until::Requests(50)),)
        );
    }

    #[test]
    fn incompatible_load_options_are_rejected() {
        let check = |words: &str, what: &str| {
            let error = load(words).unwrap_err();
            assert!(error.what.contains(what), "{words}: {error}");
        };
        check("--poisson", "`--poisson` needs a rate");
        check("--connections-max 50", "`--connections-max` works only with an open model");
        check("--rate 5 --connections-max 5", "fewer than the 25 connections to start with");
        check("--rate 0", "a rate of 0/s is not possible");
        check("--rate 99999999", "is not possible");
        check("--rate 1..9 -n 50", "needs a duration");
        check("-d 0", "greater than 0");
        check("-c 0", "between 1 and 100000");
        check("-n 0", "`requests` is 0");
        check("--body-text x", "GET requests cannot have a body");
        check("--method post --expect-continue", "needs a request body");
        check("--http2 --close", "only with HTTP/1.1");
    }
}
