//! Checks constraints of a scenario beyond types: bounds, unique names, possible marks.

use super::written::did_you_mean;
use super::*;
use crate::error::{Error, Result};
use crate::units::{Bytes, Millicpus, several};

/// More connections than an address has local ports, and more than any server needs in one process.
const CONNECTIONS_MAX: u64 = 100_000;
/// Requests per second: from one an hour to more than any network card carries.
const RATE_MIN: f64 = 1.0 / 3600.0;
const RATE_MAX: f64 = 10_000_000.0;
/// No heap or process is smaller; a smaller number lacks its unit.
const MEMORY_MIN: Bytes = Bytes::kib(64);
/// The kernel rejects a quota below 1 ms (`min_cfs_quota_period` in Linux's kernel/sched).
const CPU_LIMIT_MIN: Millicpus = Millicpus(10);

impl Scenario {
    /// Checks constraints beyond types: bounds, unique names, possible marks. Errors: `Request`, naming the first
    /// invalid value and its valid range.
    pub fn validate(&self) -> Result<()> {
        if self.subject.command.is_empty() && self.subject.image.is_none() {
            return Err(Error::request("the server has no command").hint("add one after `--`: `-- java -jar app.jar`"));
        }
        if let Some(port) = self.subject.port {
            within("port", u64::from(port), 1, 65_535)?;
        }
        self.subject.validate_ports()?;
        within("trials", u64::from(self.trials), 1, 1000)?;
        within("sample_hz", u64::from(self.sample_hz), 1, 100)?;
        unique("configuration", self.configurations.iter().map(|c| c.name.as_str()))?;
        if self.configurations.is_empty() {
            return Err(Error::request("no configurations are left to run"));
        }
        self.validate_image()?;
        self.validate_code()?;
        self.validate_native()?;
        self.validate_jvm()?;
        self.validate_each(|of| memory("heap", of.heap).and_then(|()| memory("limit", of.limit)))?;
        self.validate_each(|of| of.cpu_limit.map_or(Ok(()), cpu))?;
        self.compare.validate(&self.configurations)?;
        if self.load.last_work().is_none() {
            return Err(Error::request("the load has no phase with requests")
                .hint("add one such as `- steady: {closed: {connections: 25, requests: 50000}, get: /}`"));
        }
        validate_load(&self.load)?;
        super::derived::validate_figures(&self.figures)?;
        self.find.validate()?;
        self.tune.validate()?;
        self.collect.validate()?;
        let possible = self.marks_possible();
        match self.marks.iter().find(|mark| !possible.contains(mark)) {
            Some(MarkPoint::Warm) => Err(Error::request("the mark `warm` needs a phase named `warmup`")),
            Some(mark @ (MarkPoint::Collected | MarkPoint::Trimmed)) => {
                let what = format!("the mark `{}` needs a JVM to query, but the server is `kind: native`", mark.word());
                Err(Error::request(what).hint("remove the mark"))
            }
            Some(_) => Err(Error::request("the mark `rested` needs an idle phase after the last load")),
            None => Ok(()),
        }
    }

    /// Checks each configuration; errors name it.
    pub(super) fn validate_each(&self, check: impl Fn(&Configuration) -> Result<()>) -> Result<()> {
        let named = |of: &Configuration| check(of).map_err(|error| error.at(format!("configuration: {}", of.name)));
        self.configurations.iter().try_for_each(named)
    }

    /// Checks that each configuration has a `code` if the subject uses `{code}`, and none has one otherwise.
    fn validate_code(&self) -> Result<()> {
        let mut words = self.subject.command.iter().chain(self.subject.env.iter().map(|(_, value)| value));
        let stands = words.any(|word| word.contains("{code}"));
        self.validate_each(|of| match (stands, &of.code) {
            (true, None) => Err(Error::request("the command contains `{code}`, which is not defined")
                .hint("give the configuration a `code`: a jar or a directory")),
            (false, Some(_)) => Err(Error::request("`code` has no effect: the command does not contain `{code}`")
                .hint("write it instead of the jar: `[java, -jar, \"{code}\"]`")),
            _ => Ok(()),
        })
    }

    /// Rejects JVM settings for a native program, where they would silently have no effect.
    fn validate_native(&self) -> Result<()> {
        if self.subject.kind == Kind::Jvm {
            return Ok(());
        }
        if self.objects == Objects::Listed {
            return Err(Error::request("`classes` has no effect: the server is `kind: native`, not a JVM"));
        }
        self.validate_each(|of| {
            let asked = [
                ("heap", of.heap.is_some()),
                ("gc", of.gc.is_some()),
                ("jvm", !of.jvm.is_empty()),
                ("nmt", of.nmt != Nmt::Off),
                ("jdk", of.jdk.is_some()),
            ];
            let Some((word, _)) = asked.into_iter().find(|(_, asked)| *asked) else { return Ok(()) };
            Err(Error::request(format!("`{word}` has no effect: the server is `kind: native`, not a JVM"))
                .hint("use `args`, `env`, or `preload`; or remove `kind: native`"))
        })
    }

