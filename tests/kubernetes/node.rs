//! A fake node: scheduler and kubelet in a thread. Registers itself and renews its lease, accepts fitting pods, runs
//! their containers ([`Container`]), reports their state, and ends deleted ones with their grace period. No images,
//! probes, init containers, restarts, or limits.

use crate::api::Api;
use crate::container::{Container, Host, each, now, text};
use loadline::clock::Clock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(150);
/// The tests' control plane tolerates leases six times as old.
const RENEW_AFTER: Duration = Duration::from_secs(1);
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// Label and taint of dedicated nodes.
const POOL: &str = "loadline.pool";

/// How a node behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Stays,
    /// Its network fails when its first pod runs; its processes continue.
    LostWithItsFirstPod,
}

/// A working node; stops with its containers on drop.
pub(crate) struct Node {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Pods that continued after the node was lost.
    _left: Arc<Mutex<Vec<Pod>>>,
}

impl Node {
    pub(crate) fn start(api: &Api, host: Host, pool: &str, fate: Fate) -> Self {
        let (ends, left) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let mut kubelet = Kubelet {
            api: api.clone(),
            pool: pool.to_owned(),
            fate,
            clock: Clock::start(),
            renewed: None,
            pods: BTreeMap::new(),
            done: BTreeSet::new(),
            host,
        };
        let (until, leaves) = (ends.clone(), left.clone());
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                if let Turn::Lost = kubelet.turn() {
                    leaves.lock().unwrap_or_else(PoisonError::into_inner).extend(kubelet.pods.into_values());
                    break;
                }
                std::thread::sleep(LOOK_AGAIN_AFTER);
            }
        });
        Self { ends, thread: Some(thread), _left: left }
    }

    /// Whether it was cut off.
    pub(crate) fn is_lost(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // If the thread panicked, its message has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

enum Turn {
    GoesOn,
    Lost,
}

struct Kubelet {
    api: Api,
    host: Host,
    pool: String,
    fate: Fate,
    clock: Clock,
    renewed: Option<Duration>,
    /// Running pods, by UID.
    pods: BTreeMap<String, Pod>,
    done: BTreeSet<String>,
}

impl Kubelet {
    fn turn(&mut self) -> Turn {
        if self.renewed.is_none_or(|renewed| self.clock.now() > renewed + RENEW_AFTER) {
            self.renew();
            self.renewed = Some(self.clock.now());
        }
        let listed = self.api.get("/api/v1/pods").expect(200);
        let mut seen: Vec<Value> = each(&listed["items"]).cloned().collect();
        for at in 0..seen.len() {
            if seen[at]["spec"]["nodeName"].is_null() && self.fits(&seen[at], &seen) && self.bind(&seen[at]) {
                seen[at]["spec"]["nodeName"] = self.host.node.as_str().into();
            }
        }
        let node = self.host.node.clone();
        for pod in seen.iter().filter(|pod| pod["spec"]["nodeName"] == node.as_str()) {
            let uid = text(&pod["metadata"]["uid"]);
            if !self.pods.contains_key(uid) && !self.done.contains(uid) && !is_over(pod) {
                self.pods.insert(uid.to_owned(), Pod::start(pod, &self.host));
            }
        }
        self.pods.retain(|uid, pod| {
            let seen = seen.iter().find(|seen| seen["metadata"]["uid"] == uid.as_str());
            let goes_on = pod.look(seen, &self.api, self.clock);
            if !goes_on {
                self.done.insert(uid.clone());
            }
            goes_on
        });
        if self.fate == Fate::LostWithItsFirstPod && !self.pods.is_empty() { Turn::Lost } else { Turn::GoesOn }
    }

    /// Registers, reports healthy, and renews the lease.
    fn renew(&self) {
        let name = &self.host.node;
        let node = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, POOL: self.pool}},
            "spec": {"taints": [{"key": POOL, "value": self.pool, "effect": "NoSchedule"}]},
        });
        let lease = json!({
            "metadata": {"name": name},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 6, "renewTime": micro(&now())},
        });
        if self.renewed.is_none() {
            self.api.post("/api/v1/nodes", &node).expect(201);
            self.api.post(LEASES, &lease).expect(201);
        }
        let room = json!({"cpu": "8", "memory": "16Gi", "pods": "10"});
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now()});
        let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": [ready]}});
        self.api.patch(&format!("/api/v1/nodes/{name}/status"), &status).expect(200);
        self.api.patch(&format!("{LEASES}/{name}"), &json!({"spec": lease["spec"]})).expect(200);
    }

    /// Whether a scheduler would choose this node: selected labels, the taint, anti-affinity. Ignores capacity.
    fn fits(&self, pod: &Value, all: &[Value]) -> bool {
        let spec = &pod["spec"];
        let label = |name: &str| match name {
            POOL => Some(self.pool.as_str()),
            "kubernetes.io/hostname" => Some(self.host.node.as_str()),
            _ => None,
        };
        let mut selects = spec["nodeSelector"].as_object().into_iter().flatten();
        let selected = selects.all(|(name, value)| label(name) == value.as_str());
        let tolerates = |toleration: &Value| {
            let any = toleration["operator"] == "Exists";
            (any && toleration["key"].is_null())
                || toleration["key"] == POOL && (any || toleration["value"] == self.pool.as_str())
        };
        let is_here = |other: &&Value| other["spec"]["nodeName"] == self.host.node.as_str() && !is_over(other);
        let mut here = all.iter().filter(is_here);
        let terms = &spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let apart = |other: &Value| {
            other["metadata"]["namespace"] == pod["metadata"]["namespace"]
                && each(terms).any(|term| matches(&term["labelSelector"]["matchLabels"], &other["metadata"]["labels"]))
        };
        selected && each(&spec["tolerations"]).any(tolerates) && !here.any(apart)
    }

    /// Binds a pod, unless it was bound elsewhere.
    fn bind(&self, pod: &Value) -> bool {
        let meta = &pod["metadata"];
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": self.host.node});
        let binding = json!({"metadata": {"name": meta["name"]}, "target": target});
        self.api.post(&format!("{}/binding", path(meta)), &binding).code == 201
    }
}

