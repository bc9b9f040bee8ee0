//! A fleet on a Slurm cluster of three nodes, from its file to its table: searched, and confirmed the next night. Some
//! entries run out of time, are requeued, or lose their node. The nodes share the machine's cores, so only the
//! existence of lines matters, not their values.

use crate::deaths::limits_work;
use crate::invocation::{Call, Ran};
use crate::slurm::Cluster;
use crate::test_subjects::test_subjects;
use crate::waiting::{LONG, wait_for};
use loadline::record::{EntryOutcome, EntryResult, FleetDocument, LineVerdict, Task};
use loadline_test_support::long_tests_run;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Generous, because an array waits for the scheduler, and three searches share two cores.
const NIGHT: Duration = Duration::from_secs(240);

/// Writes the scenario of a service with this live set, a low rate, and this duration.
fn scenario(folder: &Path, name: &str, live_mib: u32, duration: &str) {
    let jar = test_subjects();
    let text = format!(
        "name: {name}\nsubject:\n  command: [java, '{{jvm}}', -cp, {jar}, loadline.subjects.Appetite, '{{port}}', \
         'live={live_mib}']\nconfigurations:\n  default: {{heap: {}m, gc: serial, jvm: ['-XX:TieredStopAtLevel=1']}}\n\
         target: ['failed==0']\nfind: {{proofs: 1, step: 10%, limit_max: 256m}}\nload:\n  - steady: {{constant: \
         {{rate: 20, duration: {duration}}}, get: /}}\n",
        live_mib + 12
    );
    fs::write(folder.join(format!("{name}.loadline.yaml")), text).unwrap();
}

/// A directory visible to every node, with a plan in it.
struct SharedFolder {
    folder: TempDir,
}

impl SharedFolder {
    fn with(fleet: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("fleet.yaml"), fleet).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Plans, and stores the Slurm script next to the plan.
    fn plan(&self, more: &str) {
        let call = Call::verb("plan --slurm --nodes 3").with_argument(&self.path("fleet.yaml"));
        let call = call.with("--out").with_argument(&self.path("plan.jsonl"));
        let call = more.split(' ').filter(|word| !word.is_empty()).fold(call, |call, word| call.with(word));
        let ran = call.beside().run().expect(0);
        fs::write(self.path("fleet.sbatch"), ran.stdout).unwrap();
    }

