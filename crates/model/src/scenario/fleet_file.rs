//! The fleet file: YAML text → [`Fleet`]. The caller reads the scenario files that the text references.

use super::fleet::{SEARCH_EVERY, WITHIN};
use super::load_settings::{LoadOptions, PerSecond};
use super::schema;
use super::written::{Named, Scalar, parsed, texts};
use super::{Budget, Fleet, Last, Rate, Scenario, ScenarioOptions, Service, SubjectSettings};
use crate::error::{Error, Result};
use crate::units::{Bytes, Span, unix_s};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Parses the text of a fleet file.
///
/// Paths are relative to `base`; `read` reads the scenario file at a path. Errors: `Request` with the line and the
/// closest valid word, or with the invalid service; and the errors of `read`.
pub fn parse_fleet(text: &str, base: &Path, read: &mut dyn FnMut(&Path) -> Result<Scenario>) -> Result<Fleet> {
    let FleetFile { name, defaults, services } = super::yaml::read(text)?;
    let service = |(name, written): (String, ServiceFile)| {
        written.resolve(&name, &defaults, base, read).map_err(|error| error.at(format!("service: {name}")))
    };
    let fleet = Fleet {
        name,
        services: services.0.into_iter().map(service).collect::<Result<_>>()?,
        search_every: defaults.search_every.unwrap_or(SEARCH_EVERY),
    };
    fleet.validate()?;
    Ok(fleet)
}

/// A fleet as written.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FleetFile {
    /// Name of the plan.
    #[schemars(extend("minLength" = 1))]
    name: String,
    /// The defaults of every service without its own settings.
    #[serde(default)]
    defaults: DefaultsFile,
    /// Services, by name; at least one.
    #[schemars(extend("minProperties" = 1, "propertyNames" = schema::file_names()))]
    services: Named<ServiceFile>,
}

/// The defaults of every service without its own settings.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct DefaultsFile {
    /// Conditions that every trial must meet, for services whose scenario has no target.
    target: Vec<Budget>,
    /// Time limit for the search of a service on its node.
    #[schemars(extend("default" = "15m"))]
    within: Option<Span>,
    /// Time after which a limit that passed every night is searched for again.
    #[schemars(extend("default" = "7d"))]
    search_every: Option<Span>,
    /// Seed for all random choices; if omitted, the scenario's seed.
    seed: Option<u64>,
    /// URL to load, for services without a scenario.
    url: Option<String>,
    /// Requests per second, for services without a scenario; if omitted, a closed model.
    #[schemars(with = "Option<PerSecond>")]
    #[serde(deserialize_with = "parsed")]
    rate: Option<Rate>,
    /// Duration of the load, for services without a scenario.
    #[schemars(extend("default" = "10s"))]
    duration: Option<Span>,
}

/// One service: a scenario file, an image, or a command.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[schemars(extend("anyOf" = schema::each(&["scenario", "image", "command"])))]
#[serde(deny_unknown_fields, default)]
struct ServiceFile {
    /// Scenario file, relative to this file, or a directory `NAME` with the file `NAME.loadline.yaml`.
    scenario: Option<PathBuf>,
    /// Configuration to use, if the scenario has several.
    only: Option<String>,
    /// Container image; `command` is then the arguments of its entrypoint.
    #[schemars(extend("minLength" = 1))]
    image: Option<String>,
    /// Program and arguments, run in the directory of this file; `{port}` expands to a free port.
    #[schemars(with = "Vec<Scalar>")]
    #[serde(deserialize_with = "texts")]
    command: Vec<String>,
    /// URL to load.
    url: Option<String>,
    /// Requests per second.
    #[schemars(with = "Option<PerSecond>")]
    #[serde(deserialize_with = "parsed")]
    rate: Option<Rate>,
    /// Duration of the load.
    duration: Option<Span>,
    /// Conditions that every trial must meet, instead of those of the scenario or the defaults.
    target: Vec<Budget>,
    /// Time limit for its search on its node.
    within: Option<Span>,
    /// Current production limit; if omitted, that of the scenario's configuration.
    limit: Option<Bytes>,
    /// Previously known line, if no earlier result has it.
    last: Option<LastFile>,
}

/// A previously known line.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct LastFile {
    /// The limit that passed.
    limit: Bytes,
    /// The maximum heap that goes with it.
    heap: Option<Bytes>,
    /// The direct memory that goes with it.
    direct: Option<Bytes>,
    /// When it was found: `2026-11-20`, or a time such as `2026-11-20T04:36:21Z`.
    #[schemars(extend("pattern" = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"))]
    at: Option<String>,
}

impl ServiceFile {
    fn resolve(
        self,
        name: &str,
        defaults: &DefaultsFile,
        base: &Path,
        read: &mut dyn FnMut(&Path) -> Result<Scenario>,
    ) -> Result<Service> {
        let mut scenario = match &self.scenario {
            Some(file) => self.of_file(&base.join(file), read)?,
            None => self.of_command(name, defaults, base)?,
        };
        if !self.target.is_empty() {
            scenario.find.target = self.target;
        } else if scenario.find.target.is_empty() {
            scenario.find.target.clone_from(&defaults.target);
        }
        scenario.seed = defaults.seed.unwrap_or(scenario.seed);
        let last = self.last.map(LastFile::resolve).transpose()?;
        let within = self.within.or(defaults.within).unwrap_or(WITHIN);
        let service = Service::new(name, scenario);
        Ok(Service { within, declared: self.limit.or(service.declared), last, ..service })
    }

