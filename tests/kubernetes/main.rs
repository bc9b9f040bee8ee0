//! A fleet on a real Kubernetes control plane with fake nodes: whether its API server accepts the manifests, and how
//! its Job controller handles each way that a worker can end. Runs only on request, with `LOADLINE_KUBERNETES=required`
//! and the output of `tests/kubernetes/build`, for every version in `target/kubernetes`.
#![expect(clippy::disallowed_methods, reason = "these tests run the binary itself, and servers")]
#![expect(clippy::print_stdout, reason = "the tests print what they proved")]
#![expect(clippy::unwrap_used, reason = "a test helper that cannot continue should fail the test")]

mod api;
mod container;
mod fleet;
mod job;
mod lost;
mod manifests;
mod node;
mod plane;
mod policy;
#[path = "../shared/ports.rs"]
mod ports;
#[path = "../shared/test_subjects.rs"]
mod test_subjects;
#[path = "../shared/waiting.rs"]
mod waiting;

use container::Host;
use job::{CLAIM, NAMESPACE, manifest};
use loadline::clock::Clock;
use node::{Fate, Node};
use plane::Plane;
use std::path::{Path, PathBuf};

/// The program directories built by `tests/kubernetes/build`, one per version.
fn programs() -> Vec<PathBuf> {
    if std::env::var_os("LOADLINE_KUBERNETES").is_none_or(|asked| asked.is_empty()) {
        loadline_test_support::skip("LOADLINE_KUBERNETES", "a Kubernetes control plane is started only on request");
        return Vec::new();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("kubernetes");
    let versions = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("controlplane")).collect();
    found.retain(|program| program.exists());
    found.sort();
    let build = "tests/kubernetes/build v1.36.3 target/kubernetes/v1.36.3";
    assert!(!found.is_empty(), "there is no control plane in {}: {build}", folder.display());
    found
}

#[test]
fn a_fleet_runs_on_kubernetes() {
    for program in programs() {
        let clock = Clock::start();
        let plane = Plane::start(&program);
        println!("{}: ready after {:.1} s", plane.version, clock.now_s());
        let volume = Host::claim(plane.folder(), NAMESPACE, CLAIM);
        fleet::write(&volume);
        manifest(&volume, &["fleet.yaml", "--out", "plan.jsonl"]);
        let taken = manifests::are_taken(&plane);
        println!("  {taken} objects of manifests are accepted, and invalid ones are rejected");
        let host = |node: &str| Host::new(node, plane.folder());
        let nodes = ["n1", "n2", "n3"].map(|name| Node::start(&plane.api, host(name), "fleet", Fate::Stays));
        std::thread::scope(|scope| {
            for (name, prove) in [
                ("a node that is lost", lost::blocks_its_index as fn(&Plane)),
                ("ends of a worker", policy::is_kept),
                ("a plan", fleet::is_worked),
            ] {
                let (plane, clock) = (&plane, &clock);
                let proved = move || {
                    prove(plane);
                    println!("  {name}: proved after {:.1} s", clock.now_s());
                };
                std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, proved).unwrap();
            }
        });
        assert!(nodes.iter().all(|node| !node.is_lost()), "a node was lost; see its messages above");
    }
}