    /// Submits the script with this results directory; returns the job ID.
    fn submit(&self, cluster: &Cluster, results: &str) -> String {
        let mut client = cluster.client("sbatch");
        client.arg("--parsable").arg(self.path("fleet.sbatch")).current_dir(self.folder.path());
        client.env("LOADLINE", env!("CARGO_BIN_EXE_loadline")).env("LOADLINE_RESULTS", self.path(results));
        let output = client.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn merge(&self, results: &[&str], code: i32) -> (FleetDocument, Ran) {
        let call = results.iter().fold(Call::verb("merge"), |call, name| call.with_argument(&self.path(name)));
        let call = call.with("--plan").with_argument(&self.path("plan.jsonl")).with("--json").beside();
        let ran = call.run().expect(code);
        (serde_json::from_str(&ran.stdout).unwrap(), ran)
    }

    fn result(&self, results: &str, index: u32) -> EntryResult {
        let path = self.path(results).join(format!("index-{index:06}/result.json"));
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    /// The workers' logs.
    fn logs(&self) -> String {
        let logs = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs = logs.filter(|path| path.extension().is_some_and(|end| end == "log"));
        logs.map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    /// Private directories of entries in progress, by the node and pid in their names.
    fn aside(&self, results: &str) -> Vec<String> {
        let found = fs::read_dir(self.path(results)).into_iter().flatten().flatten();
        found.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.starts_with('.')).collect()
    }
}

fn until_idle(cluster: &Cluster, shared: &SharedFolder) {
    wait_for("the array is done", NIGHT, || {
        cluster.is_idle().map_err(|queued| format!("{queued}{}{}", shared.logs(), cluster.log()))
    });
}

#[test]
fn three_nodes_produce_a_fleet_document() {
    if !long_tests_run() || !limits_work() {
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let shared = SharedFolder::with(
        "name: shop\nservices:\n  small: {scenario: small.loadline.yaml, limit: 256m}\n\
         \x20 large: {scenario: large.loadline.yaml, limit: 16m}\n  third: {scenario: third.loadline.yaml}\n\
         \x20 late: {scenario: late.loadline.yaml, within: 4s}\n",
    );
    for (name, live, duration) in [("small", 2, "1s"), ("large", 40, "1s"), ("third", 8, "1s"), ("late", 2, "20s")] {
        scenario(shared.folder.path(), name, live, duration);
    }
    shared.plan("");
    shared.submit(&cluster, "monday");
    until_idle(&cluster, &shared);
    let (table, ran) = shared.merge(&["monday"], 1);
    let told = format!("{}{}", ran.stderr, shared.logs());
    assert_eq!((table.standing.answered, table.standing.failed.as_slice()), (3, &[3][..]), "{told}");
    assert_eq!(shared.result("monday", 3).outcome, EntryOutcome::OutOfTime, "{told}");
    let verdicts: Vec<LineVerdict> = table.services[..3].iter().map(|service| service.verdict).collect();
    assert_eq!(verdicts, [LineVerdict::First; 3], "{told}");
    let lines = table.services.iter().filter_map(|service| service.line.as_ref()).map(|line| line.limit_bytes);
    let lines: Vec<u64> = lines.collect();
    assert!(lines.len() == 3 && lines[1] > lines[0], "{lines:?}");
    assert!(table.services[0].wasted_bytes.unwrap() > 0 && table.services[1].wasted_bytes.unwrap() < 0, "{told}");
    let nodes: BTreeSet<&str> = table.nodes.iter().map(|node| node.name.as_str()).collect();
    assert!(nodes.iter().all(|node| ["n1", "n2", "n3"].contains(node)) && nodes.len() == 3, "{nodes:?}");

    // The next night starts with these lines; a line that fails is searched for again.
    fs::write(shared.path("monday.json"), &ran.stdout).unwrap();
    shared.plan(&format!("--last {}", shared.path("monday.json").display()));
    let plan = fs::read_to_string(shared.path("plan.jsonl")).unwrap();
    let tasks =
        plan.lines().skip(1).map(|line| serde_json::from_str::<loadline::record::PlanEntry>(line).unwrap().task);
    let proofs: Vec<bool> = tasks.map(|task| task == Task::Prove).collect();
    assert_eq!(proofs, [true, true, true, false], "{plan}");
    shared.submit(&cluster, "tuesday");
    until_idle(&cluster, &shared);
    let (next, _) = shared.merge(&["tuesday"], 1);
    for (service, before) in next.services[..3].iter().zip(lines) {
        assert!(service.line.is_some() && service.last_bytes == Some(before), "{service:?}{}", shared.logs());
        assert_ne!(service.verdict, LineVerdict::First, "{service:?}");
    }
}

#[test]
fn an_entry_started_twice_has_one_result() {
    if !long_tests_run() || !limits_work() {
        return;
    }
    let Some(mut cluster) = Cluster::start() else { return };
    let shared = SharedFolder::with(
        "name: twice\nservices:\n  requeued: {scenario: requeued.loadline.yaml}\n  lost: {scenario: lost.loadline.yaml}\n",
    );
    for name in ["requeued", "lost"] {
        scenario(shared.folder.path(), name, 2, "5s");
    }
    shared.plan("");
    let job = shared.submit(&cluster, "results");
    wait_for("both entries are being worked on", LONG, || {
        let aside = shared.aside("results");
        if aside.len() >= 2 { Ok(()) } else { Err(format!("{aside:?}{}{}", shared.logs(), cluster.log())) }
    });
    let node = cluster.ask("squeue", &["--noheader", "--format=%N", "--jobs", &format!("{job}_1")]);
    cluster.lose(node.trim());
    cluster.ask("scontrol", &["requeue", &format!("{job}_0")]);
    until_idle(&cluster, &shared);
    // The worker on the lost node continues without a job.
    wait_for("no entry is being worked on", NIGHT, || {
        let aside = shared.aside("results");
        if aside.is_empty() { Ok(()) } else { Err(format!("{aside:?}{}", shared.logs())) }
    });
    let (table, _) = shared.merge(&["results"], 0);
    assert_eq!((table.standing.answered, table.standing.double.len()), (2, 0), "{}", shared.logs());
    assert!(shared.result("results", 0).node.restarts >= 1, "{}", shared.logs());
}

/// A comparison's blocks from two nodes, run serially here and concurrently on Slurm, form one document.
#[test]
fn blocks_from_two_nodes_form_one_comparison() {
    if !long_tests_run() {
        return;
    }
    let shared = SharedFolder::with("");
    scenario(shared.folder.path(), "both", 2, "500ms");
    let file = shared.path("both.loadline.yaml");
    let text = fs::read_to_string(&file).unwrap().replace("  default: {", "  other: {heap: 24m}\n  default: {");
    fs::write(&file, text).unwrap();
    let plan = Call::verb("plan --slurm --blocks 3 --nodes 2").with_argument(&file);
    let planned = plan.with("--out").with_argument(&shared.path("plan.jsonl")).beside().run().expect(0);
    fs::write(shared.path("fleet.sbatch"), planned.stdout).unwrap();
    for index in 0..2 {
        let work = Call::verb("work").with_argument(&shared.path("plan.jsonl")).with("--out");
        let work = work.with_argument(&shared.path("results")).with(&format!("--index {index}"));
        work.with(&format!("--node n{index}")).of_many_trials().run().expect(0);
        let (so_far, _) = shared.merge(&["results"], if index == 0 { 4 } else { 0 });
        let blocks = so_far.comparison.unwrap().blocks.len();
        assert_eq!(blocks, [2, 3][index], "the second merge includes both nodes' blocks");
    }
    is_whole(&shared, "results");
    let Some(cluster) = Cluster::start() else { return };
    shared.submit(&cluster, "of-slurm");
    until_idle(&cluster, &shared);
    is_whole(&shared, "of-slurm");
}

/// Checks that the merged document has three blocks of two configurations, from two nodes.
fn is_whole(shared: &SharedFolder, results: &str) {
    let (table, ran) = shared.merge(&[results], 0);
    let told = || format!("{}{}", ran.stderr, shared.logs());
    let comparison = table.comparison.unwrap();
    assert_eq!((comparison.trials.len(), comparison.archives.len()), (6, 2), "{}", told());
    assert!(!comparison.comparisons.is_empty(), "{}", told());
    let begun: BTreeSet<(u32, &str)> =
        comparison.trials.iter().map(|trial| (trial.block, trial.configuration.as_str())).collect();
    assert_eq!(begun.len(), 6, "{begun:?}{}", told());
}