/// Whether all wanted labels are present.
fn matches(wanted: &Value, labels: &Value) -> bool {
    wanted.as_object().is_some_and(|wanted| wanted.iter().all(|(name, value)| labels[name] == *value))
}

fn is_over(pod: &Value) -> bool {
    ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase)
}

fn path(meta: &Value) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", text(&meta["namespace"]), text(&meta["name"]))
}

/// Lease times have a fraction.
fn micro(time: &str) -> String {
    time.replace('Z', ".000000Z")
}

/// A running pod.
struct Pod {
    meta: Value,
    containers: Vec<Container>,
    /// When to kill its remaining processes, after deletion.
    kill_at: Option<Duration>,
    told: Option<Vec<Value>>,
}

impl Pod {
    fn start(pod: &Value, host: &Host) -> Self {
        let containers = each(&pod["spec"]["containers"]).map(|container| Container::start(container, pod, host));
        Self { meta: pod["metadata"].clone(), containers: containers.collect(), kill_at: None, told: None }
    }

    /// Reports changes; returns false when the pod is over.
    fn look(&mut self, seen: Option<&Value>, api: &Api, clock: Clock) -> bool {
        let grace = match seen.map(|pod| &pod["metadata"]) {
            None => Some(0),
            Some(meta) if meta["deletionTimestamp"].is_null() => None,
            Some(meta) => Some(meta["deletionGracePeriodSeconds"].as_u64().unwrap_or(0)),
        };
        if let Some(grace) = grace {
            if self.kill_at.is_none() {
                self.containers.iter().for_each(Container::ask_to_end);
            }
            let kill_at = *self.kill_at.get_or_insert(clock.now() + Duration::from_secs(grace));
            if clock.now() >= kill_at {
                self.containers.iter().filter(|container| container.is_running()).for_each(Container::kill);
            }
        }
        self.containers.iter_mut().for_each(Container::look);
        let codes: Vec<i64> = self.containers.iter().filter_map(Container::code).collect();
        let is_over = codes.len() == self.containers.len();
        let statuses: Vec<Value> = self.containers.iter().map(Container::status).collect();
        if self.told.as_ref() != Some(&statuses) {
            let phase = match (is_over, codes.iter().any(|code| *code != 0)) {
                (false, _) => "Running",
                (true, false) => "Succeeded",
                (true, true) => "Failed",
            };
            let ready = json!({"type": "Ready", "status": if is_over { "False" } else { "True" }});
            let status = json!({"phase": phase, "containerStatuses": statuses, "conditions": [ready]});
            api.patch(&format!("{}/status", path(&self.meta)), &json!({"status": status}));
            if is_over && self.kill_at.is_some() {
                let this = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": self.meta["uid"]}});
                api.delete(&path(&self.meta), &this);
            }
            self.told = Some(statuses);
        }
        !is_over
    }
}
