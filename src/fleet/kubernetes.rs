//! The manifest that works a plan on Kubernetes: one index of a Job is one entry, alone on its node.

use super::layout::{JobSettings, comment, minutes_max, slug};
use super::plan::Plan;
use crate::units::{Bytes, Millicpus};

/// The minutes that a node takes in addition to those of its entry: the image, a build, the end.
const BESIDE_MINUTES: u32 = 10;
/// Pods at once, if the number of nodes in the pool was not given.
const NODES: u32 = 10;
/// How often an index is tried at most.
const TRIES: u32 = 3;
/// An API server takes no more of either.
const FAILED_MAX: usize = 10_000;
/// Memory of a pod where no limit of production is known.
const MEMORY_GIB: u64 = 8;
/// CPUs of a pod where no service has a CPU limit that asks for more.
const CPUS: u64 = 4;
/// The path at which the volume is mounted.
const MOUNT: &str = "/fleet";

/// The manifest, for `kubectl apply`. The paths of `place` are those on the volume, below where it is mounted.
pub fn kubernetes(plan: &Plan, place: &JobSettings<'_>) -> String {
    let entries = plan.entries.len();
    let nodes = place.nodes.unwrap_or(NODES).min(entries as u32).max(1);
    let deadline_s = u64::from(minutes_max(plan) + BESIDE_MINUTES) * 60;
    let short: String = plan.header.hash.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    let path = |below: &str| literal(&format!("{MOUNT}/{below}").replace('$', "$$"));
    let waves = entries.div_ceil(nodes as usize) as u64;
    MANIFEST
        .replace("{NAME}", &comment(&plan.header.name))
        .replace("{LOADLINE}", &comment(&plan.header.loadline))
        .replace("{IMAGE}", &literal(&format!("loadline:{}", plan.header.loadline)))
        .replace("{HASH}", &comment(&plan.header.hash))
        .replace("{JOB}", &format!("{}-{}", slug(&plan.header.name), short.to_ascii_lowercase()))
        .replace("{ENTRIES}", &entries.to_string())
        .replace("{NODES}", &nodes.to_string())
        .replace("{FAILED}", &entries.min(FAILED_MAX).to_string())
        .replace("{DEADLINE}", &deadline_s.to_string())
        .replace("{RETRIES}", &(TRIES - 1).to_string())
        .replace("{TRIES}", &TRIES.to_string())
        .replace("{WHOLE}", &whole_s(deadline_s, waves).to_string())
        .replace("{MEMORY}", &memory_gib(plan).to_string())
        .replace("{CPUS}", &cpus(plan).to_string())
        .replace("{MOUNT}", MOUNT)
        // Paths come last: whatever is in them stays as it is.
        .replace("{PLAN}", "\u{0}")
        .replace("{RESULTS}", &path(place.results))
        .replace('\u{0}', &path(place.plan))
}

/// Seconds for all waves of pods, each of them as often as an index may be tried, and for one wave more between them.
fn whole_s(deadline_s: u64, waves: u64) -> u64 {
    deadline_s * (u64::from(TRIES) * waves + 1)
}

/// Twice the largest limit of production: memory is to be no concern in the first trial of a search.
fn memory_gib(plan: &Plan) -> u64 {
    let most = plan.entries.iter().filter_map(|entry| entry.declared_bytes).max().unwrap_or(0);
    most.saturating_mul(2).div_ceil(Bytes::mib(1024).0).max(MEMORY_GIB)
}

/// The largest CPU limit of a service, and a CPU for Loadline: the quota of a trial lies within that of its pod.
fn cpus(plan: &Plan) -> u64 {
    let configurations = plan.entries.iter().flat_map(|entry| &entry.scenario.configurations);
    let most = configurations.filter_map(|of| of.cpu_limit).map(Millicpus::processors).max().unwrap_or(0);
    most.saturating_add(1).max(CPUS)
}

