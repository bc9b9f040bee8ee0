//! A VerticalPodAutoscaler's recommendation, as printed by `kubectl get vpa -o yaml` (autoscaling.k8s.io/v1).
//!
//! ```text
//! status: {recommendation: {containerRecommendations: [
//!   {containerName: app, lowerBound: {memory: 262144k}, target: {memory: "524288000"}, upperBound: {memory: 1Gi}}]}}
//! ```

use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::record::{AdviceRecord, VpaRecord};
use crate::units::{Bytes, visible};
use std::path::Path;
use yaml_serde::Value;

/// All autoscalers of a large cluster take a few MB.
const FILE_BYTES_MAX: u64 = 64 << 20;
const HINT: &str = "specify the output of `kubectl get vpa NAME -o yaml`";
const KIND: &str = "VerticalPodAutoscaler";

/// Reads a file's recommendations, one per container. Errors: `Request` if the file cannot be read, is of a different
/// kind, or has no recommendation for memory.
pub fn read_vpa(path: &Path) -> Result<Vec<VpaRecord>> {
    let refuse = |what: String| Error::request(format!("{} {what}", path.display())).hint(HINT);
    let bytes = bounded::bytes(path, FILE_BYTES_MAX)
        .map_err(|cause| Error::request(format!("cannot read {}: {}", path.display(), plain(&cause))).hint(HINT))?;
    parse(&String::from_utf8_lossy(&bytes)).map_err(refuse)
}

/// Adds each container's recommendation to its advice. A single recommendation applies to a single JVM, whatever its
/// name.
pub fn compare_vpa(advice: &mut [AdviceRecord], recommended: &[VpaRecord]) {
    let is_single = advice.len() == 1 && recommended.len() == 1;
    for one in advice {
        let is_own = |of: &&VpaRecord| {
            let is_of_pod = one.place.pod.as_deref().is_none_or(|pod| pod.starts_with(of.workload.as_str()));
            one.place.container.as_deref() == Some(of.container.as_str()) && (is_of_pod || recommended.len() == 1)
        };
        one.vpa = recommended.iter().find(|of| is_single || is_own(of)).cloned();
    }
}

fn parse(text: &str) -> Result<Vec<VpaRecord>, String> {
    let document: Value = yaml_serde::from_str(text).map_err(|cause| format!("is not YAML: {cause}"))?;
    let kind = |of: &Value| of.get("kind").and_then(Value::as_str).map(str::to_owned);
    let listed = document.get("items").and_then(Value::as_sequence);
    let objects: Vec<&Value> = listed.map_or_else(|| vec![&document], |items| items.iter().collect());
    let autoscalers: Vec<&Value> = objects.iter().copied().filter(|of| kind(of).as_deref() == Some(KIND)).collect();
    if autoscalers.is_empty() {
        return Err(match kind(&document) {
            _ if text.trim().is_empty() => "is empty".to_owned(),
            Some(kind) => format!("is a {}, not a {KIND}", visible(&kind)),
            None => format!("is not a {KIND}: it has no `kind`"),
        });
    }
    let found: Vec<VpaRecord> = autoscalers.into_iter().map(recommendations).collect::<Result<Vec<_>, _>>()?.concat();
    match found.is_empty() {
        true => Err("has no recommendation for memory yet: `status.recommendation` is empty".to_owned()),
        false => Ok(found),
    }
}

fn recommendations(of: &Value) -> Result<Vec<VpaRecord>, String> {
    let workload = of.get("spec").and_then(|spec| spec.get("targetRef")).and_then(|target| target.get("name"));
    let workload = workload.and_then(Value::as_str).unwrap_or_default();
    let name = of.get("metadata").and_then(|about| about.get("name")).and_then(Value::as_str).unwrap_or("unnamed");
    let containers = of.get("status").and_then(|status| status.get("recommendation"));
    let containers = containers.and_then(|all| all.get("containerRecommendations")).and_then(Value::as_sequence);
    let mut found = Vec::new();
    for container in containers.into_iter().flatten() {
        let memory = |which: &str| container.get(which).and_then(|sizes| sizes.get("memory")).map(quantity).transpose();
        let Some(target_bytes) = memory("target")? else { continue };
        found.push(VpaRecord {
            name: visible(name),
            workload: visible(workload),
            container: visible(container.get("containerName").and_then(Value::as_str).unwrap_or_default()),
            target_bytes,
            lower_bytes: memory("lowerBound")?,
            upper_bytes: memory("upperBound")?,
        });
    }
    Ok(found)
}

