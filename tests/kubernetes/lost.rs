//! A node that is lost while its worker continues: the index waits until the Node is deleted, and the second start
//! finds the first one's result.

use crate::container::Host;
use crate::fleet::{log, result, write};
use crate::job::{CLAIM, JOB_WITHIN, Job, NAMESPACE, job_of, manifest, rename};
use crate::node::{Fate, Node};
use crate::plane::Plane;
use crate::waiting::{wait_for, wait_until};
use serde_json::json;
use std::fs;

const NAME: &str = "lost";
const POOL: &str = "spare";

pub(crate) fn blocks_its_index(plane: &Plane) {
    let volume = Host::claim(plane.folder(), NAMESPACE, CLAIM);
    let folder = volume.join(NAME);
    fs::create_dir(&folder).unwrap();
    write(&folder);
    let mut job = job_of(&manifest(&folder, &["orders.loadline.yaml", "--out", "plan.jsonl"]));
    rename(&mut job, NAME);
    let pod = &mut job["spec"]["template"]["spec"];
    pod["nodeSelector"] = json!({"loadline.pool": POOL});
    // The manifest's tolerations without the delay.
    for toleration in pod["tolerations"].as_array_mut().unwrap() {
        match toleration["key"] == "loadline.pool" {
            true => toleration["value"] = POOL.into(),
            false => toleration["tolerationSeconds"] = 1.into(),
        }
    }
    let work = &mut pod["containers"][0]["args"];
    work[0] = format!("/fleet/{NAME}/plan.jsonl").into();
    work[2] = format!("/fleet/{NAME}/results").into();

    let host = |name: &str| Host::new(name, plane.folder());
    let lost = Node::start(&plane.api, host("n4"), POOL, Fate::LostWithItsFirstPod);
    let job = Job::submit(&plane.api, &job);
    wait_until("the loss of a node", JOB_WITHIN, || lost.is_lost());
    // From now on, there is a node for the second start.
    let _other = Node::start(&plane.api, host("n5"), POOL, Fate::Stays);
    let results = folder.join("results");
    let answer = results.join("index-000000/result.json");
    let first = wait_for("the result of a worker that the cluster cannot see", JOB_WITHIN, || {
        fs::read(&answer).map_err(|cause| cause.to_string())
    });
    // The Job's controller has seen the pod's deletion, and starts no replacement.
    let status = wait_for("its pod is terminating, and no kubelet can confirm its end", JOB_WITHIN, || {
        let status = job.status();
        if status["terminating"] == 1 { Ok(status) } else { Err(status) }
    });
    assert_eq!(
        (&status["active"], &status["failed"], &status["succeeded"]),
        (&json!(null), &json!(null), &json!(null))
    );
    assert_eq!(job.pods(0).len(), 1);

    plane.api.delete("/api/v1/nodes/n4", &json!({})).expect(200);
    let (end, _, status) = job.ended();
    assert_eq!((end.as_str(), &status["completedIndexes"]), ("Complete", &json!("0")), "{status:#}");
    let pods = job.pods(0);
    let [second] = pods.as_slice() else { panic!("{pods:#?}") };
    assert_eq!(second["spec"]["nodeName"], "n5");
    let said = fs::read_to_string(plane.folder().join(log(second))).unwrap();
    assert!(said.contains("this entry already has a result"), "{said}");
    assert_eq!(fs::read(&answer).unwrap(), first, "the first result is unchanged");
    assert_eq!(result(&results, 0).node.name, "n4");
}
