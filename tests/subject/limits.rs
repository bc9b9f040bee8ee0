//! The memory limit on a real kernel.

use super::support::*;
use loadline::subject::EndCause;
use loadline::subject::limit::probe;
use loadline::units::Bytes;

fn limits_work() -> bool {
    probe(loadline::clock::Clock::start()).inspect_err(|error| println!("skipped, because {error}")).is_ok()
}

#[test]
fn who_takes_more_than_the_limit_is_killed_and_told() {
    if !limits_work() {
        return;
    }
    // `tail` keeps the only line of an endless stream.
    let running = spawner().start(&limited("tail -n 1 /dev/zero; exit 1", Bytes::mib(32)), None).unwrap();
    let cgroup = running.cgroup().unwrap().path.clone();
    assert!(cgroup.is_dir());
    wait_ended(&running);
    assert!(running.oom_kills() > 0);
    let ended = running.end(LONG);
    assert_eq!(ended.cause, EndCause::OomKill);
    assert!(!cgroup.exists());
}

#[test]
fn who_stays_within_the_limit_is_in_the_cgroup_and_not_killed() {
    if !limits_work() {
        return;
    }
    let running = spawner().start(&limited("echo pid $$; exec sleep 60", Bytes::mib(32)), None).unwrap();
    let processes = told(&running, 1);
    let cgroup = running.cgroup().unwrap().path.clone();
    let members = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap();
    assert!(members.lines().any(|pid| pid == processes[0].pid.to_string()), "{members}");
    assert_eq!(running.end(LONG).cause, EndCause::AsAsked);
    assert!(!cgroup.exists());
}

#[test]
fn a_command_that_is_missing_leaves_no_cgroup() {
    if !limits_work() {
        return;
    }
    let mut launch = limited("true", Bytes::mib(32));
    launch.argv = vec!["no-such-command".to_owned()];
    let before = ours();
    assert!(spawner().start(&launch, None).is_err());
    // Parallel tests make some too, and remove them.
    wait_until("no cgroup is left", LONG, || ours().difference(&before).count() == 0);
}

/// Cgroups made by this very process.
fn ours() -> std::collections::BTreeSet<String> {
    let parent = probe(loadline::clock::Clock::start()).unwrap().parent;
    let prefix = format!("loadline-{}-", std::process::id());
    let folders = std::fs::read_dir(parent).unwrap().flatten();
    let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&prefix)).collect()
}
