//! Container status as JSON: `docker inspect` and `podman inspect` (`State`, `HostConfig`), and `kubectl get pod -o
//! json` (`status.containerStatuses`, Kubernetes API v1).

use crate::record::Trace;
use loadline_base::units::Bytes;
use serde_json::Value;

/// The containers that ended; `None` if the text is not such a status.
pub(super) fn read(text: &str) -> Option<Vec<Trace>> {
    let begin = text.trim_start();
    if !begin.starts_with(['{', '[']) {
        return None;
    }
    let value: Value = serde_json::from_str(begin).ok()?;
    let of_list = value.get("items").unwrap_or(&value);
    let each: Vec<&Value> = of_list.as_array().map_or_else(|| vec![of_list], |list| list.iter().collect());
    let of_pods = each.iter().flat_map(|pod| of_pod(pod).into_iter().flatten());
    let found: Vec<Trace> = each.iter().filter_map(|of| of_runtime(of)).chain(of_pods).collect();
    let is_status = |of: &&&Value| of.get("State").is_some() || of.pointer("/status/containerStatuses").is_some();
    each.iter().any(|of| is_status(&of)).then_some(found)
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// An ID without the prefix that names its runtime (`containerd://`); `None` if it is too short to be unique.
fn id(value: Option<&Value>) -> Option<String> {
    const ID_MIN: usize = 12;
    let id = text(value);
    let id = id.rsplit('/').next().unwrap_or_default();
    (id.len() >= ID_MIN).then(|| id.to_owned())
}

/// A Docker or Podman container that has ended.
fn of_runtime(value: &Value) -> Option<Trace> {
    let state = value.get("State")?;
    let time = text(state.get("FinishedAt"));
    // A container that never started has Go's zero time.
    if state.get("Running").and_then(Value::as_bool) == Some(true) || time.starts_with("0001-01-01") {
        return None;
    }
    let limit = value.pointer("/HostConfig/Memory").and_then(Value::as_u64);
    Some(Trace::Container {
        name: text(value.get("Name")).trim_start_matches('/').to_owned(),
        reason: text(state.get("Error")),
        oom_killed: state.get("OOMKilled").and_then(Value::as_bool).unwrap_or(false),
        exit_code: state.get("ExitCode").and_then(Value::as_i64)?,
        limit_bytes: limit.filter(|limit| *limit > 0),
        time,
        id: id(value.get("Id")),
        pod_uid: None,
    })
}

/// A pod's containers that ended, now or before a restart.
fn of_pod(pod: &Value) -> Option<Vec<Trace>> {
    let statuses = pod.pointer("/status/containerStatuses")?.as_array()?;
    let specs = pod.pointer("/spec/containers").and_then(Value::as_array);
    let limit = |name: &str| {
        let spec = specs?.iter().find(|spec| spec.get("name").and_then(Value::as_str) == Some(name))?;
        Bytes::of_kubernetes(spec.pointer("/resources/limits/memory")?.as_str()?).map(|limit| limit.0)
    };
    let ended = |status: &Value| {
        let name = text(status.get("name"));
        let end = status.pointer("/state/terminated").or_else(|| status.pointer("/lastState/terminated"))?;
        let reason = text(end.get("reason"));
        Some(Trace::Container {
            oom_killed: reason == "OOMKilled",
            reason,
            exit_code: end.get("exitCode").and_then(Value::as_i64)?,
            limit_bytes: limit(&name),
            time: text(end.get("finishedAt")),
            name,
            id: id(end.get("containerID")),
            pod_uid: id(pod.pointer("/metadata/uid")),
        })
    };
    Some(statuses.iter().filter_map(ended).collect())
}