    /// Each element of `jvm` is one argument. An element with two options would not fail until the JVM starts.
    fn validate_jvm(&self) -> Result<()> {
        self.validate_each(|of| {
            let mut held = of.jvm.iter().map(|argument| (argument, options_in(argument)));
            let Some((argument, options)) = held.find(|(_, options)| options.len() > 1) else { return Ok(()) };
            let typed: Vec<String> = options.iter().map(|option| format!("--jvm {}", shell_word(option))).collect();
            Err(Error::request(format!("the JVM option `{argument}` contains {} options", options.len()))
                .hint(format!("write each one separately: `{}`, or as elements of `jvm`", typed.join(" "))))
        })
    }
}

/// Options whose value may be a command or sentence, with spaces and dashes.
const FREE_TEXT: [&str; 6] = ["-D", "-XX:OnError=", "-XX:OnOutOfMemoryError=", "-agent", "-javaagent:", "@"];

/// The options in a JVM argument: a word with a dash and a letter starts another option.
fn options_in(argument: &str) -> Vec<&str> {
    let mut options = Vec::new();
    let mut rest = argument;
    let begins = |text: &str| text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_alphabetic());
    while !FREE_TEXT.iter().any(|free| rest.starts_with(free)) {
        let blanks = rest.match_indices(char::is_whitespace).map(|(at, _)| at + 1);
        let Some(next) = blanks.into_iter().find(|at| begins(&rest[*at..])) else { break };
        options.push(rest[..next].trim());
        rest = &rest[next..];
    }
    options.push(rest);
    options
}

impl Subject {
    fn validate_ports(&self) -> Result<()> {
        let Ports { count, answers } = self.ports;
        within("ports", u64::from(count), 1, u64::from(Ports::COUNT_MAX))?;
        if let Some(first) = self.port
            && u32::from(first) + u32::from(count) - 1 > u32::from(u16::MAX)
        {
            return Err(Error::request(format!("{count} ports starting at {first} go past 65535")));
        }
        if answers == Answers::Any && count == 1 {
            return Err(Error::request("`any` has no effect: there is only one port")
                .hint("set the number of ports with `ports`"));
        }
        Ok(())
    }
}

impl Compare {
    fn validate(&self, configurations: &[Configuration]) -> Result<()> {
        let names = || configurations.iter().map(|configuration| configuration.name.as_str());
        if let Some(baseline) = self.baseline.as_deref().filter(|baseline| names().all(|name| name != *baseline)) {
            let hint = did_you_mean(baseline, names())
                .unwrap_or_else(|| format!("the configurations are {}", names().collect::<Vec<_>>().join(", ")));
            return Err(Error::request(format!("no configuration is named `{baseline}`"))
                .at("compare: baseline")
                .hint(hint));
        }
        if let Some(blocks) = self.until_sure {
            within("until_sure", u64::from(blocks), 5, 1000)?;
        }
        within("repeats", u64::from(self.repeats), 0, 1000)
    }
}

/// `name` must be in `low..=high`.
pub(super) fn within(name: &str, value: u64, low: u64, high: u64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::request(format!("`{name}` is {value}; it must be between {low} and {high}")))
}

/// The maximum of `--minutes`.
const MINUTES_MAX: f64 = 100_000.0;

pub(super) fn minutes(minutes: Option<f64>) -> Result<()> {
    match minutes {
        Some(minutes) if !(minutes > 0.0 && minutes <= MINUTES_MAX) => {
            Err(Error::request(format!("`--minutes` is {minutes}; it must be above 0 and at most {MINUTES_MAX}")))
        }
        _ => Ok(()),
    }
}

/// Checks that a heap or limit is plausible. A bare number is in bytes, so `64` is rejected: `64m` was meant.
pub(super) fn memory(name: &str, size: Option<Bytes>) -> Result<()> {
    match size {
        Some(Bytes(bytes)) if bytes < MEMORY_MIN.0 => {
            Err(Error::request(format!("`{name}` is {}, which is too small for any process", several(bytes, "byte")))
                .hint("a number without a unit is in bytes; write mebibytes as `64m`"))
        }
        _ => Ok(()),
    }
}

/// Rejects a limit that the kernel would reject.
fn cpu(limit: Millicpus) -> Result<()> {
    if limit >= CPU_LIMIT_MIN {
        return Ok(());
    }
    let quota_us = limit.quota_us();
    let what = format!(
        "`cpu_limit` is {limit}, a quota of {quota_us} µs in each period of 100 ms; the kernel needs at \
             least 1 ms"
    );
    Err(Error::request(what).hint(format!("use `{}` or more", CPU_LIMIT_MIN.word())))
}

pub(super) fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if name.is_empty() || name.contains(['/', '\0', '\n']) {
            return Err(Error::request(format!("`{name}` is not a valid {what} name")));
        }
        if !seen.insert(name) {
            return Err(Error::request(format!("two {what}s are named `{name}`")));
        }
    }
    Ok(())
}

