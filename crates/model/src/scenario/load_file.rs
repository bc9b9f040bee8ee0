//! The load plan as written: the list under `load:`, YAML text → [`Phase`]s.

use super::load_settings::{
    ClosedFile, ConstantFile, Http2File, PhaseSettings, RampFile, RequestSettings, StaircaseFile, UntilFile, usual_work,
};
use super::written::{Named, Scalar, did_you_mean};
use super::*;
use crate::error::{Error, Result};
use crate::units::{Count, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A file with a load plan; other scenario keys are ignored.
#[derive(Deserialize)]
struct LoadFile {
    load: Vec<Named<PhaseSettings>>,
    seed: Option<u64>,
}

/// Parses a file's load plan: the key `load` as in a scenario, and `seed`. Also accepts a complete scenario.
///
/// Relative paths are resolved against `base`. Errors: `Request` with the line and the closest valid word.
pub fn parse_load(text: &str, base: &Path) -> Result<(Vec<Phase>, Option<u64>)> {
    let file: LoadFile = yaml::read(text)?;
    let load = resolve_load(file.load, base)?;
    validate_load(&load)?;
    Ok((load, file.seed))
}

pub(super) struct OnePhase;

loadline_base::written_as! {
    OnePhase, "one_phase", |of| {
        "description": "A phase: its name and settings.",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "propertyNames": (schema::file_names()),
        "additionalProperties": (of.subschema_for::<PhaseSettings>())
    };
}

/// Resolves the phases; `same: NAME` repeats another phase's work, for an equal warm-up.
pub(super) fn resolve_load(phases: Vec<Named<PhaseSettings>>, base: &Path) -> Result<Vec<Phase>> {
    let (mut written, mut kinds) = (Vec::new(), BTreeMap::new());
    for Named(mut entries) in phases {
        let (1, Some((name, phase))) = (entries.len(), entries.pop()) else {
            return Err(Error::request("each entry of `load` is one phase: `- NAME: {…}`"));
        };
        if phase.until.is_some() && name != WARMUP {
            return Err(Error::request("only the phase `warmup` can use `until: steady`").at(format!("phase: {name}")));
        }
        let resolved = match &phase.same {
            Some(_) => phase.repeats(),
            None => phase.resolve(base).map(|kind| drop(kinds.insert(name.clone(), kind))),
        };
        resolved.map_err(|error| error.at(format!("phase: {name}")))?;
        written.push((name, phase));
    }
    let repeated = |other: &String| match kinds.get(other) {
        Some(kind) => Ok(kind.clone()),
        None => {
            let error = Error::request(format!("no phase is named `{other}`"));
            Err(match did_you_mean(other, kinds.keys().map(String::as_str)) {
                Some(hint) => error.hint(hint),
                None => error,
            })
        }
    };
    let finish = |(name, phase): (String, PhaseSettings)| {
        let kind = repeated(phase.same.as_ref().unwrap_or(&name));
        let kind = kind.map_err(|error| error.at(format!("phase: {name}")))?;
        let mut resolved = Phase { mark: phase.mark.unwrap_or_default(), ..Phase::new(name, kind) };
        if phase.until == Some(UntilFile::Steady) {
            let within = phase.same.as_ref().map(|_| phase.within.unwrap_or(defaults::STEADY_WITHIN));
            resolved.ends_when_steady(within);
        }
        Ok(resolved)
    };
    written.into_iter().map(finish).collect()
}

impl PhaseSettings {
    /// Rejects other keys next to `key`, except those in `fitting`. `same`, `idle`, `driver`, and `phases` each
    /// describe the whole phase, so other keys would have no effect.
    fn stands_alone(&self, key: &str, fitting: &[&str]) -> Result<()> {
        match self.given().find(|other| *other != key && !fitting.contains(other)) {
            Some(other) => {
                let fitting = fitting.join("`, `");
                let what = format!("a phase with `{key}` accepts no keys other than `{fitting}`");
                Err(Error::request(format!("{what}; `{other}` would have no effect")))
            }
            None => Ok(()),
        }
    }

    /// `same` repeats another phase's work; a warm-up may have a different end.
    fn repeats(&self) -> Result<()> {
        self.stands_alone("same", &["mark", "until", "within"])?;
        match (self.until, self.within) {
            (None, Some(_)) => Err(Error::request("`within` limits `until: steady`, which this phase does not use")),
            _ => Ok(()),
        }
    }

    fn resolve(&self, base: &Path) -> Result<PhaseKind> {
        if let Some(idle) = self.idle {
            self.stands_alone("idle", &["mark"])?;
            return Ok(PhaseKind::Idle(idle));
        }
        if let Some(command) = &self.driver {
            self.stands_alone("driver", &["within", "mark"])?;
            let within = self.within.unwrap_or(defaults::DRIVER_WITHIN);
            return Ok(PhaseKind::Driver(Driver { command: command.clone(), dir: Some(base.to_owned()), within }));
        }
        if let Some(phases) = &self.phases {
            self.stands_alone("phases", &["within", "pattern", "collect", "settle"])?;
            return Ok(PhaseKind::Own(OwnWork {
                phases: phases.iter().cloned().map(Scalar::text).collect(),
                within: self.within.unwrap_or(defaults::MARKER_WITHIN),
                pattern: self.pattern.clone(),
                collect: self.collect.unwrap_or(0),
                settle: self.settle,
            }));
        }
        if self.within.is_some() {
            return Err(Error::request("`within` limits a `driver` or `phases`, which this phase does not use"));
        }
        if let Some(key) = self.given().find(|key| ["pattern", "collect", "settle"].contains(key)) {
            return Err(Error::request(format!("`{key}` belongs to `phases`, which this phase does not use")));
        }
        let schedule = self.one_schedule(base)?;
        let (request, others) = self.all_requests(base)?;
        let expect = self.status().map_or(ExpectStatus::Success, ExpectStatus::Exactly);
        let protocol = self.http2.as_ref().map_or(Protocol::Http1, Http2File::protocol);
        let mut work = Work { schedule, others, expect, protocol, ..usual_work(request) };
        self.apply(&mut work);
        Ok(PhaseKind::Work(work))
    }

    fn one_schedule(&self, base: &Path) -> Result<Schedule> {
        let ramp = |of: &RampFile| {
            let rate = Rate::Ramp { from: of.from.0, to: of.to.0 };
            of.open(changing(rate, of.poisson, of.duration))
        };
        let staircase = |of: &StaircaseFile| {
            let rate = Rate::Staircase { from: of.from.0, to: of.to.0, steps: of.steps };
            of.open(changing(rate, of.poisson, of.duration))
        };
        let found = [
            self.closed.as_ref().map(ClosedFile::resolve),
            self.constant.as_ref().map(|constant| constant.resolve("constant", Spacing::Even)),
            self.poisson.as_ref().map(|poisson| poisson.resolve("poisson", Spacing::Poisson)),
            self.ramp.as_ref().map(|of| Ok(ramp(of))),
            self.staircase.as_ref().map(|of| Ok(staircase(of))),
            self.schedule.as_ref().map(|of| Ok(of.open(Arrivals::File(base.join(&of.file))))),
        ];
        let mut found = found.into_iter().flatten();
        match (found.next(), found.next()) {
            (Some(schedule), None) => schedule,
            _ => Err(Error::request(
                "a phase needs exactly one of `closed`, `constant`, `poisson`, `ramp`, `staircase`, `schedule`, \
                 `driver`, `phases`, `idle`, or `same`",
            )),
        }
    }

    fn all_requests(&self, base: &Path) -> Result<(Request, Vec<Request>)> {
        let Some(several) = &self.requests else { return Ok((self.request(base)?, Vec::new())) };
        let of_one = |key: &str| matches!(key, "body" | "expect_continue") || key.parse::<Method>().is_ok();
        if self.given().any(of_one) {
            return Err(Error::request(
                "a phase can have either `requests` or a method such as `get`, `put`, or `post`, not both",
            ));
        }
        let mut requests = several.iter().map(|written| self.one_of_several(written, base));
        let first = requests.next().unwrap_or_else(|| Err(Error::request("`requests` is empty")))?;
        Ok((first, requests.collect::<Result<_>>()?))
    }

    fn one_of_several(&self, written: &RequestSettings, base: &Path) -> Result<Request> {
        let mut request = Request { weight: written.weight.unwrap_or(1), ..written.request(base)? };
        request.headers.splice(0..0, self.headers.iter().flatten().cloned());
        if let (None, Some(expect)) = (&written.expect, &self.expect) {
            request.checks = expect.checks();
        }
        Ok(request)
    }
}

impl ClosedFile {
    fn resolve(&self) -> Result<Schedule> {
        Ok(Schedule::Closed {
            connections: self.connections.unwrap_or(defaults::CONNECTIONS),
            until: until("closed", self.requests, self.duration)?,
            think: self.think.unwrap_or_default(),
        })
    }
}

impl ConstantFile {
    fn resolve(&self, key: &str, spacing: Spacing) -> Result<Schedule> {
        let until = until(key, self.requests, self.duration)?;
        let rate = Rate::Constant(self.rate.0);
        Ok(self.open(Arrivals::Rate { rate, spacing, until }))
    }
}

fn until(key: &str, requests: Option<Count>, duration: Option<Span>) -> Result<Until> {
    match (requests, duration) {
        (Some(Count(requests)), None) => Ok(Until::Requests(requests)),
        (None, Some(duration)) => Ok(Until::Elapsed(duration)),
        _ => Err(Error::request(format!("`{key}` needs exactly one of `requests` and `duration`"))),
    }
}

fn changing(rate: Rate, poisson: Option<bool>, duration: Span) -> Arrivals {
    let spacing = if poisson == Some(true) { Spacing::Poisson } else { Spacing::Even };
    Arrivals::Rate { rate, spacing, until: Until::Elapsed(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn load(phases: &str) -> Result<Vec<Phase>> {
        parse_load(&format!("load:\n{phases}"), Path::new("/base")).map(|(load, _)| load)
    }

    fn work(phase: &str) -> Work {
        load(&format!("  - a: {phase}\n")).unwrap()[0].kind.work().unwrap().clone()
    }

    #[test]
    fn every_load_model_has_a_key() {
        let check = |phase: &str, expect: &str| assert_eq!(work(phase).schedule.to_string(), expect);
        check("{closed: {requests: 9, think: 5ms}, get: /}", "closed, 25 connections, think time 5ms, 9 requests");
        check("{constant: {rate: 500, duration: 20s}, get: /}", "open, 500/s, 20s, 25 connections");
        check("{poisson: {rate: 1k, requests: 10}, get: /}", "open, 1000/s (Poisson), 10 requests, 25 connections");
        let ramp = "{ramp: {from: 1, to: 9, duration: 1m, connections: 5, connections_max: 10}, get: /}";
        check(ramp, "open, ramp from 1/s to 9/s, 1m, 5 to 10 connections");
        let stairs = "{staircase: {from: 1, to: 9, steps: 3, duration: 1m, poisson: true}, get: /}";
        check(stairs, "open, 1/s to 9/s in 3 steps (Poisson), 1m, 25 connections");
        check("{schedule: {file: s.txt}, get: /}", "open, start times from /base/s.txt, 25 connections");
    }

    #[test]
    fn requests_define_what_is_sent_and_expected() {
        let several = work(
            "{closed: {requests: 9}, headers: {A: b}, expect: 201, requests: [\
             {get: /a, weight: 3, expect: {status: 200, length: 12, headers: {X: , Y: 1}, body: hello}}, \
             {post: '/b{seq}', body: {text: '{rand 1 9}'}, expect_continue: true}]}",
        );
        let requests: Vec<_> = several.requests().collect();
        assert_eq!((requests[0].weight, requests[1].weight), (3, 1));
        assert_eq!(requests[0].checks.headers, [("X".to_owned(), None), ("Y".to_owned(), Some("1".to_owned()))]);
        assert_eq!(requests[0].checks.status, Some(ExpectStatus::Exactly(200)));
        assert_eq!(requests[1].checks.status, Some(ExpectStatus::Exactly(201)));
        assert_eq!(requests[1].headers, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(requests[1].body, Body::Text("{rand 1 9}".to_owned()));
        let slow = work("{closed: {requests: 1}, put: /, body: {size: 1k, fill: zero}, send_rate: 100, drain: 1s}");
        assert_eq!((slow.request.body.clone(), slow.pace.send), (Body::Zero(Bytes(1024)), Some(Bytes(100))));
        assert_eq!(work("{closed: {requests: 1}, get: /, http2: {streams: 10}}").protocol.streams(), 10);
        assert_eq!(work("{closed: {requests: 1}, get: /, stop: ['failed>1%']}").stop[0].to_string(), "failed>1%");
    }

    #[test]
    fn a_warm_up_may_end_when_the_subject_is_warm() {
        let phases = |warmup: &str| {
            load(&format!("  - warmup: {{same: a, {warmup}}}\n  - a: {{closed: {{requests: 9}}, get: /}}\n")).unwrap()
        };
        let phases_60 = phases("until: steady");
        let until = |phases: &[Phase]| phases[0].kind.work().unwrap().schedule.until();
        assert_eq!(until(&phases_60), Some(Until::Elapsed(Span::seconds(60))));
        assert_eq!(until(&phases("until: steady, within: 2m")), Some(Until::Elapsed(Span::seconds(120))));
        assert_eq!(phases_60.iter().map(|phase| phase.until_steady).collect::<Vec<_>>(), [true, false]);
        assert!(!phases("mark: true")[0].until_steady);
        let own = load("  - warmup: {closed: {duration: 30s}, get: /, until: steady}\n").unwrap();
        assert_eq!((own[0].until_steady, until(&own)), (true, Some(Until::Elapsed(Span::seconds(30)))));
    }

    #[test]
    fn contradictory_phases_are_rejected() {
        let check = |phase: &str, expect: &str| {
            let error = load(&format!("  - a: {phase}\n")).unwrap_err();
            assert!(error.to_string().contains(expect), "{error}");
        };
        check("{same: b, until: steady}", "only the phase `warmup` can use `until: steady`");
        check("{same: b, within: 9s}", "`within` limits `until: steady`");
        check("{closed: {requests: 1}, get: /, until: steady}", "only the phase `warmup` can use");
        check("{same: b, until: stedy}", "steady");
        check("{get: /}", "needs exactly one of `closed`, `constant`");
        check("{closed: {requests: 1}, constant: {rate: 1, requests: 1}, get: /}", "needs exactly one of");
        check("{constant: {rate: 0, duration: 1s}, get: /}", "is not possible");
        check("{constant: {rate: -5, duration: 1s}, get: /}", "is not a rate");
        check("{constant: {rate: 1e9, duration: 1s}, get: /}", "is not possible");
        check("{constant: {rate: 5}, get: /}", "exactly one of `requests` and `duration`");
        check("{staircase: {from: 1, to: 2, steps: 1, duration: 1s}, get: /}", "`steps` is 1");
        check("{closed: {requests: 1}, get: /, put: /}", "exactly one of");
        check("{closed: {requests: 1}, get: /, requests: [{get: /}]}", "either `requests` or");
        check("{closed: {requests: 1}, requests: []}", "is empty");
        check("{closed: {requests: 1}, get: /, body: {size: 1}}", "GET requests cannot have a body");
        check("{closed: {requests: 1}, get: /, http2: true, send_rate: 1}", "only with HTTP/1.1");
        check("{closed: {requests: 1}, get: /, stop: ['p99']}", "has no comparison");
        check("{driver: wrk, get: /}", "`get` would have no effect");
        check("{driver: ' '}", "no command");
        check("{closed: {requests: 1}, get: /, within: 1s}", "`within` limits a `driver`");
        check("{closed: {requests: 1, conections: 2}, get: /}", "did you mean `connections`?");
    }
}