    fn of_file(&self, file: &Path, read: &mut dyn FnMut(&Path) -> Result<Scenario>) -> Result<Scenario> {
        let idle = [
            ("image", self.image.is_some()),
            ("command", !self.command.is_empty()),
            ("url", self.url.is_some()),
            ("rate", self.rate.is_some()),
            ("duration", self.duration.is_some()),
        ];
        if let Some((key, _)) = idle.into_iter().find(|(_, given)| *given) {
            return Err(Error::request(format!(
                "`{key}` would have no effect: the scenario already says what to \
                 run and how"
            ))
            .hint("remove it, or change the scenario"));
        }
        let mut scenario = read(file)?;
        scenario.select(self.only.as_slice())?;
        Ok(scenario)
    }

    fn of_command(&self, name: &str, defaults: &DefaultsFile, base: &Path) -> Result<Scenario> {
        if self.image.is_none() && self.command.is_empty() {
            return Err(
                Error::request("there is nothing to run").hint("specify a `scenario`, an `image`, or a `command`")
            );
        }
        if self.only.is_some() {
            return Err(Error::request("`only` would have no effect: there is no scenario to choose from"));
        }
        let url = self.url.as_ref().or(defaults.url.as_ref()).cloned();
        if url.is_none() && !self.command.iter().any(|word| word.contains("{port}")) {
            return Err(Error::request("no URL to load")
                .hint("specify `url: http://127.0.0.1:8080/path`, or put `{port}` in the command for a free port"));
        }
        let rate = self.rate.or(defaults.rate);
        if rate.is_some_and(|rate| !matches!(rate, Rate::Constant(_))) {
            return Err(Error::request("a search for a load line needs a constant rate")
                .hint("write it as `200`, or describe the load in a scenario file"));
        }
        let load = LoadOptions { rate, duration: self.duration.or(defaults.duration), ..LoadOptions::default() };
        let subject = SubjectSettings { image: self.image.clone(), ..SubjectSettings::default() };
        let options = ScenarioOptions { url, load, subject, ..ScenarioOptions::default() };
        let mut scenario = Scenario::of_command(&self.command, &options)?;
        // The file does not request a rest, and a rest reveals nothing about a limit.
        scenario.load.drop_last_rest();
        scenario.marks = scenario.marks_usual();
        scenario.subject.dir = self.image.is_none().then(|| base.to_owned());
        scenario.name = name.to_owned();
        Ok(scenario)
    }
}

