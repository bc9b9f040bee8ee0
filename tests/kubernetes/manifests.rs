//! Whether an API server accepts Loadline's manifests, down to the last field.

use crate::api::{Api, ApiResponse};
use crate::container::text;
use crate::fleet;
use crate::job::{NAMESPACE, manifest, objects};
use crate::plane::Plane;
use serde_json::Value;
use std::path::Path;

const STRICT: &str = "fieldValidation=Strict";
/// Valid strings, each with an invalid one that API servers reject: field names, words, a quantity, a type.
const WRONG: [(&str, &str); 9] = [
    ("completionMode: Indexed", "completionMode: indexed"),
    ("backoffLimitPerIndex:", "backoffLimitPerindex:"),
    ("action: FailIndex", "action: Failindex"),
    ("operator: In,", "operator: in,"),
    ("podReplacementPolicy: Failed", "podReplacementPolicy: TerminatingOrFailed"),
    ("restartPolicy: Never", "restartPolicy: Always"),
    ("fieldPath: spec.nodeName", "fieldPath: spec.nodename"),
    ("memory: 8Gi", "memory: 8Gib"),
    ("enableServiceLinks: false", "enableServiceLinks: \"no\""),
];

/// Checks that every object of every manifest is accepted; returns their number. Creates a fleet's namespace and claim.
pub(crate) fn are_taken(plane: &Plane) -> usize {
    let place = tempfile::tempdir().unwrap();
    let fleet = fleet::write(place.path());
    std::fs::write(place.path().join("hostile.yaml"), fleet.replace("name: shop", HOSTILE)).unwrap();
    let watch = Path::new(env!("CARGO_MANIFEST_DIR")).join("monitoring/daemonset.yaml");
    let compared = fleet::ORDERS.replace("configurations: {", "configurations: {small: {heap: 16m}, ");
    std::fs::write(place.path().join("compared.loadline.yaml"), compared).unwrap();
    let blocks = ["compared.loadline.yaml", "--blocks", "7", "--out", "blocks.jsonl"];
    let mut taken = 0;
    for manifest in [
        manifest(place.path(), &["fleet.yaml", "--out", "plan.jsonl"]),
        manifest(place.path(), &["hostile.yaml", "--out", "plan.jsonl"]),
        manifest(place.path(), &blocks),
        std::fs::read_to_string(watch).unwrap(),
    ] {
        taken += objects(&manifest).map(|object| is_taken(&plane.api, object)).count();
        for (right, wrong) in WRONG.iter().filter(|(right, _)| manifest.contains(right)) {
            let object = objects(&manifest).find(|object| object.contains(right)).unwrap();
            let answer = tried(&plane.api, &object.replacen(right, wrong, 1));
            assert!([400, 422].contains(&answer.code), "Kubernetes must reject {wrong}: {answer:?}");
        }
    }
    let claim = objects(&manifest(place.path(), &["plan.jsonl"])).nth(1).unwrap().to_owned();
    plane.api.post_yaml(&format!("{}?{STRICT}", path(&claim)), &claim).expect(201);
    assert!(path(&claim).contains(NAMESPACE));
    taken
}

/// A name that breaks text unless it is quoted.
const HOSTILE: &str = r#"name: "it's \"$(HOME)\" `x` #: {x}""#;

/// A full dry run. A namespace, which the others need, is actually created too.
fn is_taken(api: &Api, object: &str) {
    let answer = tried(api, object);
    assert!(answer.warnings.is_empty(), "{object}: {:?}", answer.warnings);
    // The second time, the namespace exists.
    if answer.code != 409 || !object.contains("kind: Namespace") {
        answer.expect(201);
    }
    if object.contains("kind: Namespace") {
        api.post_yaml(&path(object), object);
    }
}

fn tried(api: &Api, object: &str) -> ApiResponse {
    api.post_yaml(&format!("{}?dryRun=All&{STRICT}", path(object)), object)
}

/// The path to create an object of its kind.
fn path(object: &str) -> String {
    let object: Value = yaml_serde::from_str(object).unwrap();
    let group = match text(&object["apiVersion"]) {
        "v1" => "/api/v1".to_owned(),
        group => format!("/apis/{group}"),
    };
    let kind = match text(&object["kind"]) {
        "NetworkPolicy" => "networkpolicies".to_owned(),
        kind => format!("{}s", kind.to_ascii_lowercase()),
    };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{kind}"),
        None => format!("{group}/{kind}"),
    }
}
