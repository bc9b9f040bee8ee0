//! A plan executed by `loadline work` on three nodes, with the printed manifest.

use crate::container::{Host, each, text};
use crate::job::{CLAIM, Job, NAMESPACE, job_of, manifest, objects};
use crate::plane::Plane;
use crate::test_subjects::test_subjects;
use loadline::record::{EntryOutcome, EntryResult, FleetDocument, StandingRecord};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The lowest limit passes and is confirmed once: two trials.
pub(crate) const ORDERS: &str = "\
name: orders
subject: {command: [java, '{jvm}', -cp, subjects.jar, loadline.subjects.Appetite, '{port}', live=8], ready: {http: /, within: 90s}}
configurations: {serial: {heap: 24m, gc: serial, limit: 512m, jvm: ['-XX:TieredStopAtLevel=1']}}
load: [{steady: {constant: {rate: 50, duration: 500ms}, get: /}}]
find: {limit_min: 256m, proofs: 1}
target: ['failed==0']
";
const FLEET: &str = "\
name: shop
defaults: {within: 5m}
services:
  orders: {scenario: orders.loadline.yaml, limit: 512m}
  cart: {scenario: orders.loadline.yaml, limit: 512m}
  broken: {scenario: broken.loadline.yaml}
  users: {scenario: orders.loadline.yaml, limit: 1g}
  stock: {scenario: orders.loadline.yaml, limit: 1g}
";
const BROKEN: usize = 2;

/// Writes a fleet and its files to this directory; returns its text.
pub(crate) fn write(folder: &Path) -> &'static str {
    fs::copy(test_subjects(), folder.join("subjects.jar")).unwrap();
    let broken = ORDERS.replace("Appetite", "NoSuchClass").replace("orders", "broken");
    for (name, text) in [("orders.loadline.yaml", ORDERS), ("broken.loadline.yaml", &broken), ("fleet.yaml", FLEET)] {
        fs::write(folder.join(name), text).unwrap();
    }
    FLEET
}

pub(crate) fn is_worked(plane: &Plane) {
    let volume = Host::claim(plane.folder(), NAMESPACE, CLAIM);
    let manifest = manifest(&volume, &["plan.jsonl"]);
    let written = objects(&manifest).last().unwrap();
    plane
        .api
        .post_yaml(&format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs?fieldValidation=Strict"), written)
        .expect(201);
    let name = text(&job_of(&manifest)["metadata"]["name"]).to_owned();
    let job = Job::named(&plane.api, &name);
    let (end, reason, status) = job.ended();
    let said = || {
        let logs = (0..5).flat_map(|index| job.pods(index)).map(|pod| plane.folder().join(log(&pod)));
        logs.map(|log| fs::read_to_string(log).unwrap_or_default()).collect::<Vec<_>>().join("\n")
    };
    assert_eq!((end.as_str(), reason.as_str()), ("Failed", "FailedIndexes"), "{status:#}\n{}", said());
    let indexes = (text(&status["completedIndexes"]), text(&status["failedIndexes"]));
    assert_eq!(indexes, ("0,1,3,4", "2"), "{}", said());
    let mut nodes = BTreeSet::new();
    for index in 0..5 {
        // Each index was started once, without a token.
        let pods = job.pods(index as u32);
        let [pod] = pods.as_slice() else { panic!("{} pods for index {index}: {}", pods.len(), said()) };
        assert_eq!(pod["status"]["qosClass"], "Guaranteed");
        let volumes: Vec<&str> = each(&pod["spec"]["volumes"]).map(|volume| text(&volume["name"])).collect();
        assert_eq!(volumes, ["fleet", "scratch"]);
        let result = result(&results(&volume), index);
        let expect = if index == BROKEN { EntryOutcome::SubjectFailed } else { EntryOutcome::Answered };
        assert_eq!((result.outcome, result.node.name.as_str()), (expect, text(&pod["spec"]["nodeName"])));
        assert_eq!(job.codes(index as u32), [if index == BROKEN { 3 } else { 0 }]);
        nodes.insert(result.node.name);
    }
    assert_eq!(nodes.into_iter().collect::<Vec<_>>(), ["n1", "n2", "n3"]);
    let merged = merged(&volume);
    let expect = StandingRecord { answered: 4, failed: vec![BROKEN as u32], ..StandingRecord::default() };
    assert_eq!((merged.standing, merged.services.len(), merged.nodes.len()), (expect, 5, 3));
}

/// The document of `loadline merge` on these results.
fn merged(volume: &Path) -> FleetDocument {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    let done = command.arg("merge").arg(results(volume)).arg("--json").current_dir(volume).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    // One index has no result.
    assert_eq!(done.status.code(), Some(4), "{said}");
    serde_json::from_slice(&done.stdout).unwrap_or_else(|cause| panic!("{cause}: {said}"))
}

/// The log file of a pod.
pub(crate) fn log(pod: &serde_json::Value) -> String {
    format!("{}.log", text(&pod["metadata"]["name"]))
}

/// The manifest's directory for results.
fn results(volume: &Path) -> PathBuf {
    let mut entries = fs::read_dir(volume).unwrap().flatten().map(|entry| entry.path());
    entries.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("results-")).unwrap()
}

pub(crate) fn result(results: &Path, index: usize) -> EntryResult {
    let path = results.join(format!("index-{index:06}/result.json"));
    serde_json::from_str(&fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display())))
        .unwrap()
}
