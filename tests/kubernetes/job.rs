//! Jobs: the manifest from `loadline plan --kubernetes`, modifications, and outcomes.

use crate::api::Api;
use crate::container::{each, text};
use crate::waiting::wait_for;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const NAMESPACE: &str = "loadline-fleet";
/// The manifest's claim.
pub(crate) const CLAIM: &str = "loadline-fleet";
/// Much longer than any Job here takes.
pub(crate) const JOB_WITHIN: Duration = Duration::from_secs(300);

/// The manifest that `loadline plan WORDS --kubernetes` prints in this directory.
pub(crate) fn manifest(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    let command = command.arg("plan").args(words).args(["--kubernetes", "--nodes", "3"]).current_dir(folder);
    let done = command.stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A manifest's objects as text.
pub(crate) fn objects(manifest: &str) -> impl Iterator<Item = &str> {
    manifest.split("\n---\n")
}

/// A manifest's Job, to be modified.
pub(crate) fn job_of(manifest: &str) -> Value {
    let mut all = objects(manifest).map(|object| yaml_serde::from_str::<Value>(object).unwrap());
    all.find(|object| object["kind"] == "Job").unwrap()
}

/// Renames a Job, and limits its anti-affinity to its own pods.
pub(crate) fn rename(job: &mut Value, name: &str) {
    const LABEL: &str = "app.kubernetes.io/name";
    job["metadata"]["name"] = name.into();
    let template = &mut job["spec"]["template"];
    template["metadata"]["labels"][LABEL] = name.into();
    let term =
        &mut template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    term["labelSelector"]["matchLabels"][LABEL] = name.into();
}

/// A submitted Job.
pub(crate) struct Job<'a> {
    api: &'a Api,
    name: String,
}

impl<'a> Job<'a> {
    pub(crate) fn submit(api: &'a Api, job: &Value) -> Self {
        let answer = api.post(&format!("{}?fieldValidation=Strict", jobs()), job);
        answer.expect(201);
        Self { api, name: text(&job["metadata"]["name"]).to_owned() }
    }

    /// A Job submitted elsewhere.
    pub(crate) fn named(api: &'a Api, name: &str) -> Self {
        Self { api, name: name.to_owned() }
    }

    pub(crate) fn status(&self) -> Value {
        self.api.get(&format!("{}/{}", jobs(), self.name)).expect(200)["status"].clone()
    }

    /// How it ended: its condition's type and reason, and its status.
    pub(crate) fn ended(&self) -> (String, String, Value) {
        wait_for(&format!("the end of {}", self.name), JOB_WITHIN, || {
            let status = self.status();
            let is_end = |of: &&Value| (of["type"] == "Complete" || of["type"] == "Failed") && of["status"] == "True";
            let end = each(&status["conditions"]).find(is_end).cloned();
            end.map(|end| (text(&end["type"]).to_owned(), text(&end["reason"]).to_owned(), status.clone()))
                .ok_or(status)
        })
    }

    /// Its known pods for an index, oldest first.
    pub(crate) fn pods(&self, index: u32) -> Vec<Value> {
        let of = format!("job-name={},batch.kubernetes.io/job-completion-index={index}", self.name);
        let listed = self.api.get(&format!("{}?labelSelector={of}", pods())).expect(200);
        let mut found: Vec<Value> = each(&listed["items"]).cloned().collect();
        found.sort_by_key(|pod| text(&pod["metadata"]["creationTimestamp"]).to_owned());
        found
    }

    /// These pods' exit codes.
    pub(crate) fn codes(&self, index: u32) -> Vec<i64> {
        let code = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64();
        self.pods(index).iter().map(|pod| code(pod).unwrap_or(-1)).collect()
    }
}

fn jobs() -> String {
    format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs")
}

pub(crate) fn pods() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}