impl LastFile {
    fn resolve(self) -> Result<Last> {
        let moment = |at: &String| match at.len() {
            10 => format!("{at}T00:00:00Z"),
            _ => at.clone(),
        };
        let at = self.at.as_ref().map(moment);
        if let Some(wrong) = at.as_deref().filter(|at| unix_s(at).is_none()) {
            return Err(Error::request(format!("`{wrong}` is not a timestamp; write it as `2026-11-20T04:36:21Z`"))
                .at("last: at"));
        }
        Ok(Last {
            heap_bytes: self.heap.map(|heap| heap.0),
            direct_bytes: self.direct.map(|direct| direct.0),
            proved_at: at.clone(),
            searched_at: at,
            ..Last::of(self.limit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    const FLEET: &str = "\
name: shop
defaults: {target: ['p99<50ms'], within: 10m, rate: 200, seed: 7}
services:
  orders: {scenario: orders/orders.loadline.yaml, only: small, limit: 512m}
  cart: {image: 'cart:1.2', url: 'http://127.0.0.1:8080/cart', rate: 50, target: ['failed==0'], within: 5m}
  users:
    command: [java, -jar, users.jar, '{port}']
    last: {limit: 300m, heap: 64m, direct: 10m, at: 2026-11-20}
";
    const SCENARIO: &str = "\
name: orders
subject: {command: [java, '{jvm}', -jar, orders.jar], port: 80}
configurations: {small: {heap: 8m}, large: {heap: 64m}}
load: [{steady: {closed: {requests: 1}, get: /}}]
";

    fn fleet_of(text: &str, scenario: &str) -> Result<Fleet> {
        parse_fleet(text, Path::new("fleet"), &mut |file| parse(scenario, file.parent().unwrap(), &[17]))
    }

    fn refused(from: &str, to: &str) -> Error {
        assert!(FLEET.contains(from), "{from}");
        fleet_of(&FLEET.replace(from, to), SCENARIO).unwrap_err()
    }

    #[test]
    fn a_limit_without_a_unit_is_rejected() {
        for (from, to, name) in [
            ("limit: 512m", "limit: 512", "`limit` is 512 bytes"),
            ("limit: 300m", "limit: 300", "`last: limit` is 300 bytes"),
            ("heap: 64m", "heap: 64", "`last: heap` is 64 bytes"),
        ] {
            let error = refused(from, to).to_string();
            assert!(error.contains(name) && error.contains("`64m`"), "{error}");
        }
        let whole = FLEET.replace("limit: 512m", "limit: 536870912");
        assert_eq!(fleet_of(&whole, SCENARIO).unwrap().services[0].declared, Some(Bytes::mib(512)));
    }

    #[test]
    fn fleet_defaults_apply_to_every_service() {
        let fleet = fleet_of(FLEET, SCENARIO).unwrap();
        let [orders, cart, users] = fleet.services.as_slice() else { panic!("{fleet:?}") };
        assert_eq!((fleet.name.as_str(), fleet.search_every), ("shop", SEARCH_EVERY));
        let targets = |of: &Service| of.scenario.find.target.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!([orders, cart, users].map(targets), [["p99<50ms"], ["failed==0"], ["p99<50ms"]]);
        assert_eq!([orders, cart, users].map(|of| of.within.as_s()), [600.0, 300.0, 600.0]);
        assert_eq!([orders, cart, users].map(|of| of.scenario.seed), [7; 3]);
        assert_eq!([orders, cart, users].map(|of| of.scenario.load.rate_per_s()), [None, Some(50.0), Some(200.0)]);
        assert_eq!((orders.declared, cart.declared), (Some(Bytes::mib(512)), None));
        assert_eq!(orders.scenario.configurations[0].name, "small");
        assert_eq!(orders.scenario.subject.dir.as_deref(), Some(Path::new("fleet/orders")));
        assert_eq!(users.scenario.subject.dir.as_deref(), Some(Path::new("fleet")));
        assert_eq!((cart.scenario.subject.dir.as_ref(), cart.scenario.name.as_str()), (None, "cart"));
        let last = users.last.clone().unwrap();
        assert_eq!((last.limit_bytes, last.heap_bytes, last.direct_bytes), (300 << 20, Some(64 << 20), Some(10 << 20)));
        assert_eq!(last.searched_at.as_deref(), Some("2026-11-20T00:00:00Z"));
    }

    #[test]
    fn a_scenarios_target_overrides_the_default() {
        let own = SCENARIO.to_owned() + "target: ['p99<5ms']\n";
        let fleet = fleet_of(FLEET, &own).unwrap();
        assert_eq!(fleet.services[0].scenario.find.target[0].to_string(), "p99<5ms");
    }

    #[test]
    fn a_misspelled_fleet_key_names_line_and_nearest_key() {
        for (from, to, line, near) in [
            ("defaults:", "default:", 2, "defaults"),
            ("within: 10m", "withn: 10m", 2, "within"),
            ("limit: 512m", "limmit: 512m", 4, "limit"),
            ("heap: 64m", "heep: 64m", 8, "heap"),
        ] {
            let error = refused(from, to);
            assert!(error.what.starts_with(&format!("line {line}: unknown key")), "{error}");
            assert_eq!(error.hint, Some(format!("did you mean `{near}`?")));
        }
    }

    #[test]
    fn errors_name_the_service() {
        let check = |from: &str, to: &str, what: &str, said: &str| {
            let error = refused(from, to);
            assert!(error.what.contains(what) && error.to_string().contains(said), "{error}");
        };
        check("only: small, ", "", "`orders` has 2 configurations", "only: small");
        check("only: small", "only: none", "no configuration is named `none`", "service: orders");
        check("only: small", "only: small, rate: 5", "`rate` would have no effect", "service: orders");
        check("image: 'cart:1.2', ", "", "there is nothing to run", "service: cart");
        check("url: 'http://127.0.0.1:8080/cart', ", "", "no URL to load", "`url:");
        check("  users:", "  cart:", "two services are named `cart`", "");
        check("  cart:", "  a/b:", "`a/b` is not a valid service name", "");
        check("  cart:", "  '..':", "is not a valid service name", "");
        check("  cart:", "  \"a\\nb\":", "is not a valid service name", "");
        check("  cart:", &format!("  {}:", "x".repeat(300)), "is not a valid service name", "");
        check("rate: 50", "rate: 1..5", "needs a constant rate", "service: cart");
        check("rate: 50", "rate: fast", "line 5: services.cart: `fast` is not a rate", "");
        check("target: ['failed==0']", "target: [fast]", "`fast` is not a budget", "line 5: services.cart");
        check("within: 5m", "within: 0s", "`within` must be greater than 0", "service: cart");
        check("within: 5m", "only: a", "`only` would have no effect", "service: cart");
        check("at: 2026-11-20", "at: 2026-13-20", "is not a timestamp", "service: users");
        let none = fleet_of("name: x\nservices: {}\n", SCENARIO).unwrap_err();
        assert!(none.what.contains("no service"), "{none}");
        let rate = SCENARIO.to_owned() + "find: {max_rate: true}\n";
        let error = fleet_of(FLEET, &rate).unwrap_err();
        assert!(error.what.contains("the highest rate"), "{error}");
    }
}