/// A text as YAML reads it back: what JSON writes.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const MANIFEST: &str = r#"# Works the plan `{NAME}` on Kubernetes: each index of the Job is an entry, alone on a node.
# Made by Loadline {LOADLINE}; {ENTRIES} entries, plan {HASH}.
#
#   kubectl apply --filename THIS_FILE
#
# Before: a pool of nodes that are labelled and tainted `loadline.pool=fleet` and have nothing else to do, and on the
# volume the plan with the files that it names. Afterwards: loadline merge of the folder of results.
# Needs Kubernetes 1.33 or newer (backoffLimitPerIndex).
apiVersion: v1
kind: Namespace
metadata:
  name: loadline-fleet
  labels:
    # A privileged container needs it: use this namespace for nothing else.
    pod-security.kubernetes.io/enforce: privileged
---
# Plan, files of services, results. A class of storage that many nodes write to at once, such as NFS.
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: loadline-fleet
  namespace: loadline-fleet
spec:
  accessModes: [ReadWriteMany]
  resources:
    requests: {storage: 20Gi}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {JOB}
  namespace: loadline-fleet
  labels: {app.kubernetes.io/name: loadline-fleet}
  annotations: {loadline/plan: "{HASH}"}
spec:
  completionMode: Indexed
  completions: {ENTRIES}
  # Nodes of the pool.
  parallelism: {NODES}
  # Kubernetes retries an index {RETRIES} times, on other nodes. One that fails for good does not stop the others, but
  # the Job ends as Failed: look at failedIndexes, or at loadline merge.
  backoffLimitPerIndex: {RETRIES}
  maxFailedIndexes: {FAILED}
  # A podFailurePolicy allows no other: a lost index starts again once its pod is known to be gone.
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
      # 2 (wrong request) and 3 (the subject fails) would be the same on another node. 0 is an answer, also where a
      # limit fails. 4 (the node cannot measure) and 70 (a bug) are retried on another node.
      - action: FailIndex
        onExitCodes: {containerName: loadline, operator: In, values: [2, 3]}
      # The node was drained or lost: that is none of the index' fault.
      - action: Ignore
        onPodConditions:
          - {type: DisruptionTarget, status: "True"}
  # All of it, every index tried {TRIES} times, and once as long for nodes that are lost and pods that wait.
  activeDeadlineSeconds: {WHOLE}
  ttlSecondsAfterFinished: 604800
  template:
    metadata:
      labels: {app.kubernetes.io/name: loadline-fleet}
      annotations:
        # A search that is moved begins again.
        cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
    spec:
      restartPolicy: Never
      # The longest entry ends by itself with what it knows; the rest is for the image, a build and the end.
      activeDeadlineSeconds: {DEADLINE}
      terminationGracePeriodSeconds: 30
      automountServiceAccountToken: false
      enableServiceLinks: false
      nodeSelector: {loadline.pool: fleet}
      tolerations:
        - {key: loadline.pool, operator: Equal, value: fleet, effect: NoSchedule}
        # The usual five minutes would keep an index waiting. Who deletes dead Nodes, as a cloud does, sets it free.
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
        - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
      affinity:
        podAntiAffinity:
          # Never two on one node, of whatever plan. It keeps away our own pods only: the taint keeps away all others.
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels: {app.kubernetes.io/name: loadline-fleet}
      containers:
        - name: loadline
          # Yours: with `loadline`, with the JDK of services that bring none, and with podman where services are images.
          image: {IMAGE}
          # The index is JOB_COMPLETION_INDEX, which the Job sets.
          command: [loadline, work]
          args:
            - {PLAN}
            - --out
            - {RESULTS}
          env:
            - name: NODE_NAME
              valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
          # Equal, with whole CPUs: Guaranteed, and with the kubelet's cpuManagerPolicy `static` CPUs of its own and no
          # throttling. As much as a node of the pool has; memory is no concern in the first trial of a search.
          resources:
            requests: {cpu: "{CPUS}", memory: {MEMORY}Gi}
            limits: {cpu: "{CPUS}", memory: {MEMORY}Gi}
          # How the limit of a trial is set. `loadline doctor` says which of these holds where it runs.
          # 1. Privileged, in a pool of its own: cgroups below the pod's are made as on a host.
          securityContext: {privileged: true}
          # 2. A private cgroup that may be written, without privileges: instead of the line above
          #        securityContext:
          #          allowPrivilegeEscalation: false
          #    and from whoever runs the nodes: of containerd 2.1 or newer a runtime with `cgroup_writable = true` (and
          #    its `runtimeClassName:` here, next to `restartPolicy`), of CRI-O the annotation
          #    `io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw: "true"`, of GKE `writableCgroups` of the pool.
          # 3. Two containers of one pod, without either: `shareProcessNamespace: true` next to `restartPolicy`, the
          #    subject in a container `subject` with the limit as `resources.limits.memory`, and Loadline in the other
          #    with the same `runAsUser`. A pod has one limit: it can test that one, and cannot search.
          volumeMounts:
            - {name: fleet, mountPath: {MOUNT}}
            - {name: scratch, mountPath: /tmp}
      volumes:
        - name: fleet
          persistentVolumeClaim: {claimName: loadline-fleet}
        - name: scratch
          emptyDir: {}
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::layout::tests::plan;
    use yaml_serde::Value;

    /// The Job of a manifest.
    fn job(manifest: &str) -> Value {
        let job = manifest.split("\n---\n").last().unwrap();
        yaml_serde::from_str(job).unwrap_or_else(|cause| panic!("{cause}\n{job}"))
    }

    #[test]
    fn the_manifest_of_a_small_plan() {
        let place = JobSettings { plan: "plan.jsonl", results: "results-0123456789ab", nodes: Some(10) };
        insta::assert_snapshot!(kubernetes(&plan("shop", 300), &place));
    }

    #[test]
    fn names_and_paths_stay_what_they_are() {
        let plan = plan("a\": {b}\n- c: $(X) 'é", 3);
        let place = JobSettings { plan: "a b/\"it's\": $(HOME) {RESULTS}\n.jsonl", results: "r {PLAN}", nodes: None };
        let job = job(&kubernetes(&plan, &place));
        let name = job["metadata"]["name"].as_str().unwrap();
        assert_eq!(name, "loadline-a-b-c-x-0123456789ab");
        let args = &job["spec"]["template"]["spec"]["containers"][0]["args"];
        assert_eq!(args[0].as_str(), Some("/fleet/a b/\"it's\": $$(HOME) {RESULTS}\n.jsonl"));
        assert_eq!(args[2].as_str(), Some("/fleet/r {PLAN}"));
        assert_eq!(job["spec"]["parallelism"].as_u64(), Some(3));
    }

    #[test]
    fn a_pod_has_room_for_twice_the_largest_limit() {
        let memory = |gib: Option<u64>| {
            let mut plan = plan("x", 2);
            plan.entries[0].declared_bytes = gib.map(|gib| gib << 30);
            memory_gib(&plan)
        };
        assert_eq!([None, Some(3), Some(5), Some(u64::MAX >> 30)].map(memory), [8, 8, 10, (u64::MAX >> 30) + 1]);
    }

    #[test]
    fn a_pod_has_a_cpu_more_than_the_largest_cpu_limit() {
        let cpus = |limit: Option<u64>| {
            let mut plan = plan("x", 2);
            plan.entries[1].scenario.configurations[0].cpu_limit = limit.map(Millicpus);
            cpus(&plan)
        };
        assert_eq!(
            [None, Some(500), Some(3000), Some(3500), Some(u64::MAX)].map(cpus),
            [4, 4, 4, 5, u64::MAX.div_ceil(1000) + 1]
        );
    }

    #[test]
    fn a_whole_job_ends_sometime() {
        let job = job(&kubernetes(&plan("x", 10_000), &JobSettings { plan: "p", results: "r", nodes: Some(100) }));
        let spec = &job["spec"];
        let of = |key: &str| spec[key].as_u64().unwrap();
        assert_eq!((of("completions"), of("maxFailedIndexes"), of("parallelism")), (10_000, 10_000, 100));
        let pod = spec["template"]["spec"]["activeDeadlineSeconds"].as_u64().unwrap();
        // A hundred waves of a hundred nodes: all tries that `backoffLimitPerIndex` allows have room.
        let tries = of("backoffLimitPerIndex") + 1;
        assert_eq!((pod, tries, of("activeDeadlineSeconds")), (25 * 60, 3, 25 * 60 * 301));
        assert!(of("activeDeadlineSeconds") > pod * tries * 10_000 / 100);
    }
}
