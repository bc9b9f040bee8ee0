//! A plan's entries on a real server with known memory: a search that is interrupted and resumed, a confirmation, and
//! lines that were too high and too low. All bounds are generous: nothing depends on timing.

use crate::deaths::{assert_no_cgroup, limits_work};
use crate::invocation::{Call, newest};
use loadline::fleet::Plan;
use loadline::record::{EntryOutcome, EntryResult, FindOutcome, PlanEntry, Task, Why};
use loadline::scenario::{Last, Scenario, parse};
use loadline::units::Bytes;
use loadline_test_support::long_tests_run;
use std::path::Path;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A service with little load and this live set in MiB.
fn service(release: u32, live: u32, configuration: &str, step: &str) -> Scenario {
    let command = Call::verb("work").java("Appetite", &format!("{{port}} live={live}"));
    let words: Vec<&str> = command.split_whitespace().filter(|word| !word.starts_with("-Dmarking")).collect();
    let text = format!(
        "name: app\nsubject: {{command: {words:?}, end_within: 2s}}\n\
         configurations: {{only: {{jdk: {release}, gc: serial, jvm: ['-XX:TieredStopAtLevel=1'], {configuration}}}}}\n\
         target: ['failed==0']\nfind: {{proofs: 2, step: {step}, limit_max: 512m, warm: false}}\n\
         load: [steady: {{constant: {{rate: 50, duration: 1s}}, get: /}}]\n"
    );
    parse(&text, Path::new("/"), &[release]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn entry(task: Task, last: Option<Last>, scenario: Scenario) -> PlanEntry {
    let (name, question) = ("app".to_owned(), "q".to_owned());
    PlanEntry { index: 0, name, task, minutes: 20.0, declared_bytes: None, last, question, scenario }
}

/// A directory with a plan of one entry, and its results directory.
struct Planned {
    folder: TempDir,
}

impl Planned {
    fn of(entry: PlanEntry) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan::new("fleet", "2026-11-22T12:00:00Z".to_owned(), vec![entry]).unwrap();
        std::fs::write(folder.path().join("plan.jsonl"), plan.text().unwrap()).unwrap();
        Self { folder }
    }

    fn work(&self) -> Call {
        let (plan, out) = (self.folder.path().join("plan.jsonl"), self.folder.path().join("out"));
        let call = Call::verb("work --index 0 --node n1").with_argument(&plan);
        call.with(&format!("--out {}", out.display())).of_many_trials().alone()
    }

    fn result(&self) -> EntryResult {
        let home = self.folder.path().join("out/index-000000");
        let result: EntryResult = serde_json::from_slice(&std::fs::read(home.join("result.json")).unwrap()).unwrap();
        for archive in &result.archives {
            assert!(!loadline::archive::read(&home.join(archive)).unwrap().trials.is_empty(), "{archive}");
        }
        result
    }
}

/// A search without a known line.
fn first_search(release: u32) -> Planned {
    Planned::of(entry(Task::Search { why: Why::First }, None, service(release, 4, "heap: 16m", "10%")))
}

/// The line that an entry found.
fn found(result: &EntryResult) -> Last {
    let find = result.find.as_ref().unwrap();
    assert_eq!((result.outcome, find.outcome), (EntryOutcome::Answered, FindOutcome::Found), "{}", find.text);
    let line = result.line.clone().unwrap();
    println!("{} MiB, {} trials", line.limit_bytes / MIB, find.trials);
    line
}

/// `tests/on-cgroup-v2` runs this on cgroup v2 as well.
#[test]
fn an_interrupted_fleet_search_resumes() {
    if !long_tests_run() || !limits_work() {
        return;
    }
    for release in newest() {
        let searched = first_search(release);
        let mut started = searched.work().start();
        started.until_said("trial 3, ");
        started.signal("TERM");
        let ran = started.wait().expect(130);
        assert_no_cgroup(&ran);
        assert!(!searched.folder.path().join("out/index-000000").exists());
        let ran =
            searched.work().run().expect(0).says(&["continuing the work of an earlier worker", "continuing after "]);
        assert_no_cgroup(&ran);
        let line = found(&searched.result());
        assert!(line.jdk.as_ref().is_some_and(|jdk| jdk.starts_with(&release.to_string())), "{:?}", line.jdk);
        assert!(line.inputs.is_some() && line.cpu_model.as_deref() != Some(""));
    }
}

/// The live set is 190 MiB, and the process takes about 240. It passes with 300, but not with 200, however busy the
/// machine is.
#[test]
fn a_line_is_proved_or_searched_again_if_wrong() {
    if !long_tests_run() || !limits_work() {
        return;
    }
    for release in newest().into_iter().take(1) {
        let known = |limit: u64, heap: Option<u64>| Last {
            heap_bytes: heap.map(|heap| heap * MIB),
            proved_at: Some("2026-11-21T12:00:00Z".to_owned()),
            searched_at: Some("2026-11-20T12:00:00Z".to_owned()),
            ..Last::of(Bytes::mib(limit))
        };
        let last = known(300, Some(300));
        let proved = Planned::of(entry(Task::Prove, Some(last.clone()), service(release, 190, "", "50%")));
        proved.work().run().expect(0).says(&["the load line passed; trying the step below it"]);
        let result = proved.result();
        assert_eq!((&result.task, result.outcome), (&Task::Prove, EntryOutcome::Answered));
        let (find, again) = (result.find.unwrap(), result.line.unwrap());
        let said = find.line.unwrap();
        assert_eq!((again.limit_bytes, again.heap_bytes), (300 * MIB, Some(300 * MIB)));
        assert_eq!((said.held, said.cause.is_some()), (2, true));
        assert!(said.below_bytes.unwrap() < 201 * MIB && find.trials <= 6, "{said:?}");
        assert_eq!((again.past.len(), again.searched_at), (1, last.searched_at));

        let wrong = Planned::of(entry(Task::Prove, Some(known(128, None)), service(release, 190, "heap: 300m", "50%")));
        wrong.work().run().expect(0).says(&["searching again: the load line failed"]);
        let result = wrong.result();
        assert_eq!(result.task, Task::Search { why: Why::LineFailed });
        assert_eq!(result.archives.len(), 2);
        assert!(found(&result).limit_bytes > 128 * MIB);
    }
}
