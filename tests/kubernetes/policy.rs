//! How a Job reacts to each way in which a worker can end. The worker is a script here, so that every end can be
//! produced.

use crate::container::{Host, text};
use crate::job::{CLAIM, JOB_WITHIN, Job, NAMESPACE, job_of, manifest, pods, rename};
use crate::plane::Plane;
use crate::waiting::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const NAME: &str = "ends";
/// Records index, node, and pid of each start, then ends according to the index: 1 and 6 fail for good; 2, 3, and 4
/// succeed on retry; 5 never does.
const WORKER: &str = r#"
index=$JOB_COMPLETION_INDEX
echo "$index $NODE_NAME $$" >>"$1/starts"
start=$(grep -c "^$index " "$1/starts")
case $index:$start in
    1:*) exit 3 ;;
    2:1) exit 4 ;;
    3:1 | 4:1) exec sleep 600 ;;
    5:*) exit 70 ;;
    6:*) exit 2 ;;
esac
"#;
const INDEXES: u32 = 7;

pub(crate) fn is_kept(plane: &Plane) {
    let volume = Host::claim(plane.folder(), NAMESPACE, CLAIM);
    let results = volume.join(NAME);
    fs::create_dir(&results).unwrap();
    let mut job = job_of(&manifest(&volume, &["plan.jsonl"]));
    rename(&mut job, NAME);
    job["spec"]["completions"] = INDEXES.into();
    job["spec"]["maxFailedIndexes"] = INDEXES.into();
    let container = &mut job["spec"]["template"]["spec"]["containers"][0];
    container["command"] = json!(["sh", "-c", WORKER.replace('$', "$$"), "worker", format!("/fleet/{NAME}")]);
    container["args"] = json!([]);
    let job = Job::submit(&plane.api, &job);

    let killed = started(&results, 3);
    kill_process(Pid::from_raw(killed.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    started(&results, 4);
    let evicted = job.pods(4)[0]["metadata"]["name"].clone();
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": evicted}});
    plane.api.post(&format!("{}/{}/eviction", pods(), text(&evicted)), &eviction).expect(201);

    // The Job failed because of an index, but only at the end.
    let (end, reason, status) = job.ended();
    assert_eq!((end.as_str(), reason.as_str()), ("Failed", "FailedIndexes"), "{status:#}");
    assert_eq!((text(&status["completedIndexes"]), text(&status["failedIndexes"])), ("0,2-4", "1,5,6"));
    let codes: Vec<Vec<i64>> = (0..INDEXES).map(|index| job.codes(index)).collect();
    assert_eq!(codes[..4], [vec![0], vec![3], vec![4, 0], vec![137, 0]]);
    // The evicted pod is gone, and did not count as a failure.
    assert_eq!(codes[4..], [vec![0], vec![70; 3], vec![2]]);
    let failures = |index: u32| job.pods(index).last().map(|pod| counted(pod).to_owned());
    assert_eq!([2, 3, 4].map(failures), ["1", "1", "0"].map(|count| Some(count.to_owned())));
    let starts = fs::read_to_string(results.join("starts")).unwrap();
    let starts_of = |index: u32| starts.lines().filter(|line| line.starts_with(&format!("{index} "))).count();
    assert_eq!((0..INDEXES).map(starts_of).collect::<Vec<_>>(), [1, 1, 2, 2, 2, 3, 1], "{starts}");
}

/// How many times this index had failed when this pod was created.
fn counted(pod: &Value) -> &str {
    text(&pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"])
}

/// The process of an index's first start.
fn started(results: &Path, index: u32) -> String {
    wait_for(&format!("a start of index {index}"), JOB_WITHIN, || {
        let starts = fs::read_to_string(results.join("starts")).unwrap_or_default();
        let start = starts.lines().find(|line| line.starts_with(&format!("{index} ")));
        start.and_then(|line| line.split(' ').nth(2)).map(str::to_owned).ok_or(starts.clone())
    })
}
