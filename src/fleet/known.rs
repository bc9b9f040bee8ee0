//! Data from earlier nights about each service: its line, and the time to find or confirm it.

use super::plan::Plan;
use crate::error::{Error, Result};
use crate::record::{FLEET_PLAN_SCHEMA, FLEET_SCHEMA, FleetDocument, LineVerdict, PlanEntry, ServiceRecord};
use crate::scenario::{Fleet, Last};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Data from earlier nights, by service name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnownServices(BTreeMap<String, KnownService>);

/// Data from earlier nights about one service.
#[derive(Debug, Clone, PartialEq, Default)]
struct KnownService {
    last: Option<Last>,
    /// Duration of its last search, in seconds.
    search_s: Option<f64>,
    /// Duration of its last confirmation, in seconds.
    proof_s: Option<f64>,
}

#[derive(Deserialize)]
struct Head {
    schema: String,
}

impl KnownServices {
    /// Reads the document of an earlier night, or a plan, which contains the previous night's lines. Errors: `Request`
    /// if it is neither, has a different version, or is damaged.
    pub fn parse(text: &str) -> Result<Self> {
        let neither = |cause: serde_json::Error| {
            Error::request(format!("this is not a fleet document: {cause}")).hint("`loadline merge --json` prints one")
        };
        let first = text.lines().next().unwrap_or_default();
        if let Ok(Head { schema }) = serde_json::from_str(first)
            && schema.starts_with(family(FLEET_PLAN_SCHEMA))
        {
            let of_entry =
                |entry: PlanEntry| (entry.name, KnownService { last: entry.last, ..KnownService::default() });
            return Ok(Self(Plan::parse(text)?.entries.into_iter().map(of_entry).collect()));
        }
        let Head { schema } = serde_json::from_str(text).map_err(neither)?;
        if schema != FLEET_SCHEMA {
            return Err(Error::request(format!("the file has the schema `{schema}`; Loadline needs `{FLEET_SCHEMA}`"))
                .hint("`loadline merge --json` prints one"));
        }
        let document: FleetDocument = serde_json::from_slice(text.as_bytes()).map_err(neither)?;
        Ok(Self(document.services.into_iter().map(of_service).collect()))
    }

    /// Adds the known data to each service; one without known data keeps the data from its file. Returns names that the
    /// fleet does not have.
    pub fn tell(&self, fleet: &mut Fleet) -> Vec<&str> {
        for service in &mut fleet.services {
            if let Some(last) = self.0.get(&service.name).and_then(|known| known.last.clone()) {
                service.last = Some(last);
            }
        }
        let names: std::collections::HashSet<&str> =
            fleet.services.iter().map(|service| service.name.as_str()).collect();
        self.0.keys().map(String::as_str).filter(|name| !names.contains(name)).collect()
    }

    /// The durations of a service's last search and confirmation, in seconds, if known.
    pub(super) fn took(&self, name: &str) -> (Option<f64>, Option<f64>) {
        self.0.get(name).map_or((None, None), |known| (known.search_s, known.proof_s))
    }
}

/// A schema without its version.
fn family(schema: &str) -> &str {
    schema.rsplit_once('/').map_or(schema, |(family, _)| family)
}

fn of_service(service: ServiceRecord) -> (String, KnownService) {
    let seconds = Some(service.seconds).filter(|seconds| *seconds > 0.0);
    let (search_s, proof_s) = match service.verdict {
        LineVerdict::Proved => (None, seconds),
        LineVerdict::First | LineVerdict::Same | LineVerdict::Lower | LineVerdict::Higher => (seconds, None),
        LineVerdict::NotHeld | LineVerdict::Unknown => (seconds, None),
        LineVerdict::Failed | LineVerdict::Missing => (None, None),
    };
    (service.name, KnownService { last: service.last, search_s, proof_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::layout::tests::plan;
    use crate::record::PlanHeader;
    use crate::scenario::{SEARCH_EVERY, Service, WITHIN};
    use crate::units::Bytes;

    fn record(name: &str, verdict: LineVerdict, last: Option<u64>) -> ServiceRecord {
        ServiceRecord {
            name: name.to_owned(),
            verdict,
            seconds: 90.0,
            last: last.map(|mib| Last::of(Bytes::mib(mib))),
            ..ServiceRecord::default()
        }
    }

    fn document(services: Vec<ServiceRecord>) -> String {
        let plan = PlanHeader {
            schema: FLEET_PLAN_SCHEMA.to_owned(),
            name: "x".to_owned(),
            entries: 1,
            ..PlanHeader::default()
        };
        let document = FleetDocument { schema: FLEET_SCHEMA.to_owned(), plan, services, ..FleetDocument::default() };
        serde_json::to_string_pretty(&document).unwrap()
    }

    fn fleet(names: &[&str]) -> Fleet {
        let scenario = &plan("x", 1).entries[0].scenario;
        let service = |name: &&str| Service {
            name: (*name).to_owned(),
            scenario: scenario.clone(),
            within: WITHIN,
            declared: None,
            last: Some(Last::of(Bytes::mib(1))),
        };
        Fleet { name: "x".to_owned(), services: names.iter().map(service).collect(), search_every: SEARCH_EVERY }
    }

    #[test]
    fn results_of_the_previous_night_are_known() {
        use LineVerdict::{First, Missing, Proved};
        let services =
            vec![record("a", First, Some(100)), record("b", Proved, Some(200)), record("gone", Missing, None)];
        let known = KnownServices::parse(&document(services)).unwrap();
        let mut fleet = fleet(&["a", "b", "new"]);
        assert_eq!(known.tell(&mut fleet), ["gone"]);
        let limits: Vec<u64> =
            fleet.services.iter().map(|service| service.last.as_ref().unwrap().limit_bytes >> 20).collect();
        assert_eq!(limits, [100, 200, 1]);
        assert_eq!(known.took("a"), (Some(90.0), None));
        assert_eq!(known.took("b"), (None, Some(90.0)));
        assert_eq!((known.took("gone"), known.took("new")), ((None, None), (None, None)));
    }

    #[test]
    fn invalid_fleet_documents_are_rejected() {
        let refused = |text: &str, what: &str| {
            let error = KnownServices::parse(text).unwrap_err();
            assert!(error.what.contains(what), "{error}");
        };
        refused("", "this is not a fleet document");
        refused("{}", "this is not a fleet document");
        refused("{\"schema\": \"loadline.fleet/1\"}", "this is not a fleet document");
        refused("{\"schema\": \"loadline.results/1\"}", "the file has the schema `loadline.results/1`");
        refused("{\"schema\":\"loadline.fleet-plan/9\"}\n", "the plan has the schema `loadline.fleet-plan/9`");
        let whole = document(vec![record("a", LineVerdict::Proved, Some(1))]);
        for cut in (0..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
            refused(&whole[..cut], "this is not a fleet document");
        }
    }
}