/// Parses a Kubernetes quantity in bytes: `262144k`, `1Gi`, `1e9`, or a number.
fn quantity(value: &Value) -> Result<u64, String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return Err("has a size that is neither a number nor a string".to_owned()),
    };
    let bytes = Bytes::of_kubernetes(&text).map(|bytes| bytes.0);
    bytes.ok_or_else(|| format!("has a size that cannot be read: `{}`", visible(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PlaceRecord;

    const VPA: &str = "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: shop-vpa}\n\
        spec: {targetRef: {name: shop}}\nstatus:\n  recommendation:\n    containerRecommendations:\n    \
        - containerName: app\n      lowerBound: {cpu: 25m, memory: 262144k}\n      \
        target: {cpu: 25m, memory: \"524288000\"}\n      uncappedTarget: {memory: 1e9}\n      upperBound: {memory: 1Gi}\n";

    #[test]
    fn an_autoscaler_recommends_for_each_container() {
        let app = VpaRecord {
            name: "shop-vpa".to_owned(),
            workload: "shop".to_owned(),
            container: "app".to_owned(),
            target_bytes: 524_288_000,
            lower_bytes: Some(262_144_000),
            upper_bytes: Some(1 << 30),
        };
        assert_eq!(parse(VPA).unwrap(), std::slice::from_ref(&app));
        let item = VPA.trim_end().replace('\n', "\n  ");
        let list = format!("kind: List\nitems:\n- kind: Pod\n- {item}\n");
        assert_eq!(parse(&list).unwrap(), [app]);
    }

    #[test]
    fn quantities_parse_like_kubernetes() {
        let of = |text: &str| quantity(&Value::String(text.to_owned()));
        let sizes = ["1k", "1Ki", "128974848000m", "129e6", "123Mi", "0"].map(|text| of(text).unwrap());
        assert_eq!(sizes, [1000, 1024, 128_974_848, 129_000_000, 128_974_848, 0]);
        for wrong in ["", "x", "-1", "1Q", "NaN", "1e99", "inf"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert_eq!(quantity(&Value::Number(7.into())), Ok(7));
    }

    #[test]
    fn other_kinds_and_missing_recommendations_are_rejected() {
        let why = |text: &str| parse(text).unwrap_err();
        assert_eq!(why(""), "is empty");
        assert_eq!(why("kind: Deployment"), "is a Deployment, not a VerticalPodAutoscaler");
        assert_eq!(why("a: 1"), "is not a VerticalPodAutoscaler: it has no `kind`");
        assert!(why("{").starts_with("is not YAML"));
        assert!(why("kind: VerticalPodAutoscaler\nstatus: {}").contains("no recommendation for memory yet"));
        assert!(why(&VPA.replace("\"524288000\"", "much")).contains("`much`"));
        assert_eq!(why(&VPA.replace("target", "other")), why("kind: VerticalPodAutoscaler"));
    }

    #[test]
    fn a_recommendation_is_matched_by_container_name() {
        let vpa = |name: &str, container: &str| VpaRecord {
            name: name.into(),
            workload: name.into(),
            container: container.into(),
            ..VpaRecord::default()
        };
        let advice = |pod: Option<&str>, container: Option<&str>| {
            let [pod, container] = [pod, container].map(|name| name.map(str::to_owned));
            AdviceRecord { place: PlaceRecord { pod, container, ..PlaceRecord::default() }, ..AdviceRecord::default() }
        };
        let of = |advice: &mut [AdviceRecord], vpas: &[VpaRecord]| {
            compare_vpa(advice, vpas);
            advice.iter().map(|one| one.vpa.as_ref().map(|vpa| vpa.name.clone())).collect::<Vec<_>>()
        };
        assert_eq!(of(&mut [advice(None, None)], &[vpa("shop", "app")]), [Some("shop".to_owned())]);
        let mut both = [advice(Some("bank-1"), Some("app")), advice(Some("shop-6f-x"), Some("app"))];
        assert_eq!(
            of(&mut both, &[vpa("shop", "app"), vpa("bank", "app")]),
            ["bank", "shop"].map(|of| Some(of.to_owned()))
        );
        assert_eq!(of(&mut both, &[vpa("shop", "proxy")]), [None, None]);
    }
}
