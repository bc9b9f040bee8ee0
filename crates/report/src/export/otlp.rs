//! Watched JVMs in OTLP's JSON form (opentelemetry-proto 1.x, `ExportMetricsServiceRequest`): gauges, and nonmonotonic
//! sums, for which receivers can ignore temporality. Names follow OpenTelemetry's JVM conventions where they exist
//! (`jvm.memory.used`); all others begin with `loadline.`.

use super::metrics::{Otlp, TABLE};
use super::points::{Point, Points};
use crate::record::{WatchDocument, WatchedJvm};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A request with all JVMs, each as a resource. `resource` has attributes that apply to all of them, and `at_unix_ns`
/// is when the samples were taken.
pub fn otlp(document: &WatchDocument, resource: &[(String, String)], at_unix_ns: u128) -> String {
    let at = at_unix_ns.to_string();
    let jvms: Vec<Value> = document.jvms.iter().map(|jvm| of_jvm(document, jvm, resource, &at)).collect();
    json!({ "resourceMetrics": jvms }).to_string()
}

fn attribute(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

/// A label's name, according to OpenTelemetry's conventions if possible.
fn convention(label: &str) -> String {
    match label {
        "namespace" => "k8s.namespace.name".to_owned(),
        "pod" => "k8s.pod.name".to_owned(),
        "container" => "k8s.container.name".to_owned(),
        "container_id" => "container.id".to_owned(),
        "owner" => "loadline.memory.owner".to_owned(),
        "verdict" => "loadline.growth.verdict".to_owned(),
        other => format!("loadline.{other}"),
    }
}

fn of_jvm(document: &WatchDocument, jvm: &WatchedJvm, resource: &[(String, String)], at: &str) -> Value {
    let mut metrics: Vec<(Otlp, Vec<Value>)> = Vec::new();
    for of in TABLE {
        let Some(otlp) = of.otlp else { continue };
        let mut points = Points::default();
        of.source.of_jvm(jvm, &mut points);
        let point = |point: &Point| {
            let labels = point.labels.iter().map(|(name, value)| attribute(&convention(name), value));
            let attributes: Vec<Value> =
                otlp.attributes.iter().map(|(name, value)| attribute(name, value)).chain(labels).collect();
            json!({ "asInt": (point.value as u64).to_string(), "timeUnixNano": at, "attributes": attributes })
        };
        let values: Vec<Value> = points.0.iter().map(point).collect();
        match metrics.iter_mut().find(|(known, _)| known.name == otlp.name) {
            Some((_, known)) => known.extend(values),
            None => metrics.push((otlp, values)),
        }
    }
    metrics.retain(|(_, values)| !values.is_empty());
    let sum = |(of, values): (Otlp, Vec<Value>)| {
        // AGGREGATION_TEMPORALITY_CUMULATIVE
        let sum = json!({ "dataPoints": values, "aggregationTemporality": 2, "isMonotonic": false });
        json!({ "name": of.name, "unit": of.unit, "sum": sum })
    };
    let metrics: Vec<Value> = metrics.into_iter().map(sum).collect();
    let scope = json!({ "name": "loadline", "version": document.loadline });
    json!({
        "resource": { "attributes": attributes(jvm, resource) },
        "scopeMetrics": [{ "scope": scope, "metrics": metrics }],
    })
}

/// The attributes that identify a JVM, with unique keys as the protocol requires. The JVM's own attributes override the
/// common ones, which may describe Loadline's pod. Receivers identify resources by service and instance: Prometheus
/// converts these to `job` and `instance`, and drops the others. The default service name is the JVM's name.
fn attributes(jvm: &WatchedJvm, resource: &[(String, String)]) -> Vec<Value> {
    let mut texts = vec![("loadline.jvm".to_owned(), jvm.name.clone())];
    texts.extend(jvm.labels.iter().map(|label| (convention(&label.name), label.value.clone())));
    texts.extend(jvm.version.iter().map(|version| ("process.runtime.version".to_owned(), version.clone())));
    // A pod is unique; a unit or class with the same name may run on several hosts.
    let host = resource.iter().find(|(key, _)| key == "host.name").map(|(_, host)| host);
    let pod = jvm.labels.iter().any(|label| label.name == "pod");
    let instance = host.filter(|_| !pod).map(|host| format!("{}@{host}", jvm.name));
    texts.push(("service.instance.id".to_owned(), instance.unwrap_or_else(|| jvm.name.clone())));
    texts.extend(resource.iter().cloned());
    texts.push(("service.name".to_owned(), jvm.name.clone()));
    let mut seen = BTreeSet::from(["process.pid".to_owned()]);
    texts.retain(|(key, _)| seen.insert(key.clone()));
    let mut attributes: Vec<Value> = texts.iter().map(|(key, value)| attribute(key, value)).collect();
    attributes.push(json!({ "key": "process.pid", "value": { "intValue": jvm.pid.to_string() } }));
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::WatchLabel;

    #[test]
    fn otlp_resources_have_unique_keys_and_are_distinct() {
        let label = |name: &str, value: &str| WatchLabel { name: name.to_owned(), value: value.to_owned() };
        let unit = WatchedJvm { name: "shop.service".to_owned(), pid: 7, ..WatchedJvm::default() };
        let pod = WatchedJvm {
            name: "prod/shop-1/app".to_owned(),
            labels: vec![label("pod", "shop-1"), label("container_id", "abc")],
            ..WatchedJvm::default()
        };
        let set = [("host.name", "a"), ("k8s.pod.name", "loadline-x"), ("zone", "z"), ("process.pid", "1")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let of = |jvm: &WatchedJvm, resource: &[(String, String)]| -> Vec<(String, Value)> {
            let told = attributes(jvm, resource);
            told.iter().map(|one| (one["key"].as_str().unwrap().to_owned(), one["value"].clone())).collect()
        };
        let value = |told: &[(String, Value)], key: &str| {
            let found: Vec<&Value> = told.iter().filter(|one| one.0 == key).map(|one| &one.1).collect();
            assert_eq!(found.len(), 1, "{key}: {told:?}");
            found[0].clone()
        };
        let told = of(&unit, &set);
        assert_eq!(value(&told, "service.name"), json!({ "stringValue": "shop.service" }));
        assert_eq!(value(&told, "service.instance.id"), json!({ "stringValue": "shop.service@a" }));
        assert_eq!(value(&told, "process.pid"), json!({ "intValue": "7" }), "the watched JVM's own pid is exported");
        let told = of(&pod, &set);
        assert_eq!(value(&told, "k8s.pod.name"), json!({ "stringValue": "shop-1" }), "not Loadline's own pod");
        assert_eq!(value(&told, "service.instance.id"), json!({ "stringValue": "prod/shop-1/app" }));
        assert_eq!(value(&told, "zone"), json!({ "stringValue": "z" }));
        let named = [("service.name".to_owned(), "till".to_owned())];
        assert_eq!(value(&of(&unit, &named), "service.name"), json!({ "stringValue": "till" }));
    }
}
