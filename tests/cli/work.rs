//! `loadline work`: invalid input, and entries of a subject that is not a JVM, with two concurrent workers, killed
//! ones, and a full disk.

use crate::called::{Called, loadline_with, read, root, started};
use crate::schema::Schema;
use crate::schemas::FLEET_ENTRY;
use crate::small_disk::SmallDisk;
use crate::waiting::{LONG, wait_until};
use loadline::fleet::Plan;
use loadline::record::{EntryOutcome, EntryResult, PlanEntry, Task, Why};
use loadline::scenario::{Scenario, parse};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Child;
use tempfile::TempDir;

/// A subject that reports its location, and continues when it can read `gate`: first a pipe, later a file.
const SCRIPT: &str = "\
echo loadline: phase=work wait=1
read -r line
read -r line < gate
echo loadline: phase=done wait=1
read -r line
";

/// A directory with a plan: two blocks of a subject that is not a JVM.
struct PlanFolder {
    folder: TempDir,
}

impl PlanFolder {
    fn new() -> Self {
        Self::of(|_| {})
    }

    fn of(change: impl Fn(&mut Scenario)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("serve.sh"), SCRIPT).unwrap();
        mknodat(CWD, folder.path().join("gate"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let text = "name: shop\nsubject: {kind: native, command: [sh, serve.sh], dir: .}\nconfigurations: {only: {}}\n\
                    load: [own: {phases: [work, done], within: 60s}]\nmarks: []\n";
        let mut scenario = parse(text, folder.path(), &[]).unwrap().seen_from(folder.path());
        change(&mut scenario);
        let entry = |task: Task| PlanEntry {
            index: 0,
            name: "shop".to_owned(),
            task,
            minutes: 10.0,
            declared_bytes: None,
            last: None,
            question: "q".to_owned(),
            scenario: scenario.clone(),
        };
        let block = |first| entry(Task::Block { first, count: 1 });
        let place = Self { folder };
        place.plan("plan.jsonl", vec![block(0), block(1), entry(Task::Prove)]);
        place.plan("other.jsonl", vec![block(0), entry(Task::Search { why: Why::Asked })]);
        place
    }

    fn plan(&self, name: &str, entries: Vec<PlanEntry>) {
        let plan = Plan::new("compare", "2026-11-22T12:00:00Z".to_owned(), entries).unwrap();
        std::fs::write(self.path(name), plan.text().unwrap()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets all subjects continue.
    fn go(self) -> Self {
        // A pipe without a reader has no waiting subject.
        let pipe = open(self.path("gate"), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
        std::fs::write(self.path("open"), "").unwrap();
        std::fs::rename(self.path("open"), self.path("gate")).unwrap();
        drop(pipe);
        self
    }

    fn call(&self, more: &[&str]) -> Called {
        self.call_with(more, &[])
    }

    fn call_with(&self, more: &[&str], variables: &[(&str, &str)]) -> Called {
        loadline_with(self.folder.path(), &[&["work", "plan.jsonl", "--out", "out"], more].concat(), variables)
    }

    fn start(&self, more: &[&str]) -> Child {
        started(self.folder.path(), &[&["work", "plan.jsonl", "--out", "out"], more].concat())
    }

    fn result(&self, index: u32) -> EntryResult {
        serde_json::from_str(&read(self.path(&format!("out/index-{index:06}/result.json")))).unwrap()
    }

    /// Result directories, and private ones.
    fn folders(&self) -> (Vec<String>, Vec<String>) {
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        names(&self.path("out")).into_iter().partition(|name| !name.starts_with('.'))
    }

    /// Waits until this many workers have begun a trial, each in its directory.
    fn until_begun(&self, workers: usize) {
        let begun = |name: &String| {
            let trials = std::fs::read_dir(self.path("out").join(name).join("blocks")).into_iter().flatten().flatten();
            trials.filter(|entry| entry.path().join("subject.log").exists()).count() > 0
        };
        wait_until("trials began", LONG, || self.folders().1.iter().filter(|name| begun(name)).count() == workers);
    }
}

#[test]
fn the_help_of_work_explains_which_failures_to_retry() {
    insta::assert_snapshot!(loadline_with(&root(), &["work", "--help"], &[]));
}

#[test]
fn missing_or_invalid_arguments_are_rejected_before_anything_runs() {
    let place = PlanFolder::new();
    place.call(&[]).refused(&["no plan entry given", "JOB_COMPLETION_INDEX", "`--index N`"]);
    place.call(&["--index", "3"]).refused(&["the plan has no entry 3", "its indexes range from 0 to 2"]);
    place.call(&["--index", "-1"]).refused(&["'-1'"]);
    place.call(&["--index", "0", "--minutes", "0"]).refused(&["`0` is not a number of minutes"]);
    place.call(&["--index", "2"]).refused(&["entry 2 should confirm a load line, but has none"]);
    place.call_with(&[], &[("JOB_COMPLETION_INDEX", "x")]).refused(&["JOB_COMPLETION_INDEX is `x`"]);
    place.call_with(&[], &[("SLURM_ARRAY_TASK_ID", "99999999999")]).refused(&["SLURM_ARRAY_TASK_ID is `9"]);
    let third = [("SLURM_ARRAY_TASK_ID", "1"), ("LOADLINE_FIRST", "2")];
    place.call_with(&[], &third).refused(&["the plan has no entry 3"]);
    let wrong = [("SLURM_ARRAY_TASK_ID", "1"), ("SLURM_RESTART_COUNT", "often")];
    place.call_with(&[], &wrong).refused(&["SLURM_RESTART_COUNT is `often`"]);
    assert!(!place.path("out").exists());
    let none = loadline_with(place.folder.path(), &["work", "absent.jsonl", "--out", "out", "--index", "0"], &[]);
    none.refused(&["cannot read the plan absent.jsonl: No such file"]);
    loadline_with(place.folder.path(), &["work", "plan.jsonl"], &[]).refused(&["--out <DIR>"]);
}

#[test]
fn files_that_differ_from_the_plan_are_rejected() {
    let place = PlanFolder::of(|scenario| scenario.configurations[0].inputs = Some("0".repeat(64))).go();
    place.call(&["--index", "0"]).refused(&[
        "differ from those of the plan",
        "configuration: only",
        "recreate the plan",
    ]);
    assert!(!place.path("out/index-000000").exists());
}

#[test]
fn an_entry_is_executed_once_and_its_record_matches_the_schema() {
    let place = PlanFolder::new().go();
    let variables = [("SLURM_ARRAY_TASK_ID", "0"), ("LOADLINE_FIRST", "1"), ("SLURMD_NODENAME", "n7")];
    let called = place.call_with(&[], &[&variables[..], &[("SLURM_RESTART_COUNT", "2")]].concat());
    assert_eq!((called.code, called.stdout.as_str()), (0, "entry 1, shop, on n7: completed\n"), "{called}");
    let result = place.result(1);
    assert_eq!((result.outcome, result.task), (EntryOutcome::Answered, Task::Block { first: 1, count: 1 }));
    assert_eq!((result.node.name.as_str(), result.node.restarts), ("n7", 2));
    assert!(result.seconds > 0.0 && result.node.cpus > 0 && !result.node.machine.kernel.is_empty());
    let archive = loadline::archive::read(&place.path("out/index-000001").join(&result.archives[0])).unwrap();
    assert_eq!(archive.trials.len(), 1);
    Schema::published(FLEET_ENTRY).describes(&json!(place.result(1)), "an entry that was answered");

    let again = place.call(&["--index", "1", "--json"]);
    assert!(again.code == 0 && again.stderr.contains("this entry already has a result"), "{again}");
    assert_eq!(serde_json::from_str::<EntryResult>(&again.stdout).unwrap(), place.result(1));
    let other = loadline_with(place.folder.path(), &["work", "other.jsonl", "--out", "out", "--index", "1"], &[]);
    other.refused(&["the directory is for a different plan", "choose another directory with `--out DIR`"]);
}

#[test]
fn two_concurrent_workers_leave_one_result() {
    let place = PlanFolder::new();
    let mut workers = [place.start(&["--index", "0"]), place.start(&["--index", "0"])];
    place.until_begun(2);
    let place = place.go();
    for worker in &mut workers {
        assert_eq!(worker.wait().unwrap().code(), Some(0));
    }
    assert_eq!(place.folders(), (vec!["index-000000".to_owned()], Vec::new()));
    assert_eq!(std::fs::read_dir(place.path("out/index-000000")).unwrap().count(), 2, "a result and its archive");
    assert!(place.path("out/index-000000").join(&place.result(0).archives[0]).is_dir());
}

fn signal(worker: &Child, signal: Signal) {
    kill_process(Pid::from_child(worker), signal).unwrap();
}

#[test]
fn a_terminated_entry_is_not_recorded_and_starts_again() {
    for (how, code) in [(Signal::TERM, Some(130)), (Signal::KILL, None)] {
        let place = PlanFolder::new();
        let mut worker = place.start(&["--index", "0"]);
        place.until_begun(1);
        signal(&worker, how);
        assert_eq!(worker.wait().unwrap().code(), code);
        let (results, aside) = place.folders();
        assert!(results.is_empty() && aside.len() == 1, "{results:?} {aside:?}");
        let place = place.go();
        assert_eq!(place.call(&["--index", "0"]).code, 0);
        assert_eq!(place.folders(), (vec!["index-000000".to_owned()], Vec::new()), "the ended work must be removed");
        assert_eq!(place.result(0).outcome, EntryOutcome::Answered);
    }
}

#[test]
fn a_worker_out_of_time_records_its_partial_result() {
    let place = PlanFolder::new();
    let called = place.call(&["--index", "0", "--minutes", "0.06"]).expect(0);
    assert!(called.stdout.contains(": its time ran out"), "{called}");
    let result = place.result(0);
    assert_eq!((result.outcome, result.archives.len()), (EntryOutcome::OutOfTime, 1));
    assert!(place.folders().1.is_empty());
}

#[test]
fn a_subject_that_cannot_start_is_a_final_result() {
    let place = PlanFolder::of(|scenario| scenario.subject.command = vec!["sh".to_owned(), "absent.sh".to_owned()]);
    for _ in 0..2 {
        let called = place.call(&["--index", "0"]).expect(3);
        assert!(called.stderr.contains("error: the server exited after"), "{called}");
    }
    let result = place.result(0);
    assert_eq!(result.outcome, EntryOutcome::SubjectFailed);
    assert!(result.why.iter().any(|line| line.contains("absent.sh")), "{:?}", result.why);
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_partial_result() {
    let place = PlanFolder::new().go();
    let Some(disk) = SmallDisk::mount(place.folder.path(), "64k") else { return };
    let out = disk.folder.join("out");
    std::fs::create_dir(&out).unwrap();
    disk.fill_but(0);
    let full = |out: &Path| {
        let out = out.display().to_string();
        loadline_with(place.folder.path(), &["work", "plan.jsonl", "--out", &out, "--index", "0"], &[])
    };
    let called = full(&out).expect(4);
    assert!(called.stderr.contains("No space left on device") && called.stderr.contains("hint: free some"), "{called}");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
    // Room for the claim, but not for the archive.
    std::fs::remove_file(disk.folder.join("filler")).unwrap();
    disk.fill_but(8 << 10);
    let called = full(&out).expect(4);
    let said = called.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("No space left on device"), "{called}");
    let aside = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    assert!(!std::fs::read_dir(&out).unwrap().flatten().any(|entry| aside(&entry)));
}