/// Checks a load plan's phases: bounds, and contradictory values. Errors: `Request`, naming the phase and the first
/// invalid value.
pub fn validate_load(load: &[Phase]) -> Result<()> {
    validate_names(load)?;
    for phase in load {
        let checked = match &phase.kind {
            PhaseKind::Work(work) => validate_work(work),
            PhaseKind::Driver(driver) => driver.validate(),
            PhaseKind::Own(own) => own.validate(),
            PhaseKind::Idle(_) => Ok(()),
        };
        checked.map_err(|error| error.at(format!("phase: {}", phase.name)))?;
    }
    Ok(())
}

/// Checks that phase names are unique, including the subject's own phases. A phase that becomes a mark must not
/// have the name of a [`MarkPoint`].
fn validate_names(load: &[Phase]) -> Result<()> {
    let own = load.iter().filter_map(|phase| phase.kind.own()).flat_map(|own| &own.phases);
    let names = load.iter().map(|phase| &phase.name).chain(own).map(String::as_str);
    unique("phase", names)?;
    let taken = |name: &&str| MarkPoint::ALL.iter().any(|point| point.word() == *name);
    match load_plan::marks(load).into_iter().find(taken) {
        Some(name) => Err(Error::request(format!("a phase cannot be named `{name}`: a mark has that name"))
            .hint("give the phase a different name")),
        None => Ok(()),
    }
}

fn validate_work(work: &Work) -> Result<()> {
    validate_schedule(&work.schedule)?;
    if let ExpectStatus::Exactly(status) = work.expect {
        within("expect", u64::from(status), 100, 999)?;
    }
    if work.timeout.0.is_zero() {
        return Err(Error::request("`timeout` must be greater than 0"));
    }
    within("streams", u64::from(work.protocol.streams()), 1, 1000)?;
    for bytes in [work.pace.send, work.pace.receive].into_iter().flatten() {
        within("bytes per second", bytes.0, 1, 1 << 40)?;
    }
    if work.protocol != Protocol::Http1 {
        let waits = work.requests().any(|request| request.expect_continue);
        let unfit = [("a slow peer", work.pace.is_slow()), ("`expect_continue`", waits), ("`close`", !work.keep_alive)];
        if let Some((what, _)) = unfit.into_iter().find(|(_, asked)| *asked) {
            return Err(Error::request(format!("{what} works only with HTTP/1.1")).hint("remove it, or remove `http2`"));
        }
    }
    work.requests().try_for_each(validate_request)
}

fn validate_schedule(schedule: &Schedule) -> Result<()> {
    within("connections", u64::from(schedule.connections()), 1, CONNECTIONS_MAX)?;
    within("connections_max", u64::from(schedule.connections_max()), 1, CONNECTIONS_MAX)?;
    if let Some(Until::Requests(requests)) = schedule.until() {
        within("requests", requests, 1, 1_000_000_000_000)?;
    }
    let Schedule::Open { arrivals: Arrivals::Rate { rate, until, .. }, .. } = schedule else { return Ok(()) };
    if !(rate.min() >= 0.0 && (RATE_MIN..=RATE_MAX).contains(&rate.max())) {
        return Err(Error::request(format!("a rate of {rate} is not possible"))
            .hint("use a rate between one request an hour (`1/h`) and ten million a second (`10000k`)"));
    }
    if let Rate::Staircase { steps, .. } = rate {
        within("steps", u64::from(*steps), 2, 10_000)?;
    }
    match (rate, until) {
        (Rate::Constant(_), _) | (_, Until::Elapsed(_)) => Ok(()),
        (_, Until::Requests(_)) => {
            Err(Error::request("a phase with a changing rate needs a duration, not a number of requests")
                .hint("use `duration` instead of `requests`"))
        }
    }
}

fn validate_request(request: &Request) -> Result<()> {
    within("weight", u64::from(request.weight), 1, 1_000_000)?;
    if !request.method.takes_body() && request.body != Body::None {
        return Err(Error::request(format!("{} requests cannot have a body", request.method.as_str()))
            .hint("use `--method PUT` or `--method POST`"));
    }
    if request.expect_continue && request.body == Body::None {
        return Err(Error::request("`expect_continue` needs a request body"));
    }
    if request.method == Method::Head && request.checks.body.is_some() {
        return Err(Error::request("the response to HEAD has no body to check"));
    }
    if request.checks.body.as_deref() == Some("") {
        return Err(Error::request("the text to find in the body is empty"));
    }
    if let Some(ExpectStatus::Exactly(status)) = request.checks.status {
        within("expect", u64::from(status), 100, 999)?;
    }
    // Only placeholders contain spaces. The load engine encodes the request and validates it byte by byte.
    if !request.path.starts_with('/') || request.path.contains(['\r', '\n']) {
        return Err(Error::request(format!("`{}` is not a request path; it must start with `/`", request.path)));
    }
    let breaks_line = |text: &String| text.contains(['\r', '\n']);
    match request.headers.iter().find(|(name, value)| name.is_empty() || breaks_line(name) || breaks_line(value)) {
        Some((name, _)) => {
            Err(Error::request(format!("header `{}` is empty or spans several lines", name.escape_debug())))
        }
        None => Ok(()),
    }
}
